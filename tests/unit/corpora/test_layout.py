"""Each rule that tells what a column holds, over each format that reads it."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from core.corpora import load
from core.corpora.catalogue.uploads import save_dataset
from core.corpora.layout.cells import cell_value
from core.corpora.layout.doubts import Labels, label_doubts
from core.corpora.layout.fields import Field
from core.corpora.layout.no_label import no_label
from core.corpora.layout.rules import beside_words
from core.corpora.readers.lines import GivenFile
from core.corpora.readers.texts import read_asked
from core.corpora.types import Corpus
from core.errors import CorpusError
from tests.making import corpus_folder

Rows = list[dict[str, Any]]
TEXT_FORMATS = ("csv", "tsv", "jsonl", "frames", "copy")
"""Files of texts, DataFrames of pandas, and a copy of a dataset of the Hub."""
LIST_FORMATS = ("jsonl", "json", "parquet", "copy")


def read(form: str, folder: Path, train: Rows, test: Rows, dev: Rows | None = None) -> Corpus:
    """The corpus of these rows, written in that format."""
    splits = {"train": train} | ({"dev": dev} if dev else {}) | {"test": test}
    if form in ("frames", "copy"):
        datasets = pytest.importorskip("datasets", reason="the package datasets is not installed here")
        pandas = pytest.importorskip("pandas", reason="the package pandas is not installed here")
        if form == "frames":
            frames = {split: pandas.DataFrame(rows) for split, rows in splits.items()}
            return load(f"hub:{save_dataset(frames, 'mine')}")
        tables = {split: datasets.Dataset.from_list(rows) for split, rows in splits.items()}
        datasets.DatasetDict(tables).save_to_disk(str(folder / "mine"))
        return load(f"hub:{folder / 'mine'}")
    (folder / "mine").mkdir()
    for split, rows in splits.items():
        (folder / "mine" / f"{split}.{form}").write_bytes(_content(form, rows))
    return load(str(folder / "mine"))


def _content(ending: str, rows: Rows) -> bytes:
    table = [list(rows[0]), *(["" if v is None else str(v) for v in row.values()] for row in rows)]
    if ending == "parquet":
        pa = pytest.importorskip("pyarrow", reason="the package pyarrow is not installed here")
        written = io.BytesIO()
        pytest.importorskip("pyarrow.parquet").write_table(pa.Table.from_pylist(rows), written)
        return written.getvalue()
    if ending == "json":
        return json.dumps(rows).encode()
    if ending == "jsonl":
        return "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    if ending == "tsv":
        return "".join("\t".join(line) + "\n" for line in table).encode()
    text = io.StringIO()
    csv.writer(text).writerows(table)
    return text.getvalue().encode()


def texts(*labels: Any, column: str = "label", **others: list[Any]) -> Rows:
    words = ["A warm film", "Dull", "Hm", "Fine", "So it goes"]
    return [
        {"text": f"{words[place % 5]} {place}", column: label}
        | {name: o[place] for name, o in others.items()}
        for place, label in enumerate(labels)
    ]


def labels_of(corpus: Corpus, task: str = "") -> list[str | None]:
    """The label of each training sentence as a whole."""
    rows = [sentence.labels.get(task or corpus.tasks[0].name) for sentence in corpus.train]
    return [row[0] if row else None for row in rows]


def counted(corpus: Corpus) -> str:
    return "\n".join(corpus.notes)


@pytest.mark.parametrize("form", TEXT_FORMATS)
@pytest.mark.parametrize("code", [-1, -100, None])
def test_codes_for_no_label_are_no_labels_and_counted(form: str, code: Any, tmp_path: Path) -> None:
    rows = texts(1, 0, code, 1, code)
    corpus = read(form, tmp_path, rows, rows)
    assert corpus.tasks[0].labels == ("0", "1")
    assert (len(corpus.train), len(corpus.test)) == (3, 3)
    assert "2 rows without labels left out." in counted(corpus)


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_a_test_split_of_codes_is_hidden_gold(form: str, tmp_path: Path) -> None:
    train, hidden = texts(1, 0, 2, 1), texts(-1, -1)
    corpus = read(form, tmp_path, train, hidden, dev=train)
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (4, 0, 4)
    assert "none of 2 rows has a label; the split was left out." in counted(corpus)
    assert "There is no test split with labels: " in counted(corpus)
    assert set(corpus.readings[0].files) == {"train", "test"}
    assert "dev" in corpus.readings[0].files["test"]
    (tmp_path / "b").mkdir()
    with pytest.raises(CorpusError, match="no row of its test split has a label"):
        read(form, tmp_path / "b", train, hidden)


@pytest.mark.parametrize("form", TEXT_FORMATS)
@pytest.mark.parametrize(
    ("labels", "kept"),
    [
        ((-1, 1, -1, 1), {"-1", "1"}),
        ((-2, -1, 0, 1, 2), {"-2", "-1", "0", "1", "2"}),
        ((1, 0, -1, 1, 0) * 40, {"-1", "0", "1"}),
        ((1, 0, 2, 0, 1) * 40 + (-1,), {"0", "1", "2"}),
        ((1, 0, 1, 0, 1) * 40 + (-1,), {"0", "1"}),
    ],
    ids=["two classes", "a scale", "polarity", "some of many", "one of many"],
)
def test_minus_one_is_a_class_among_negative_numbers(
    form: str, labels: tuple[int, ...], kept: set[str], tmp_path: Path
) -> None:
    corpus = read(form, tmp_path, texts(*labels), texts(*labels))
    assert set(corpus.tasks[0].labels) == kept
    doubt = "-1 was read as a class beside 0 and 1; where it stands for no label, leave the label out."
    assert (doubt in counted(corpus)) == (kept == {"-1", "0", "1"})


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_minus_one_is_no_number_of_a_pair(form: str, tmp_path: Path) -> None:
    def pairs(*scores: float) -> Rows:
        return [{"text1": f"a {n}", "text2": f"b {n}", "score": score} for n, score in enumerate(scores)]

    corpus = read(form, tmp_path, pairs(0.5, 4.0, -1.0), pairs(0.5, 4.0))
    assert (corpus.tasks[0].scale, len(corpus.train)) == ((0.5, 4.0), 2)
    (tmp_path / "b").mkdir()
    cosines = read(form, tmp_path / "b", pairs(0.5, -0.5, -1.0), pairs(0.5, -0.5))
    assert (cosines.tasks[0].scale, len(cosines.train)) == ((-1.0, 0.5), 3)


@pytest.mark.parametrize("form", ["csv", "jsonl", "frames", "copy", "lists"])
def test_a_test_split_without_a_column_of_labels_is_hidden_gold(form: str, tmp_path: Path) -> None:
    rows, column = texts("x", "y", "x"), "label"
    if form == "lists":
        rows, column = [{"tokens": ["Ada", "ran"], "ner_tags": ["B-PER", "O"]}], "ner_tags"
    hidden = [{name: value for name, value in row.items() if name != column} for row in rows]
    corpus = read(form.replace("lists", "jsonl"), tmp_path, rows, hidden, dev=rows)
    assert (len(corpus.dev), corpus.test) == (0, corpus.train)
    assert "There is no test split with labels: " in counted(corpus)


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_a_second_line_of_names_is_named(form: str, tmp_path: Path) -> None:
    rows = [*texts("x", "y"), {"text": "text", "label": "label"}]
    with pytest.raises(CorpusError, match="line 4: names the columns again; delete it"):
        read(form, tmp_path, rows, rows)


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_tags_without_prefixes_are_labels_of_words(form: str, tmp_path: Path) -> None:
    pairs = [("the dog ran", "DT NN VB"), ("a cat", "DT NN"), ("the old man slept", "DT JJ NN VB")] * 2
    rows: Rows = [{"text": text, "pos": tags} for text, tags in pairs]
    corpus = read(form, tmp_path, rows, rows)
    assert [(task.name, task.scheme) for task in corpus.tasks] == [("pos", "plain")]
    assert corpus.train[1].labels["pos"] == ("DT", "NN")


@pytest.mark.parametrize("form", LIST_FORMATS)
def test_words_without_a_label_are_not_learned(form: str, tmp_path: Path) -> None:
    rows: Rows = [
        {"tokens": ["Ada", "ran"], "ner_tags": ["B-PER", None], "kind": "x"},
        {"tokens": ["Bo", "ran"], "ner_tags": ["B-PER", "O"], "kind": "y"},
        {"tokens": ["Cy", "ran"], "ner_tags": ["B-PER", "O"], "kind": "x"},
    ] * 2
    corpus = read(form, tmp_path, rows, rows)
    assert ["ner" in sentence.labels for sentence in corpus.train][:3] == [False, True, True]
    assert "2 rows with a word without a label not annotated for ner." in counted(corpus)


def test_a_dash_among_spans_is_no_label_and_among_tags_is_one(tmp_path: Path) -> None:
    text = "Ada B-PER\nran O\n\nx -\nBo B-PER\n\nBo B-PER\nran O\n"
    corpus = load(corpus_folder(tmp_path / "a", dict.fromkeys(("train.conll", "test.conll"), text)))
    assert ["ner" in sentence.labels for sentence in corpus.train] == [True, False, True]
    assert any("words without a label: 1 in train, 1 in test. 2 sentences" in note for note in corpus.notes)
    tags = "Ada NNP\n- -\nran VBD\n"
    corpus = load(corpus_folder(tmp_path / "b", dict.fromkeys(("train.conll", "test.conll"), tags)))
    assert corpus.tasks[0].labels == ("-", "NNP", "VBD")
    nobody = "Ada B-PER\nran -\n"
    with pytest.raises(CorpusError, match=r"line 2: '-' among 2 span labels; write O\."):
        load(corpus_folder(tmp_path / "c", dict.fromkeys(("train.conll", "test.conll"), nobody)))


def test_a_test_file_without_any_label_of_words_is_hidden_gold(tmp_path: Path) -> None:
    files = {
        "train.conll": "Ada B-PER\nran O\n",
        "dev.conll": "Bo B-PER\nran O\n",
        "test.conll": "Cy _\nran _\n",
    }
    corpus = load(corpus_folder(tmp_path / "mine", files))
    assert (corpus.test[0].tokens, len(corpus.dev)) == (("Bo", "ran"), 0)
    assert "test.conll: none of 1 row has a label; the split was left out." in corpus.notes
    assert "There is no test split with labels: dev.conll is the test split." in corpus.notes


def test_gold_labels_of_texts_to_answer_know_the_codes() -> None:
    source = GivenFile("a.csv", b"text,label\nFine,-1\nDull,-1\n")
    assert read_asked(source, {"mood": "text"}).gold == ()


def test_the_table_of_codes() -> None:
    assert no_label({"-": 1, "yes": 2, "no": 2}) == {"-"}
    assert no_label({"-": 1, "+": 2, "0": 2}) == frozenset()
    assert no_label({"-1": 1, "yes": 2, "no": 2}) == {"-1"}
    assert no_label({"1": 1, "0": 3}, ["-1"]) == {"-1"}
    assert no_label({"1": 1, "0": 3}) == frozenset()


SPANS = [{"start": 0, "end": 3, "label": "PER"}]
STRUCTURED = {
    "spans as JSON": [
        {"text": "Ada ran", "label": json.dumps(SPANS)},
        {"text": "It rains", "label": "[]"},
    ],
    "spans as Python": [
        {"text": "Ada ran", "entities": "[(0, 3, 'PER')]"},
        {"text": "It rains", "entities": "[]"},
    ],
    "labels by blanks": [
        {"text": "Ada ran", "tags": "B-PER O"},
        {"text": "It rains", "tags": "O O"},
    ],
    "labels in Python's list": [
        {"text": "Ada ran", "tags": "['B-PER', 'O']"},
        {"text": "It rains", "tags": "['O', 'O']"},
    ],
    "words and labels as numpy prints them": [
        {"tokens": "['Ada' 'ran']", "ner_tags": "['B-PER' 'O']"},
        {"tokens": "['It' 'rains']", "ner_tags": "['O' 'O']"},
    ],
    "words and labels as JSON": [
        {"id": "1", "tokens": '["Ada", "ran"]', "ner_tags": '["B-PER", "O"]'},
        {"id": "2", "tokens": '["It", "rains"]', "ner_tags": '["O", "O"]'},
    ],
}


@pytest.mark.parametrize("form", TEXT_FORMATS)
@pytest.mark.parametrize("case", STRUCTURED)
def test_structured_cells_are_labels_of_words(form: str, case: str, tmp_path: Path) -> None:
    rows = [dict(row) for row in STRUCTURED[case]]
    corpus = read(form, tmp_path, rows, rows)
    (task,) = corpus.tasks
    assert task.scheme == "iob2"
    assert [sentence.tokens for sentence in corpus.train] == [("Ada", "ran"), ("It", "rains")]
    assert [sentence.labels[task.name] for sentence in corpus.train] == [("B-PER", "O"), ("O", "O")]


@pytest.mark.parametrize("form", ["jsonl", "copy", "frames"])
def test_lists_beside_a_text_are_labels_of_its_words(form: str, tmp_path: Path) -> None:
    rows: Rows = [
        {"text": "Ada ran", "tags": ["B-PER", "O"], "intent": "go"},
        {"text": "It rains", "tags": ["O", "O"], "intent": "rain"},
    ] * 3
    corpus = read(form, tmp_path, rows, rows)
    assert {task.name: task.scheme for task in corpus.tasks} == {"tags": "iob2", "intent": "sentence"}


@pytest.mark.parametrize("form", TEXT_FORMATS)
@pytest.mark.parametrize(
    ("cells", "kind"),
    [(['["joy", "love"]', '["joy"]', "[]"], "lists"), (['{"joy": 1}', '{"love": 1}', "{}"], "objects")],
)
def test_other_lists_and_objects_are_refused_with_the_cause(
    form: str, cells: list[str], kind: str, tmp_path: Path
) -> None:
    rows = texts(*cells)
    with pytest.raises(CorpusError, match=rf"label holds {kind} .*one label a text is learned") as raised:
        read(form, tmp_path, rows, rows)
    assert "leave the task out" not in str(raised.value)
    (tmp_path / "b").mkdir()
    beside = texts("x", "y", "x", meta=cells)
    corpus = read(form, tmp_path / "b", beside, beside)
    assert len(corpus.tasks) == 1
    assert f"its cells hold {kind}" in counted(corpus)


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_a_cell_that_is_no_list_is_named(form: str, tmp_path: Path) -> None:
    rows = [{"text": "Ada ran", "tags": "['B-PER', 'O']"}] * 3 + [{"text": "It rains", "tags": "['O', 'O'"}]
    with pytest.raises(CorpusError, match=r"tags holds lists in other rows, and '.*' is none") as raised:
        read(form, tmp_path, rows, rows)
    assert any(place in str(raised.value) for place in ("line 5", "line 4", "row 4"))


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_texts_with_as_many_words_as_another_are_texts(form: str, tmp_path: Path) -> None:
    rows = [
        {
            "text": f"It ran {n} {' x' * (n % 3)}",
            "label": "xy"[n % 2],
            "clean_text": f"it ran {n} {' x' * (n % 3)}",
        }
        for n in range(20)
    ]
    assert {task.scheme for task in read(form, tmp_path, rows, rows).tasks} == {"text"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("['EU' 'rejects'\n 'lamb']", ["EU", "rejects", "lamb"]),
        ("[3 0 7]", [3, 0, 7]),
        ("[3, 0]", [3, 0]),
        ('["it\'s", \'b "c"\']', ["it's", 'b "c"']),
        ("[(0, 3, 'X')]", [(0, 3, "X")]),
        ('"[""a"", ""b""]"', ["a", "b"]),
        ("[Music] hello", None),
        ("[so it goes]", None),
        ("(c) 2020", None),
        ("[" * 100_000, None),
        ("{}", {}),
        ("plain", None),
        (3, None),
    ],
)
def test_cells(text: Any, value: Any) -> None:
    assert cell_value(text) == value


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_a_column_of_names_names_the_numbers(form: str, tmp_path: Path) -> None:
    rows = texts(1, 0, 1, -1, 0, label_text=["pos", "neg", "pos", "", "neg"])
    corpus = read(form, tmp_path, rows, rows)
    assert [task.labels for task in corpus.tasks] == [("neg", "pos")]
    assert labels_of(corpus) == ["pos", "neg", "pos", "neg"]
    assert "label_text: left out: it names the numbers of" in counted(corpus)
    (tmp_path / "b").mkdir()
    other = texts(1, 0, 1, 1, 0, label_text=["pos", "neg", "pos", "neg", "neg"])
    assert len(read(form, tmp_path / "b", other, other).tasks) == 2


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "copy"])
def test_labels_that_training_lacks_are_said(form: str, tmp_path: Path) -> None:
    train = texts("x", "y", "x", "y", kind=[None] * 4)
    dev = texts("x", "y", "x", "y", kind=["a", "b", "a", "b"])
    corpus = read(form, tmp_path, train, dev, dev=dev)
    assert len(corpus.tasks) == 1
    assert "kind: has labels in dev and test and none in train" in counted(corpus)


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_labels_of_words_that_training_lacks_are_said(form: str, tmp_path: Path) -> None:
    train: Rows = [{"tokens": ["Ada", "ran"], "pos_tags": ["N", "V"], "ner_tags": None}] * 2
    dev: Rows = [{"tokens": ["Ada", "ran"], "pos_tags": ["N", "V"], "ner_tags": ["B-PER", "O"]}] * 2
    corpus = read(form, tmp_path, train, dev, dev=dev)
    assert "ner_tags: has labels in dev and test and none in train" in counted(corpus)


@pytest.mark.parametrize(
    ("text", "is_doubted"),
    [
        ("mail\tO\na@b.c\tE-mail\nd@e.f\tE-mail\n", True),
        ("cell\tO\nb\tB-cell\n", True),
        ("Ada\tB-PER\nran\tO\n", False),
        ("Ada\tB-per\nLi\tI-per\nran\tO\n", False),
        ("Ada\tB-per\nRiga\tB-loc\nran\tO\n", False),
        ("Ada\tI-PER\nran\tO\n", False),
    ],
)
def test_types_that_look_like_prefixes_are_doubted(text: str, is_doubted: bool, tmp_path: Path) -> None:
    corpus = load(corpus_folder(tmp_path / "mine", dict.fromkeys(("train.conll", "test.conll"), text)))
    assert any("is its only prefix" in note for note in corpus.notes) == is_doubted


def test_types_of_other_letters_are_types(tmp_path: Path) -> None:
    text = "cell\tO\nb\tB-cell\nt\tT-cell\n"
    corpus = load(corpus_folder(tmp_path / "mine", dict.fromkeys(("train.conll", "test.conll"), text)))
    assert corpus.train[0].labels["ner"] == ("O", "B-B-cell", "B-T-cell")


def test_quotes_of_pandas_are_doubted_in_texts_and_words(tmp_path: Path) -> None:
    text = 'text\tlabel\n"He said ""hi"""\tpos\n"quoted"\tneg\nDull\tpos\n'
    corpus = load(corpus_folder(tmp_path / "a", dict.fromkeys(("train.tsv", "test.tsv"), text)))
    assert "text: in quotation marks, with those inside doubled: 1 in train.tsv, 1 in test.tsv" in counted(
        corpus
    )
    words = 'He\tO\nsaid\tO\n""""\tO\nAda\tB-PER\n'
    corpus = load(corpus_folder(tmp_path / "b", dict.fromkeys(("train.tsv", "test.tsv"), words)))
    assert "tokens: in quotation marks" in counted(corpus)
    plain = '"\tO\nAda\tB-PER\n"\tO\n'
    corpus = load(corpus_folder(tmp_path / "c", dict.fromkeys(("train.tsv", "test.tsv"), plain)))
    assert "quotation" not in counted(corpus)


