"""One rule for every format: what a column of labels holds is told alike, however the file is written."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from core.corpora import Corpus, load, save_upload
from core.corpora.catalogue.hub import HubName
from core.corpora.catalogue.uploads import save_dataset
from core.corpora.readers.given import read_given
from core.errors import CorpusError
from tests.making import corpus_folder

Table = Mapping[str, Sequence[Any]]
"""The columns of a corpus by name: texts and labels, or `tokens` and labels with a list for each sentence."""


def _separated(rows: Sequence[Sequence[str]], delimiter: str) -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def _columns(table: Table, separator: str) -> bytes:
    sentences = zip(*table.values(), strict=True)
    words = ["".join(f"{separator.join(row)}\n" for row in zip(*each, strict=True)) for each in sentences]
    return "\n".join(words).encode()


def _word_rows(table: Table) -> bytes:
    sentences = enumerate(zip(*table.values(), strict=True))
    rows = [(str(number), *row) for number, each in sentences for row in zip(*each, strict=True)]
    names = ["word" if name == "tokens" else name for name in table]
    return _separated([["sentence_id", *names], *rows], ",")


def _rows(table: Table) -> list[dict[str, Any]]:
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def _jsonl(table: Table) -> bytes:
    return "\n".join(map(json.dumps, _rows(table))).encode()


def _parquet(table: Table) -> bytes:
    return pd.DataFrame(table).to_parquet()


Writer = Callable[[Table], bytes]
OF_WORDS: dict[str, Writer] = {
    "conll": lambda table: _columns(table, "\t"),
    "txt": lambda table: _columns(table, " "),
    "csv": _word_rows,
    "jsonl": _jsonl,
    "json": lambda table: json.dumps(_rows(table)).encode(),
    "parquet": _parquet,
}
OF_TEXTS: dict[str, Writer] = {
    "tsv": lambda table: _separated([list(table), *zip(*table.values(), strict=True)], "\t"),
    "csv": lambda table: _separated([list(table), *zip(*table.values(), strict=True)], ","),
    "jsonl": _jsonl,
}
FRAME = "DataFrame"


def read(folder: Path, table: Table, kind: str, writers: Mapping[str, Writer]) -> Corpus:
    """The corpus of this table in each split, written in a format and read."""
    if kind == FRAME:
        splits = dict.fromkeys(("train", "test"), pd.DataFrame(table))
        return load(str(HubName(str(save_dataset(splits, "data")))))
    for split in "train", "test":
        (folder / f"{split}.{kind}").write_bytes(writers[kind](table))
    return load(str(folder))


def doubts(corpus: Corpus) -> list[str]:
    """What looks wrong in the columns of the corpus."""
    return [doubt for reading in corpus.readings for column in reading.columns for doubt in column.doubts]


WORDS = [["Ada", "ran", "."], ["Rome", "fell", "."], ["Bo", "ran", "."]]
CODES = {
    "layers joined by |": ([["B-DNA|B-cell", "O"], ["B-RNA", "O"], ["B-DNA|O", "O"]], "2 labels join"),
    "layers joined by #": ([["B-DNA#B-cell", "O"], ["B-RNA", "O"], ["B-DNA", "O"]], "1 label joins"),
    "layers joined by a comma": ([["B-DNA,B-cell", "O"], ["B-RNA", "O"], ["O", "O"]], "1 label joins"),
    "a type O": ([["B-O", "O"], ["B-ORG", "O"], ["O", "O"]], "type called O"),
    "_ beside names": ([["PER", "_"], ["LOC", "_"], ["_", "_"]], "more than half of its labels are _"),
    "- beside names": ([["PER", "-"], ["LOC", "-"], ["-", "-"]], "more than half of its labels are -"),
}


@pytest.mark.parametrize("kind", [*OF_WORDS, FRAME])
@pytest.mark.parametrize("code", CODES)
def test_codes_in_labels_of_words_are_doubted(code: str, kind: str, tmp_path: Path) -> None:
    given, doubt = CODES[code]
    labels = [[*row, given[-1][-1]] for row in given]
    corpus = read(tmp_path, {"tokens": WORDS, "ner": labels}, kind, OF_WORDS)
    assert [doubt in each for each in doubts(corpus)] == [True]


@pytest.mark.parametrize("kind", [*OF_WORDS, FRAME])
def test_layers_in_every_cell_are_refused_with_the_cause(kind: str, tmp_path: Path) -> None:
    table = {"tokens": WORDS, "ner": [["B-A|O", "O|O", "O|O"], ["B-A|B-B", "O|O", "O|O"], ["O|O"] * 3]}
    with pytest.raises(CorpusError, match=r"'O\|O' in the column ner joins labels of several layers"):
        read(tmp_path, table, kind, OF_WORDS)


@pytest.mark.parametrize("kind", [*OF_WORDS, FRAME])
def test_labels_without_codes_are_not_doubted(kind: str, tmp_path: Path) -> None:
    table = {
        "tokens": WORDS,
        "pos": [["NNP", "VB|VBD", "."], ["NNP", "VBD", "."], ["NNP", "_", "."]],
        "ner": [["B-R&D", "O", "O"], ["B-Person/Role", "O", "O"], ["B-ORG", "O", "O"]],
    }
    assert doubts(read(tmp_path, table, kind, OF_WORDS)) == []


@pytest.mark.parametrize("kind", [*OF_WORDS, FRAME])
def test_a_prefix_of_all_words_is_noted(kind: str, tmp_path: Path) -> None:
    words = [[f"en:{word}" for word in row] for row in WORDS]
    table = {"tokens": words, "ner": [["B-PER", "O", "O"]] * 3}
    assert "each word begins with en:" in " ".join(read(tmp_path, table, kind, OF_WORDS).notes)


def test_comments_may_follow_a_header(tmp_path: Path) -> None:
    text = "TOKEN\tNER\n# language = fr\n# date = 1798\nAda\tB-pers\nran\tO\n\nBo\tB-pers\n"
    corpus = load(corpus_folder(tmp_path / "mine", dict.fromkeys(("train.tsv", "test.tsv"), text)))
    assert [sentence.tokens for sentence in corpus.train] == [("Ada", "ran"), ("Bo",)]
    assert [task.name for task in corpus.tasks] == ["NER"]
    assert "Left out, comments: 2 in train.tsv (the first on line 2: '# language = fr')" in " ".join(
        corpus.notes
    )


TEXTS = ["a warm film", "dull", "fine", "so so", "what a day", "oh no"]
JOINED = {
    "semicolons": (["joy;love", "anger", "joy", "anger", "joy;love", "love"], "joy;love"),
    "commas": (["3,17", "4", "3", "17", "4", "4"], "3,17"),
    "commas and spaces": (["joy, love", "anger", "joy", "love", "anger", "joy"], "joy, love"),
    "bars": (["joy|love", "joy|anger", "anger|love", "joy|love", "joy|anger", "anger|love"], "joy|love"),
    "signs": (["flight#fare", "fare", "flight", "fare", "flight", "fare"], "flight#fare"),
}
ALONE = {
    "hyphens": ["sci-fi", "sci", "fi", "sci", "fi", "sci"],
    "commas in names": ["Congo, Rep.", "Peru", "Congo, Rep.", "Peru", "Peru", "Peru"],
    "words": ["very good", "good", "very good", "good", "good", "good"],
}


@pytest.mark.parametrize("kind", [*OF_TEXTS, FRAME])
@pytest.mark.parametrize("case", JOINED)
def test_several_labels_in_a_cell_are_doubted(case: str, kind: str, tmp_path: Path) -> None:
    labels, example = JOINED[case]
    corpus = read(tmp_path, {"text": TEXTS, "label": labels}, kind, OF_TEXTS)
    (doubt,) = doubts(corpus)
    assert example in doubt
    assert "one label a text is learned" in doubt


@pytest.mark.parametrize("kind", [*OF_TEXTS, FRAME])
@pytest.mark.parametrize("case", ALONE)
def test_single_labels_are_not_doubted(case: str, kind: str, tmp_path: Path) -> None:
    assert doubts(read(tmp_path, {"text": TEXTS, "label": ALONE[case]}, kind, OF_TEXTS)) == []


@pytest.mark.parametrize("kind", ["jsonl", FRAME])
def test_lists_of_labels_are_refused_with_the_cause(kind: str, tmp_path: Path) -> None:
    table: Table = {"text": TEXTS, "label": [["joy", "love"], ["joy"], [], ["joy"], ["love"], ["joy"]]}
    with pytest.raises(CorpusError, match=r"label.*one label a text is learned"):
        read(tmp_path, table, kind, OF_TEXTS)


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet", FRAME])
@pytest.mark.parametrize("values", [True, "", " "])
def test_flags_and_blanks_beside_words_are_skipped_and_said(values: Any, kind: str, tmp_path: Path) -> None:
    beside = [[values] * 3, [values, False if values is True else "", values], [values] * 3]
    table: Table = {"tokens": WORDS, "ner_tags": [["B-PER", "O", "O"]] * 3, "space": beside}
    corpus = read(tmp_path, table, kind, OF_WORDS)
    assert [task.name for task in corpus.tasks] == ["ner"]
    (reading,) = corpus.readings
    assert [column.taken for column in reading.columns if column.name == "space"] == ["skipped"]


WORD_A_ROW = {"Word": ["Ada", "ran", ".", "Bo"], "Tag": ["B-PER", "O", "O", "B-PER"]}


@pytest.mark.parametrize("kind", [*OF_TEXTS, "json", "parquet", FRAME])
@pytest.mark.parametrize("numbers", [False, True])
def test_a_word_in_each_row_is_named(numbers: bool, kind: str, tmp_path: Path) -> None:
    table: Table = {"sent_id": ["1", "1", "1", "2"], **WORD_A_ROW} if numbers else WORD_A_ROW
    if numbers and kind in ("csv", "tsv"):
        corpus = read(tmp_path, table, kind, OF_TEXTS)
        assert [sentence.tokens for sentence in corpus.train] == [("Ada", "ran", "."), ("Bo",)]
        return
    if kind == "tsv":
        return  # CoNLL columns with a header, of one sentence
    with pytest.raises(CorpusError, match="has a word in each row, "):
        read(tmp_path, table, kind, OF_WORDS | OF_TEXTS)


MARKED = {
    "a name above a document": "###MEDLINE:95369245\n\nAda\tB-PER\nran\tO\n",
    "a name with two signs": "##d1\n\nAda\tB-PER\nran\tO\n",
    "names above each sentence": "###MEDLINE:1\nAda\tB-PER\nran\tO\n\n###MEDLINE:2\nBo\tB-PER\n",
    "spaces": "###MEDLINE:95369245\n\nAda B-PER\nran O\n",
}


@pytest.mark.parametrize("case", MARKED)
def test_names_of_documents_are_no_words(case: str, tmp_path: Path) -> None:
    text = MARKED[case]
    corpus = load(corpus_folder(tmp_path / "mine", dict.fromkeys(("train.tsv", "test.tsv"), text)))
    assert corpus.train[0].tokens == ("Ada", "ran")
    assert any("document marks" in note and "(" in note for note in corpus.notes)
    given = read_given(text.encode(), "given.conll", {"ner": "iob2"})
    assert [sentence.tokens for sentence in given.sentences] == [each.tokens for each in corpus.train]


def test_a_piece_of_a_word_is_no_name_of_a_document(tmp_path: Path) -> None:
    text = "##ing\tO\nAda\tB-PER\n\n###\tO\nBo\tB-PER\n"
    corpus = load(corpus_folder(tmp_path / "mine", dict.fromkeys(("train.tsv", "test.tsv"), text)))
    assert [sentence.tokens for sentence in corpus.train] == [("##ing", "Ada"), ("###", "Bo")]


REFUSED = {
    "a title above tabs": (
        "train.tsv", "Document one\nAda\tB-PER\nran\tO\n",
        "train.tsv, line 1: expected 2 columns as on line 2 separated by tabs, but found 1. If it is a title",
    ),
    "a title above spaces": (
        "train.conll", "The first document\nAda B-PER\nran O\n\nBo B-PER\n",
        "train.conll, line 1: expected 2 columns as on line 2 separated by spaces, but found 3. If it is",
    ),
    "ragged rows": (
        "train.iob2", "1\tAda\tB-PER\t-\tanna\n2\tmet\tO\n3\tBo\tB-PER\t-\tanna\n4\tin\tO\n",
        "but found 3. Lines here have 3 or 5 columns; write _ in each column that has nothing for a word.",
    ),
    "fastText": ("train.txt", "__label__joy what a day\n__label__anger not again\n", "is of fastText"),
    "JSON": ("train.txt", '{"text": "a b", "label": "x"}\n{"text": "a", "label": "x"}\n', "holds JSON; end"),
    "tags of XML": (
        "train.txt", "<PER>Ada</PER> ran home\nIt rains in <LOC>Rome</LOC>\nSo it does\n", "has tags of XML",
    ),
    "tags behind words": (
        "train.txt", "Ada/NNP ran/VBD ./.\nIt/PRP rains/VBZ here/RB ./.\n", "has the tag of each word behind",
    ),
    "tags behind a tab": (
        "train.iob", "BOS i fly EOS\tO O O flight\nBOS show me a fare EOS\tO O O O B-x fare\n",
        "has a sentence and the labels of all its words in one line",
    ),
    "tags in lower case": ("train.txt", "The/at hall/np-tl ran/vbd ./.\nIt/pps ran/vbd ./.\n", "as in Ada/N"),
    "labels behind texts": (
        "train.txt", "Profit rose up .@positive\nSales fell .@negative\n", "has a label behind each text",
    ),
    "commas": ("train.txt", "Ada,NNP,B-PER\nran,VBD,O\n\nBo,NNP,B-PER\n", "has commas between its columns"),
    "layers in lists": (
        "train.jsonl", '{"tokens": ["Ada", "ran"], "ner_tags": [["B-PER", "O"], ["O", "B-X"]]}\n',
        "ner_tags holds a list of labels for each word",
    ),
    "spans in brackets": (
        "train.txt", "[PER Ada Byron] ran\nIt rains in [LOC Rome] now\n", "has spans in brackets",
    ),
    "spans in Markdown": ("train.txt", "fly to [Rome](city) now\n[Ada](name) ran\n", "has spans in brackets"),
    "trees": ("train.txt", "(3 (2 It) (2 rains))\n(1 (2 So) (3 (2 it) (2 does)))\n", "holds trees"),
    "labels before texts": (
        "train.txt", "DESC:manner How did it end ?\nENTY:cremat What films are there now ?\n",
        "has a label before each text",
    ),
    "a header that is a row": (
        "train.csv", "3,Stocks fall,a long text of words\n2,Bo wins,another long text\n",
        "This line seems to hold a text; put the names of the columns above it.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_names_the_cause(case: str, tmp_path: Path) -> None:
    name, text, problem = REFUSED[case]
    files = dict.fromkeys((name, f"test{Path(name).suffix}"), text)
    with pytest.raises(CorpusError) as raised:
        load(corpus_folder(tmp_path / "mine", files))
    assert problem in str(raised.value)


FOLDERS = {
    "brat": (["train.txt", "train.ann", "test.txt"], "(train.ann beside train.txt)"),
    "brat in folders": (["train/d1.txt", "train/d1.ann", "test/d2.txt"], "(d1.ann beside d1.txt)"),
    "labels beside texts": (
        ["train.txt", "train.label", "test.txt", "test.label"],
        "has labels in test.label beside test.txt, which are not read; write both into one file",
    ),
    "labels beside words": (["train.in", "train.labels", "test.in"], "in train.labels beside train.in"),
    "slots": (["train/seq.in", "train/seq.out", "train/label", "test/seq.in"], "has words in seq.in and"),
    "folders": (["train/a.conll", "test/b.conll"], "has its splits in folders (test, train); write one"),
    "parallel files": (["train_text.txt", "train_labels.txt"], "holds the labels of the other line by line"),
    "an ending": (["train.annotated", "test.annotated"], "train.annotated is not read for its ending"),
    "another ending": (["train.gold_conll", "test.gold_conll"], "Rename it to train.conll, or the like."),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_of_another_layout_is_named(case: str, tmp_path: Path) -> None:
    names, problem = FOLDERS[case]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("Ada B-PER\nran O\n")
    with pytest.raises(CorpusError) as raised:
        load(str(tmp_path))
    assert problem in str(raised.value)


def test_an_upload_of_brat_is_named() -> None:
    with pytest.raises(CorpusError, match="The upload holds annotations of brat"):
        save_upload({"train.txt": b"Ada ran", "train.ann": b"T1\tPER 0 3\tAda"}, "mine")


WEBANNO = """\
#FORMAT=WebAnno TSV 3.3
#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value
#T_SP=de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS|PosValue
#T_SP=webanno.custom.Mark
#T_RL=webanno.custom.Link|kind|BT_webanno.custom.Mark


