"""Files that nobody here made: each kind is read right, or refused in a sentence.

There is a table for words and one for texts. `tag` reads the same text as training does.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.corpora import load, save_upload, summarise
from core.corpora.readers.given import read_given
from core.corpora.reading import column_notes
from core.errors import CorpusError
from core.store.facts import read_facts, write_facts
from tests.making import corpus_folder, run_facts

Rows = list[list[str]]

# Each case: the file, its words by sentence, the labels of its last column by sentence, and a note on it.
WORDS: dict[str, tuple[str, Rows, Rows, str]] = {
    "comment of the columns' width": (
        "# sent_id = 1\nAda NN I-NP B-PER\nran VB I-VP O\n\n# sent_id = 2\nBo NN I-NP B-PER\n",
        [["Ada", "ran"], ["Bo"]],
        [["B-PER", "O"], ["B-PER"]],
        "Left out, comments: 2 in train.conll (the first on line 1: '# sent_id = 1')",
    ),
    "comment whose fields are no labels": (
        "# text Ada ran\nAda NN I-NP B-PER\nran VB I-VP O\n\nBo NN I-NP B-PER\n",
        [["Ada", "ran"], ["Bo"]],
        [["B-PER", "O"], ["B-PER"]],
        "Left out, comments: 1 in train.conll (line 1: '# text Ada ran')",
    ),
    "the word #": (
        "Ada NN O\nran VB O\n\n# NN O\n5 VB B-NUM\n",
        [["Ada", "ran"], ["#", "5"]],
        [["O", "O"], ["O", "B-NUM"]],
        "",
    ),
    "a hashtag": ("#fun\tO\nAda\tB-PER\n", [["#fun", "Ada"]], [["O", "B-PER"]], ""),
    "hashtags with a colon": (
        "#BREAKING:\tO\nAda\tB-PER\n\n#Elm:\tB-ORG\nInc\tI-ORG\n",
        [["#BREAKING:", "Ada"], ["#Elm:", "Inc"]],
        [["O", "B-PER"], ["B-ORG", "I-ORG"]],
        "",
    ),
    "hashtags with a colon and spaces": (
        "#BREAKING: O\nAda B-PER\nran O\n\n#Elm: B-ORG\nInc I-ORG\n",
        [["#BREAKING:", "Ada", "ran"], ["#Elm:", "Inc"]],
        [["O", "B-PER", "O"], ["B-ORG", "I-ORG"]],
        "",
    ),
    "the word # with labels of its own": (
        "#\tSYM=Num\tO\na5\tCD\tB-NUM\n\n#\t#\tO\na6\tCD\tB-NUM\na7\tCD\tO\n",
        [["#", "a5"], ["#", "a6", "a7"]],
        [["O", "B-NUM"], ["O", "B-NUM", "O"]],
        "",
    ),
    "ranges and empty nodes among numbered words": (
        "# id = 1\n1-2\tIm\t_\n1\tIn\tO\n2\tdem\tO\n2.1\tx\t_\n3\tElm\tB-LOC\n\n1\tAda\tB-PER\n",
        [["In", "dem", "Elm"], ["Ada"]],
        [["O", "O", "B-LOC"], ["B-PER"]],
        "Left out, rows of multiword ranges and empty nodes: 2 in train.conll (the first on line 2: '1-2",
    ),
    "decimals that number no words": (
        "1.5\tkg\tB-M\n2\tlb\tO\n\n3\tmm\tB-M\n2\tcm\tO\n",
        [["kg", "lb"], ["mm", "cm"]],
        [["B-M", "O"], ["B-M", "O"]],
        "",
    ),
    "numbers of sentences without blank lines": (
        "sentence_id\tword\tner\n1\tAda\tB-PER\n1\tran\tO\n2\tBo\tB-PER\n",
        [["Ada", "ran"], ["Bo"]],
        [["B-PER", "O"], ["B-PER"]],
        "Columns were named by the header of train.conll: _sentence_id, tokens, ner.",
    ),
    "numbers on the first word": (
        "Sentence #\tWord\tner\nSentence: 1\tAda\tB-PER\n\tran\tO\nSentence: 2\tBo\tB-PER\n",
        [["Ada", "ran"], ["Bo"]],
        [["B-PER", "O"], ["B-PER"]],
        "",
    ),
    "sentences numbered in each document": (
        "doc_id sent_id word ner\nd1 1 Ada B-PER\nd1 1 ran O\nd2 1 Bo B-PER\nd2 2 Cy B-PER\n",
        [["Ada", "ran"], ["Bo"], ["Cy"]],
        [["B-PER", "O"], ["B-PER"], ["B-PER"]],
        "",
    ),
    "comments inside a field": (
        "# id = 7\tO\nAda\tB-PER\n\n#id: 8\tO\nBo\tB-PER\n\n#\tnew page\nCy\tO\n",
        [["Ada"], ["Bo"], ["Cy"]],
        [["B-PER"], ["B-PER"], ["O"]],
        "Left out, comments: 3 in train.conll (the first on line 1: '# id = 7\tO')",
    ),
    "comment with a tab above spaces": (
        "# id 7\tdomain=news\nAda _ _ B-PER\nran _ _ O\n",
        [["Ada", "ran"]],
        [["B-PER", "O"]],
        "Left out, comments: 1 in train.conll",
    ),
    "comment above numbered words": (
        "#\thttp://example.org\n1\tAda\tB-PER\n2\tran\tO\n",
        [["Ada", "ran"]],
        [["B-PER", "O"]],
        "Left out, comments: 1 in train.conll",
    ),
    "documents of CoNLL-2012": (
        "#begin document (d); part 000\nd 0 0 Ada NN (S(NP*) - (PER*)\nd 0 1 ran VB (VP*) run *\n\n"
        "d 0 0 Bo NN (S*) - (PER*\nd 0 1 Li NN *) - *)\n#end document\n",
        [["Ada", "ran"], ["Bo", "Li"]],
        [["B-PER", "O"], ["B-PER", "I-PER"]],
        "Left out, document marks: 2 in train.conll (the first on line 1: '#begin document (d); part 000')",
    ),
    "DOCSTART with spaces above tabs": (
        "-DOCSTART- -X- -X- O\n\nAda\tNN\tB-PER\nran\tVB\tO\n",
        [["Ada", "ran"]],
        [["B-PER", "O"]],
        "Left out, document marks: 1 in train.conll (line 1: '-DOCSTART- -X- -X- O')",
    ),
    "numbered DOCSTART": ("1 -DOCSTART- O\n\n1 Ada B-PER\n2 ran O\n", [["Ada", "ran"]], [["B-PER", "O"]], ""),
    "header": (
        "token\tner\nAda\tB-PER\nran\tO\n", [["Ada", "ran"]], [["B-PER", "O"]], "Left out, header lines: 1",
    ),
    "header with an empty line": (
        "Word Tag\n\nAda B-PER\nran O\n", [["Ada", "ran"]], [["B-PER", "O"]], "Left out, header lines: 1",
    ),
    "header in another language": (
        "Wort\tNER\nAda\tB-PER\nran\tO\n", [["Ada", "ran"]], [["B-PER", "O"]], "Left out, header lines: 1",
    ),
    "numbers of one word each": ("1\tAda\tB-PER\n\n2\tran\tO\n", [["Ada"], ["ran"]], [["B-PER"], ["O"]], ""),
    "lines of tabs": (
        "Ada\tB-PER\n\t\nran\tO\n \t \nBo\tB-PER\n",
        [["Ada"], ["ran"], ["Bo"]],
        [["B-PER"], ["O"], ["B-PER"]],
        "Left out, lines of spaces or tabs: 2 in train.conll (the first on line 2)",
    ),
    "carriage returns": (
        "Ada B-PER\rran O\r\rBo B-PER\r", [["Ada", "ran"], ["Bo"]], [["B-PER", "O"], ["B-PER"]], "",
    ),
    "two carriage returns": ("Ada B-PER\r\r\nran O\r\r\n", [["Ada", "ran"]], [["B-PER", "O"]], ""),
    "byte order mark": ("\ufeffAda B-PER\nran O\n", [["Ada", "ran"]], [["B-PER", "O"]], ""),
    "first word text": (
        "text\tO\nmessage\tO\n\nAda\tB-PER\n",
        [["text", "message"], ["Ada"]],
        [["O", "O"], ["B-PER"]],
        "",
    ),
    "BMES": ("Old B-LOC\nMill M-LOC\nCross E-LOC\nTarn S-LOC\n", [["Old", "Mill", "Cross", "Tarn"]],
             [["B-LOC", "I-LOC", "I-LOC", "B-LOC"]], "ner: written in BMES"),
    "underscore": ("Ada B_PER\nLi I_PER\nran O\n", [["Ada", "Li", "ran"]], [["B-PER", "I-PER", "O"]],
                   "ner: written in IOB2 as B_X"),
    "en dash": ("Ada B–PER\nLi I–PER\nran O\n", [["Ada", "Li", "ran"]], [["B-PER", "I-PER", "O"]], "as B–X"),
    "lower case without a type": ("Ada b\nLi i\nran o\n", [["Ada", "Li", "ran"]], [["B-_", "I-_", "O"]],
                                  "no type"),
    "suffix": ("Ada PER-B\nLi PER-I\nran O\n", [["Ada", "Li", "ran"]], [["B-PER", "I-PER", "O"]], "as X-B"),
    "lower case": ("Ada b-per\nLi i-per\nran o\n", [["Ada", "Li", "ran"]], [["B-per", "I-per", "O"]],
                   "prefixes in lower case"),
    "without a type": ("Ada B\nLi I\nran O\n", [["Ada", "Li", "ran"]], [["B-_", "I-_", "O"]], "have no type"),
    "bare types": ("Ada PER\nLi PER\nran O\n", [["Ada", "Li", "ran"]], [["B-PER", "I-PER", "O"]],
                   "written in IO in"),
    "IOE2": ("Ada E-PER\nLi E-PER\nran O\n", [["Ada", "Li", "ran"]], [["B-PER", "B-PER", "O"]],
             "written in IOE"),
    "irregular IOBES": (
        "A S-PER\nB I-PER\nC O\nD B-PER\nE E-PER\nF I-PER\n",
        [list("ABCDEF")],
        [["B-PER", "B-PER", "O", "B-PER", "I-PER", "B-PER"]],
        "labels that continue no span or leave one open: 2 in train",
    ),
}  # fmt: skip


def test_a_hash_whose_only_label_is_a_sign_is_a_word(tmp_path: Path) -> None:
    for apart in "\t", " ":
        files = dict.fromkeys(
            ("train.conll", "test.conll"), f"#{apart}=\nfive{apart}CD\n\nAda{apart}NN\nBo{apart}NN\n"
        )
        corpus = load(corpus_folder(tmp_path / f"of{ord(apart)}", files))
        assert [sentence.tokens for sentence in corpus.train] == [("#", "five"), ("Ada", "Bo")]


def test_conllu_under_another_name_is_told_its_ending(tmp_path: Path) -> None:
    rows = "1-2 Im _ _ _ _ _ _ _ _\n1 In in ADP _ _ 3 case _ _\n2 dem der DET _ _ 3 det _ _\n3 Haus x NOUN"
    text = f"{rows} _ _ 0 root _ _\n".replace(" ", "\t")
    corpus = load(corpus_folder(tmp_path / "mine", dict.fromkeys(("train.conll", "test.conll"), text)))
    assert corpus.train[0].tokens == ("In", "dem", "Haus")
    assert any("(end the name of a CoNLL-U file in .conllu): 1 in train.conll" in n for n in corpus.notes)


def test_lines_are_right_below_rows_that_are_left_out(tmp_path: Path) -> None:
    text = "1\tA\tO\n\n1-2\tIm\t_\n1\tIn\tO\n1.1\tx\t_\n2\tdem\tB-X\n2.1\ty\t_\n3\tElm\tb_Y\n"
    folder = corpus_folder(tmp_path / "mine", dict.fromkeys(("train.conll", "test.conll"), text))
    with pytest.raises(CorpusError, match="line 8: 'b_Y' among"):
        load(folder)


def test_many_words_in_one_sentence_are_doubted(tmp_path: Path) -> None:
    text = "Ada B-PER\nran O\n"
    files = {"train.conll": text * 100, "test.conll": text}
    (reading,) = load(corpus_folder(tmp_path / "mine", files)).readings
    (words,) = (column for column in reading.columns if column.taken == "words")
    assert words.doubts == ("the 200 words of train.conll are one sentence; check where its sentences end.",)


@pytest.mark.parametrize("case", WORDS)
def test_words_are_read_right(case: str, tmp_path: Path) -> None:
    text, words, labels, note = WORDS[case]
    files = dict.fromkeys(("train.conll", "test.conll"), text)
    corpus = load(corpus_folder(tmp_path / "mine", files))
    task = corpus.tasks[-1]
    assert task.name == {"Word Tag": "Tag", "Wort\tNER": "NER"}.get(text.split("\n")[0], "ner")
    assert task.scheme == "iob2"
    for split in (corpus.train, corpus.test):
        assert [list(sentence.tokens) for sentence in split] == words
        assert [list(sentence.labels[task.name]) for sentence in split] == labels
    assert any(note in shown for shown in corpus.notes) or not note
    # What is tagged, and scored against its gold labels, is read by the same reader.
    given = read_given(text.encode(), "given.conll", {task.name: "iob2"})
    assert [list(sentence.tokens) for sentence in given.sentences] == words
    assert [list(sentence.labels[task.name]) for sentence in given.sentences] == labels
    assert len([note for note in given.notes if note.startswith("Left out")]) == len(
        [note for note in corpus.notes if note.startswith("Left out")]
    )
    upload = load(str(save_upload({name: content.encode() for name, content in files.items()}, "mine")))
    assert upload.text_hash == corpus.text_hash


REFUSED = {
    "one label in another spelling": (
        "Ada B-PER\nLi I-PER\nran O\nElm B-LOC\nBay I_LOC\n",
        "line 5: 'I_LOC' among 6 span labels; write I-LOC.",
    ),
    "zero for O": ("Ada B-PER\nLi I-PER\nran 0\n", "line 3: '0' among 4 span labels; write O."),
    "a bare type": (
        "Ada B-PER\nLi I-PER\nran O\nElm PER\n",
        "line 4: 'PER' among 4 span labels; write B-PER or I-PER.",
    ),
    "nobody wrote O": ("Ada B-PER\nran _\n", "line 2: '_' among 2 span labels; write O."),
    "an unknown header": ("Mot Nature\nAda B-PER\nran O\n", "If this line names the columns, delete it."),
    "a tab among spaces": ("Ada B-PER\n\t O\n", "line 2: holds a tab"),
    "a carriage return inside": ("Ada B-PER\rran O\nBo O\n", "line 1: has a carriage return inside"),
    "a hashtag without a label": ("Ada B-PER\n\n#fun\n", "line 3: expected 2 columns"),
    "texts without known names": ("phrase\tmark\nA warm one\t1\nA dull one\t0\n", "is a text and no word"),
    "texts without names": (
        "s1\t1\t*\tThey walk it often .\ns1\t0\t*\tThey walk often it .\n",
        "is a text and no word",
    ),
    "numbers of sentences without a name": (
        "1\tAda\tB-PER\n1\tran\tO\n2\tBo\tB-PER\n3\tCy\tB-PER\n",
        "line 1: column 1 seems to number sentences, and no blank line ends one.",
    ),
    "no labels": ("1\tAda\n2\tran\n", "no column holds labels (_id, tokens)"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_right_is_refused(case: str, tmp_path: Path) -> None:
    text, problem = REFUSED[case]
    folder = corpus_folder(tmp_path / "mine", dict.fromkeys(("train.tsv", "test.tsv"), text))
    with pytest.raises(CorpusError) as raised:
        load(folder)
    assert str(raised.value).startswith(f"{folder}/train.tsv")
    assert problem in str(raised.value)


TEXTS = {
    "GLUE's SST-2": ("sentence\tlabel\na warm film .\t1\na dull one .\t0\n", ["mine"], "a warm film .", None),
    "GLUE's STS-B": (
        "index\tsentence1\tsentence2\tscore\n0\ta dog runs\ta dog ran\t4.8\n1\ta cat\ta man\t0.2\n",
        ["mine"], "a dog runs", "a dog ran",
    ),
    "GLUE's MRPC": (
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tHe ran .\tHe left .\n0\t9\t3\tNo\tNo\n",
        ["Quality"], "He ran .", "He left .",
    ),
    "GLUE's QQP": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tWho ran ?\tWho left ?\t0\n",
        ["is_duplicate"], "Who ran ?", "Who left ?",
    ),
    "premise and hypothesis": (
        "premise\thypothesis\tlabel\nHe ran .\tHe moved .\tyes\nHe ran .\tHe slept .\tno\n",
        ["mine"], "He ran .", "He moved .",
    ),
}  # fmt: skip


_SPANS = '"[{""start"":0,""end"":3,""labels"":[""PER""]}]"'
# Each case: ending, content, the kind of each task, the labels of its first sentence, and a note on it.
ROWS = {
    "-1 in CSV": (
        "csv", "text,label\nA warm film,1\nDull,0\nHm,-1\nFine,1\n", {"mine": "text"}, ("1",),
        "mine: no label: 1 in train, 1 in test (-1).",
    ),
    "-1 in pairs of JSONL": (
        "jsonl",
        "".join(
            json.dumps({"premise": f"A {n} .", "hypothesis": "It is dry .", "label": n}) + "\n"
            for n in (1, -1, 2)
        ),
        {"mine": "pair"}, ("1",), "mine: no label: 1 in train, 1 in test (-1).",
    ),
    "- among spans": (
        "conll", "Ada\tB-PER\nByron\tI-PER\n\njvc/3\t-\nBo\tB-PER\n\nRome\tB-LOC\nfell\tO\n",
        {"ner": "iob2"}, ("B-PER", "I-PER"), "ner: words without a label: 1 in train, 1 in test. 2 sentences",
    ),
    "spans as JSON in a cell": (
        "csv", f"text,label\nAda ran,{_SPANS}\nIt rains,[]\n", {"ner": "iob2"}, ("B-PER", "O"), "",
    ),
    "a tag for each word in a cell": (
        "tsv", "sentence\ttags\nAda ran\tB-PER O\nIt rains\tO O\n", {"tags": "iob2"}, ("B-PER", "O"), "",
    ),
    "TSV quoted by pandas": (
        "tsv", 'text\tlabel\n"He said ""hi"" to her"\tpos\nDull\tneg\n"""Nice"""\tpos\n', {"mine": "text"},
        ("pos",), "text: in quotation marks, with those inside doubled: 2 in train.tsv, 2 in test.tsv",
    ),
    "a byte order mark inside": (
        "tsv", "Ada\tB-PER\nran\tO\n\n\ufeffRome\tB-LOC\nfell\tO\n", {"ner": "iob2"}, ("B-PER", "O"),
        "train.tsv: 1 byte order mark inside left out (the first on line 4)",
    ),
    "label and label_text": (
        "jsonl",
        "".join(
            json.dumps({"text": f"It {n}", "label": n % 2, "label_text": ("neg", "pos")[n % 2]}) + "\n"
            for n in (1, 0, 3)
        ),
        {"mine": "text"}, ("pos",), "label_text: left out: it names the numbers of mine.",
    ),
    "types like prefixes": (
        "txt", "mail\tO\na@b.c\tE-mail\nd@e.f\tE-mail\nnow\tO\n", {"ner": "iob2"},
        ("O", "B-mail", "B-mail", "O"), "ner: E- is its only prefix: E-mail may be types of their own.",
    ),
    "booleans beside tokens": (
        "jsonl", '{"tokens":["Ada","ran"],"space":[true,false],"ner_tags":["B-PER","O"]}\n', {"ner": "iob2"},
        ("B-PER", "O"), "Columns left out: space.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ROWS)
def test_rows_are_read_for_what_they_are(case: str, tmp_path: Path) -> None:
    ending, text, schemes, labels, note = ROWS[case]
    files = dict.fromkeys((f"train.{ending}", f"test.{ending}"), text)
    corpus = load(corpus_folder(tmp_path / "mine", files))
    assert {task.name: task.scheme for task in corpus.tasks} == schemes
    assert tuple(corpus.train[0].labels.values()) == (labels,)
    assert any(shown.startswith(note) for shown in corpus.notes) or not note


def test_labels_that_training_lacks_are_said(tmp_path: Path) -> None:
    files = {
        "train.conll": "token\tpos\tner\nAda\tNNP\t_\nran\tVBD\t_\n",
        "test.conll": "token\tpos\tner\nBo\tNNP\tB-PER\nsat\tVBD\tO\n",
    }
    corpus = load(corpus_folder(tmp_path / "mine", files))
    assert [task.name for task in corpus.tasks] == ["pos"]
    assert any(note.startswith("_ner: has labels in test and none in train") for note in corpus.notes)


@pytest.mark.parametrize("case", TEXTS)
def test_texts_are_read_under_the_names_that_people_use(case: str, tmp_path: Path) -> None:
    text, tasks, first, second = TEXTS[case]
    corpus = load(corpus_folder(tmp_path / "mine", dict.fromkeys(("train.tsv", "test.tsv"), text)))
    assert [task.name for task in corpus.tasks] == tasks
    assert " ".join(corpus.train[0].tokens) == first
    assert (None if second is None else second.split()) == (
        corpus.train[0].second and list(corpus.train[0].second)
    )


def test_a_file_whose_ending_is_not_read_is_named(tmp_path: Path) -> None:
    files = dict.fromkeys(("train.conll", "x.dev.conll", "x.test.annotated"), "Ada B-PER\nran O\n")
    notes = load(corpus_folder(tmp_path / "mine", files)).notes
    assert notes[0].startswith("x.test.annotated was left out: files that end in '.annotated' are not read.")
    assert notes[1] == "There is no test file: x.dev.conll is the test split."


@pytest.mark.parametrize(
    ("names", "text", "problem"),
    [
        (
            ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet", "test.parquet"], "",
            "train-00001-of-00002.parquet are parts of the train split; name the folder hub:FOLDER",
        ),
        (["train.tsv", "train.csv"], "", "both train.csv and train.tsv could be the train split; keep one"),
        (["train.conll.gz", "test.conll.gz"], "", "has no train file; unpack train.conll.gz."),
        (["train.conll", "test.ZIP"], "a O\n", "has no test file; unpack test.ZIP."),
        (["train.conll", "test.conllup"], "a O\n", "has no test file; expected test.conll"),
        (["train.csv", "test.csv"], "text;label\nGut, ja;1\n", "line 1: has semicolons and no comma; save"),
        (["train.csv", "test.csv"], "sep=;\ntext;label\nGut;1\n", "line 1: has semicolons and no comma"),
        (["train.csv", "test.csv"], "text\tlabel\nGut\t1\n", "line 1: has tabs and no comma"),
        (["train.conll", "test.conll"], "\x1f\x8b", "train.conll is compressed (gzip or ZIP); unpack it"),
    ],
)  # fmt: skip
def test_the_advice_fits_the_file(names: list[str], text: str, problem: str, tmp_path: Path) -> None:
    folder = Path(corpus_folder(tmp_path / "mine", {}))
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(CorpusError) as raised:
        load(str(folder))
    assert problem in str(raised.value)


def test_a_file_that_is_not_read_is_unpacked_or_written_anew(tmp_path: Path) -> None:
    files = dict.fromkeys(("train.conll", "dev.conll", "test.conll.gz"), "Ada B-PER\nran O\n")
    note = load(corpus_folder(tmp_path / "a", files)).notes[0]
    assert note.endswith("'.gz' are not read. Unpack it, to have it as the test split.")
    files = dict.fromkeys(("train.conll", "dev.conll", "test.conllup"), "Ada B-PER\nran O\n")
    note = load(corpus_folder(tmp_path / "b", files)).notes[0]
    assert "Write its columns of words and labels as test.conll, to have it" in note


def test_spaces_and_features_without_a_value_of_conllu(tmp_path: Path) -> None:
    rows = (
        "1\tAda\t_\tVERB \t_\tNumberSing\t0\troot\t_\t_\n2\tran\t_\tVERB\t_\tTense=Past\t1\tobj\t_\t_\n \t\n"
    )
    corpus = load(corpus_folder(tmp_path / "mine", dict.fromkeys(("train.conllu", "test.conllu"), rows)))
    assert corpus.train[0].labels["upos"] == ("VERB", "VERB")
    assert (
        "a feature without a value, which is left out (the first on line 1: 'NumberSing')" in corpus.notes[0]
    )


def test_words_without_a_label_are_counted_and_not_learned(tmp_path: Path) -> None:
    text = "Ada\tB-PER\nran\t_\n\nBo\tB-PER\nleft\tO\n\nCy\t\nsat\tO\n"
    corpus = load(corpus_folder(tmp_path / "mine", dict.fromkeys(("train.conll", "test.conll"), text)))
    assert ["ner" in sentence.labels for sentence in corpus.train] == [False, True, False]
    note = "ner: words without a label: 2 in train, 2 in test. 4 sentences with such words are not annotated"
    assert any(shown.startswith(note) for shown in corpus.notes)


def test_headers_of_other_columns_are_refused(tmp_path: Path) -> None:
    files = {"train.tsv": "Token\tPOS\tNER\nAda\tNN\tO\n", "test.tsv": "token\tner\tpos\nBo\tB-PER\tNN\n"}
    with pytest.raises(CorpusError, match=r"test\.tsv: its header names the columns tokens, ner, pos"):
        load(corpus_folder(tmp_path / "mine", files))


def test_a_split_without_a_span_has_no_score_and_says_so(tmp_path: Path) -> None:
    files = {"train.conll": "Ada B-PER\nran O\n", "dev.conll": "it O\nran O\n", "test.conll": "Bo B-PER\n"}
    notes = load(corpus_folder(tmp_path / "mine", files)).notes
    assert "ner: its dev score is undefined: the dev split has no span of this task." in notes
    assert not any("test score" in note for note in notes)


def test_the_report_says_what_each_column_was_taken_for(tmp_path: Path) -> None:
    text = "1 Ada NN PER x\n2 Li NN PER x\n3 ran VB O x\n\n1 Bo nn ORG x\n2 fell VB O x\n"
    summary = summarise(corpus_folder(tmp_path / "mine", dict.fromkeys(("train.conll", "test.conll"), text)))
    (reading,) = summary.readings
    assert reading.layout == "CoNLL columns separated by spaces"
    assert reading.files == {"train": "train.conll", "test": "test.conll"}
    shown = [(column.name, column.taken_for, column.guessed) for column in reading.columns]
    assert shown == [
        ("_id", "skipped", True),
        ("tokens", "words", True),
        ("pos", "labels of words: 3 labels", True),
        ("ner", "spans of words: 4 spans, 3 labels", True),
        ("labels", "labels of words: 1 label", True),
    ]
    assert reading.columns[1].examples == ("Ada", "Li", "ran")
    assert reading.columns[2].doubts == ("labels differ only in case: NN and nn.",)
    assert "adjacent spans of one type count as one" in " ".join(column_notes(reading.columns[3]))
    stored, problem = read_facts(write_facts(run_facts(readings=(reading,))))
    assert stored is not None, problem
    assert stored.readings == (reading,)