@pytest.mark.parametrize("ending", ["conll", "jsonl", "csv", "conllu"])
def test_marks_where_files_were_joined_are_left_out_and_counted(ending: str, tmp_path: Path) -> None:
    row = "1\tAda\t_\tPROPN\t_\t_\t0\troot\t_\t_\n\n"
    first, second = {
        "conll": ("Ada B-PER\n\n", "Rome B-LOC\n"),
        "jsonl": ('{"text": "a", "label": "x"}\n', '{"text": "b", "label": "y"}\n'),
        "csv": ("text,label\na,x\n", "b,y\n"),
        "conllu": (row, row),
    }[ending]
    files = dict.fromkeys((f"train.{ending}", f"test.{ending}"), f"\ufeff{first}\ufeff{second}")
    corpus = load(corpus_folder(tmp_path / "mine", files))
    assert not any("\ufeff" in word for sentence in corpus.train for word in sentence.tokens)
    assert f"train.{ending}: 1 byte order mark inside left out (the first on line " in counted(corpus)


_WORDS = Field("tokens", True, "text", [["Ada", "ran"], ["Bo", "sat"]])


@pytest.mark.parametrize(("lengths", "is_task"), [((2, 2), True), ((2, 1), True), ((1, 1), False)])
def test_lists_of_which_most_are_not_as_long_as_the_words_are_no_labels(
    lengths: tuple[int, int], is_task: bool
) -> None:
    column = Field("ner", True, "names", [[0, 1][:length] for length in lengths], ("O", "B-PER"))
    labels, _, left_out = beside_words([_WORDS, column], _WORDS)
    assert labels == ["ner"] * is_task
    assert left_out == ({} if is_task else {"ner": "its lists are not as long as those of the words"})