#Text=Ada Byron met Bo
1-1\t0-3\tAda\t*[1]\tPER[1]\tNNP\t_\t_\t_\t
1-2\t4-9\tByron\t*[1]\tPER[1]|FAM[2]\tNNP\t_\t_\t_\t
1-3\t10-13\tmet\t_\t_\tVBD\t*\ttime\t1-1\t
1-4\t14-16\tBo\t*\tX\\|Y\tNNP\t_\t_\t_\t

#Text=Elm-bay ran
2-1\t18-25\tElm-bay\t_\t_\tNNP\t_\t_\t_\t
2-1.1\t18-21\tElm\t*\tLOC\t_\t_\t_\t_\t
2-2\t26-29\tran\t_\t_\tVBD\t_\t_\t_\t
"""


def test_webanno_is_read(tmp_path: Path) -> None:
    corpus = load(corpus_folder(tmp_path / "mine", dict.fromkeys(("train.tsv", "test.tsv"), WEBANNO)))
    assert [sentence.tokens for sentence in corpus.train] == [
        ("Ada", "Byron", "met", "Bo"),
        ("Elm-bay", "ran"),
    ]
    labels = {task: [each.labels[task] for each in corpus.train] for task in corpus.train[0].labels}
    assert labels["NamedEntity.value"] == [("B-PER", "I-PER", "O", "B-X|Y"), ("B-LOC", "O")]
    assert labels["POS"] == [("NNP", "NNP", "VBD", "NNP"), ("NNP", "VBD")]
    assert labels["Mark"] == [("O", "O", "B-Mark", "O"), ("O", "O")]
    (reading,) = corpus.readings
    assert reading.layout == "WebAnno TSV 3"
    notes = " ".join(corpus.notes)
    assert "spans that overlap a longer one or lie in it: 1 in train" in notes
    assert "widened to whole words" in notes
    assert [column.name for column in reading.columns if column.taken == "skipped"] == [
        "_Link.kind",
        "_Link.Mark",
    ]

    given = read_given(WEBANNO.encode(), "given.tsv", {"NamedEntity.value": "iob2", "POS": "plain"})
    assert [(each.tokens, each.labels) for each in given.sentences] == [
        (each.tokens, {task: each.labels[task] for task in ("NamedEntity.value", "POS")})
        for each in corpus.train
    ]


def test_a_wrong_row_of_webanno_is_named(tmp_path: Path) -> None:
    text = WEBANNO.replace("2-2\t26-29\tran\t_", "2-2\t26-29")
    with pytest.raises(CorpusError, match=r"train\.tsv, line 17: expected the place of a word"):
        load(corpus_folder(tmp_path / "mine", dict.fromkeys(("train.tsv", "test.tsv"), text)))


def test_types_beside_types_that_look_like_prefixes_are_types(tmp_path: Path) -> None:
    text = "mail O\na@b.c E-mail\n\nAda Person\nByron Person\nran O\n\nS1 S-bahn\nleft O\n"
    corpus = load(corpus_folder(tmp_path / "mine", dict.fromkeys(("train.txt", "test.txt"), text)))
    assert [each.labels["ner"] for each in corpus.train] == [
        ("O", "B-E-mail"), ("B-Person", "I-Person", "O"), ("B-S-bahn", "O"),
    ]  # fmt: skip