def test_labels_of_rows_are_of_sentences_where_words_have_labels_and_of_texts_elsewhere() -> None:
    text = Field("text", False, "text", ["Ada ran", "Bo sat"])
    intent = Field("intent", False, "names", [0, 1], ("go", "stay"))
    ner = Field("ner", True, "names", [[1, 0], [1, 0]], ("O", "B-PER"))
    assert beside_words([_WORDS, text, intent, ner], _WORDS)[:2] == (["ner"], ["intent"])
    assert beside_words([_WORDS, text, intent], _WORDS)[:2] == ([], [])


def test_a_column_of_texts_without_any_label_says_so_in_the_report(tmp_path: Path) -> None:
    rows = "text,label,mood\nAda ran,go,\nBo sat,stay,\n"
    corpus = load(corpus_folder(tmp_path / "mine", {f"{split}.csv": rows for split in ("train", "test")}))
    (reading,) = corpus.readings
    assert [(column.title, column.notes) for column in reading.columns][1:] == [
        ("mine (column label)", ()),
        ("mood", ("left out: no row has a label of it.",)),
    ]


@pytest.mark.parametrize(
    ("labels", "is_joined"),
    [("joy;love love;joy", True), ("joy;love joy", True), ("joy;love joy;hate calm", False)],
)
def test_labels_seem_joined_where_each_part_comes_again(labels: str, is_joined: bool) -> None:
    counts = Counter(labels.split())
    doubts = label_doubts(Labels("sentence", counts, "mood", counts))
    assert [doubt for doubt in doubts if "to join several" in doubt] == list(doubts)
    assert bool(doubts) == is_joined
