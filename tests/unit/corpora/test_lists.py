"""Files as people have them: lists of words, spans of characters, a word a line with a sentence number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from core.corpora import Corpus, load, save_upload
from core.errors import CorpusError

Rows = list[dict[str, Any]]

TOKENS = [["Ada", "ran"], ["Bo"]]
NAMES = ["O", "B-PER", "I-PER"]
NAMED = [{"tokens": ["Ada", "ran"], "ner_tags": ["B-PER", "O"]}, {"tokens": ["Bo"], "ner_tags": ["B-PER"]}]
NUMBERED = [{"tokens": ["Ada", "ran"], "ner_tags": [1, 0]}, {"tokens": ["Bo"], "ner_tags": [1]}]
FEATURE = {"feature": {"names": NAMES, "_type": "ClassLabel"}, "_type": "List"}


def lines(rows: Rows) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


def table(rows: Rows, feature: Any = None) -> pa.Table:
    made = pa.Table.from_pylist(rows)
    if feature is None:
        return made
    return made.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": feature}})})


def parquet(rows: Rows, feature: Any = None) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table(rows, feature), sink)
    return bytes(sink.getvalue())


def feather(rows: Rows, feature: Any = None) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.feather.write_feather(table(rows, feature), sink)
    return bytes(sink.getvalue())


def stream(rows: Rows, feature: Any = None) -> bytes:
    sink, data = pa.BufferOutputStream(), table(rows, feature)
    with pa.ipc.new_stream(sink, data.schema) as writer:
        writer.write_table(data)
    return bytes(sink.getvalue())


def loaded(folder: Path, ending: str, content: bytes, test: bytes | None = None) -> Corpus:
    folder.mkdir(exist_ok=True)
    (folder / f"train{ending}").write_bytes(content)
    (folder / f"test{ending}").write_bytes(content if test is None else test)
    return load(str(folder))


# Each case: ending, content, the words, the labels of `ner` (or of the only task), and how it is laid out.
READ: dict[str, tuple[str, bytes, list[list[str]], list[list[str]], str]] = {
    name: (ending, content, TOKENS, [["B-PER", "O"], ["B-PER"]], layout)
    for name, (ending, content, layout) in {
        "array": (".json", json.dumps(NAMED).encode(), "JSON lists"),
        "array of many lines": (".json", json.dumps(NAMED, indent=1).encode(), "JSON lists"),
        "data": (".json", json.dumps({"version": "1", "data": NAMED}).encode(), "JSON lists"),
        "json of lines": (".json", lines(NAMED), "JSONL lists"),
        "jsonl": (".jsonl", lines(NAMED) + b"\n", "JSONL lists"),
        "words": (".jsonl", lines(NAMED).replace(b"tokens", b"words"), "JSONL lists"),
        "byte order mark": (".jsonl", b"\xef\xbb\xbf" + lines(NAMED), "JSONL lists"),
        "names beside": (
            ".jsonl", lines([NUMBERED[0] | {"ner_tags_names": NAMES}, NUMBERED[1]]), "JSONL lists",
        ),
        "a list of something else": (
            ".jsonl", lines([{"spans": ["a"] * 3, **NAMED[0]}, {"spans": [], **NAMED[1]}]), "JSONL lists",
        ),
        "label studio's CoNLL": (
            ".conll", b"-DOCSTART- -X- O\nAda -X- _ B-PER\nran -X- _ O\n\nBo -X- _ B-PER\n",
            "CoNLL columns separated by spaces",
        ),
        "ids and texts": (
            ".jsonl", lines([{"id": "0", "text": "a", **row, "_x": [1]} for row in NAMED]), "JSONL lists",
        ),
        "number on the first word": (
            ".csv", b"Sentence #,Word,ner\n1,Ada,B-PER\n,ran,O\n2,Bo,B-PER\n", "CSV of a word a line",
        ),
        "number on each word": (
            ".csv", b",Word,sentence_id,_x,ner\r\n0,Ada,1,,B-PER\r\n1,ran,1,,O\r\n2,Bo,2,,B-PER\r\n",
            "CSV of a word a line",
        ),
        "numbers anew in each document": (
            ".csv", b"doc_id,sent_id,Word,ner\na,1,Ada,B-PER\na,1,ran,O\nb,1,Bo,B-PER\n",
            "CSV of a word a line",
        ),
        "parquet": (".parquet", parquet(NAMED), "Parquet lists"),
        "parquet of datasets": (".parquet", parquet(NUMBERED, {"ner_tags": FEATURE}), "Parquet lists"),
        "older datasets": (
            ".parquet", parquet(NUMBERED, {"ner_tags": [{"names": NAMES, "_type": "ClassLabel"}]}),
            "Parquet lists",
        ),
        "feather": (".feather", feather(NUMBERED, {"ner_tags": FEATURE}), "Feather lists"),
        "arrow file": (".arrow", feather(NAMED), "Arrow lists"),
        "arrow stream": (".arrow", stream(NUMBERED, {"ner_tags": FEATURE}), "Arrow lists"),
    }.items()
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_each_format_is_read_alike_from_a_folder_and_as_an_upload(case: str, tmp_path: Path) -> None:
    ending, content, words, labels, layout = READ[case]
    corpus = loaded(tmp_path / "mine", ending, content)
    assert [task.name for task in corpus.tasks] == ["ner"]
    for split in (corpus.train, corpus.test):
        assert [list(sentence.tokens) for sentence in split] == words
        assert [list(sentence.labels["ner"]) for sentence in split] == labels
    (reading,) = corpus.readings
    assert reading.layout == layout
    assert dict(reading.files) == {"train": f"train{ending}", "test": f"test{ending}"}
    read = {column.name: column for column in reading.columns}
    assert read["tokens"].examples[:2] == tuple(words[0][:2])
    assert read["ner"].taken == "spans"
    upload = save_upload({f"{split}{ending}": content for split in ("train", "test")}, "mine")
    assert load(str(upload)).text_hash == corpus.text_hash


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("labels.json", NAMES),
        ("labels.json", {name: number for number, name in enumerate(NAMES)}),
        ("labels.json", {str(number): name for number, name in enumerate(NAMES)}),
        ("labels.json", {"ner_tags": NAMES, "other": {"x": 0}}),
        (
            "dataset_info.json",
            {"features": {"ner_tags": FEATURE, "tokens": {"feature": {"dtype": "string"}}}},
        ),
    ],
)
@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_names_of_numbers_may_stand_beside_the_files(
    ending: str, name: str, names: Any, tmp_path: Path
) -> None:
    content = lines(NUMBERED) if ending == ".jsonl" else parquet(NUMBERED)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text(json.dumps(names))
    corpus = loaded(tmp_path / "mine", ending, content)
    assert [list(sentence.labels["ner"]) for sentence in corpus.train] == [["B-PER", "O"], ["B-PER"]]
    for wrong in ("{", '{"ner_tags": ["O"], "x": 3}', "[1]", '{"O": 1}'):
        (tmp_path / "mine" / name).write_text(wrong)
        with pytest.raises(CorpusError, match=f"{name}(:| is no JSON)"):
            load(str(tmp_path / "mine"))


# The text of each tool's export; "New York" is one span, its parts lie in it, and "da" is part of a word.
TEXT = "Ada saw New York. Bo ran."
_SPANS = [[0, 3, "PER"], [8, 16, "LOC"], [12, 16, "CITY"], [18, 20, "PER"]]
_DICTS = [dict(zip(("start", "end", "label"), span, strict=True)) for span in _SPANS]
_VALUES = [{"start": start, "end": end, "labels": [kind]} for start, end, kind in _SPANS]
_OFFSETS = [{"label": kind, "start_offset": start, "end_offset": end} for start, end, kind in _SPANS]
_TASK = {
    "id": 1,
    "data": {"text": TEXT},
    "annotations": [
        {"was_cancelled": True, "result": []},
        {
            "result": [
                *({"value": value} for value in _VALUES),
                {"value": {"choices": ["x"]}},
                {"type": "relation"},
            ]
        },
        {"result": []},
    ],
}
SPANS: dict[str, tuple[str, Rows, str]] = {
    "doccano": (".jsonl", [{"id": 1, "text": TEXT, "label": _SPANS, "Comments": []}], "doccano"),
    "doccano, labels": (".jsonl", [{"text": TEXT, "labels": _SPANS}], "doccano"),
    "doccano, entities": (
        ".jsonl",
        [{"text": TEXT, "entities": _OFFSETS}],
        "doccano",
    ),
    "doccano, json": (".json", [{"text": TEXT, "label": _SPANS}], "doccano"),
    "prodigy": (".jsonl", [{"text": TEXT, "spans": _DICTS, "answer": "accept"}], "Prodigy"),
    "label studio": (".json", [_TASK], "Label Studio"),
    "json-min": (".json", [{"id": 1, "text": TEXT, "label": _VALUES}], "Label Studio JSON-MIN"),
}  # fmt: skip


@pytest.mark.parametrize("case", SPANS)
def test_spans_of_characters_become_labels_of_words(case: str, tmp_path: Path) -> None:
    ending, rows, tool = SPANS[case]
    content = json.dumps(rows).encode() if ending == ".json" else lines(rows)
    corpus = loaded(tmp_path / "mine", ending, content)
    assert [(" ".join(s.tokens), " ".join(s.labels["ner"])) for s in corpus.train] == [
        ("Ada saw New York .", "B-PER O B-LOC I-LOC O"),
        ("Bo ran .", "B-PER O O"),
    ]
    (reading,) = corpus.readings
    assert reading.layout == f"{tool} spans"
    assert [(column.name, column.guessed) for column in reading.columns] == [("tokens", False), ("ner", True)]
    note = "spans that overlap a longer one or lie in it: 1 in train, 1 in test; left out."
    assert f"ner: {note}" in corpus.notes
    assert any("further annotations: 1 in train" in note for note in corpus.notes) == (rows == [_TASK])


def _doccano(text: str, *spans: list[Any]) -> Rows:
    return [{"text": text, "label": list(spans)}]


_TOKENS = [{"text": "don't", "start": 0, "end": 5}, {"text": " ", "start": 5, "end": 6}]


@pytest.mark.parametrize(
    ("rows", "words", "labels", "note"),
    [
        (_doccano("Ada ran", [1, 5, "X"]), "Ada ran", "B-X I-X", "inside a word: 1 in train, 1 in test"),
        (_doccano("Ada ran", [0, 4, "X"]), "Ada ran", "B-X O", ""),
        (_doccano("Ada  ran", [4, 5, "X"], [3, 3, "X"]), "Ada ran", "O O", "that hold no word: 2 in train"),
        (_doccano("a b c", [0, 3, "X"], [2, 5, "Y"]), "a b c", "B-X I-X O", "lie in it: 1 in train"),
        (_doccano("a b c", [0, 3, "X"], [0, 3, "X"]), "a b c", "B-X I-X O", ""),
        (_doccano("Paris-London", [0, 5, "X"], [6, 12, "X"]), "Paris-London", "B-X", "lie in it: 1 in train"),
        (_doccano("\u6211\u5728\u5317\u4eac", [0, 4, "X"]), "\u6211\u5728\u5317\u4eac", "B-X", ""),
        (
            [*_doccano("a b", [0, 1, "X"]), {"text": "c", "label": None}],
            "a b", "B-X O", "train.jsonl: 1 row that nobody annotated or accepted left out.",
        ),
        (_doccano("Go. Up. On.", [0, 7, "X"]), "Go . Up .|On .", "B-X I-X I-X I-X|O O", ""),
        (_doccano("so\u00adft x", [0, 5, "First name"]), "soft x", "B-First name O", ""),
        (_doccano("Ada's", [0, 3, "X"]), "Ada 's", "B-X O", ""),
        (
            [{"text": "don't ", "tokens": _TOKENS, "spans": [{"start": 0, "end": 5, "label": "X"}]}],
            "don't", "B-X", "",
        ),
        (
            [
                {"text": "a b", "spans": [{"start": 0, "end": 1, "label": "X"}]},
                {"text": "c", "spans": [], "answer": "reject"},
            ],
            "a b", "B-X O", "train.jsonl: 1 row that nobody annotated or accepted left out.",
        ),
        (
            [{"text": "\U0001f600 Bo", "label": [{"start": 3, "end": 5, "text": "Bo", "labels": ["X"]}]}],
            "\U0001f600 Bo", "O B-X", "count UTF-16 units: 1 in train",
        ),
    ],
)  # fmt: skip
def test_spans_that_do_not_fit_are_converted_and_counted(
    rows: Rows, words: str, labels: str, note: str, tmp_path: Path
) -> None:
    corpus = loaded(tmp_path / "mine", ".jsonl", lines(rows))
    assert "|".join(" ".join(sentence.tokens) for sentence in corpus.train) == words
    assert "|".join(" ".join(sentence.labels["ner"]) for sentence in corpus.train) == labels
    told = [text for text in corpus.notes if "spans that" in text or "spans whose" in text or "row" in text]
    assert note in " ".join(told) if note else not told


def _quoting(text: str, *spans: tuple[int, int, str]) -> Rows:
    """A task of Label Studio whose spans quote their text, as its exports have them."""
    results = [
        {"value": {"start": start, "end": end, "text": quoted, "labels": ["X"]}}
        for start, end, quoted in spans
    ]
    return [{"id": 17, "data": {"text": text}, "annotations": [{"result": results}]}]


@pytest.mark.parametrize(
    ("rows", "labels", "note"),
    [
        # Of two places that both have the quoted word the other spans of the text decide.
        (_quoting("\U0001f600 aa Bo", (3, 4, "a"), (6, 8, "Bo")), "O B-X B-X", "UTF-16 units: 2 in train"),
        # A program has annotated in characters, and a person beside it in UTF-16 units.
        (_quoting("\U0001f600 Al Bo", (2, 4, "Al"), (6, 8, "Bo")), "O B-X B-X", "UTF-16 units: 1 in train"),
        (_quoting("Al\nBo ran", (0, 5, "Al\\nBo")), "B-X I-X O", ""),
        (_quoting("Al\nBo ran", (0, 5, "Al Bo")), "B-X I-X O", ""),
        (_quoting("Al Bo ran", (1, 4, "l B")), "B-X I-X O", "inside a word: 1 in train, 1 in test; widened"),
        (_quoting("\U0001f600 Albo", (3, 5, "Al")), "O B-X", "inside a word: 1 in train, 1 in test; widened"),
    ],
)  # fmt: skip
def test_spans_are_where_their_quotes_are(rows: Rows, labels: str, note: str, tmp_path: Path) -> None:
    corpus = loaded(tmp_path / "mine", ".json", json.dumps(rows).encode())
    assert [" ".join(sentence.labels["ner"]) for sentence in corpus.train] == [labels]
    assert note in " ".join(corpus.notes)


@pytest.mark.parametrize(
    ("rows", "there"),
    [
        (_quoting("Al saw Bo", (0, 2, "Bo")), "quotes 'Bo', and the text has 'Al' there"),
        (_quoting("Al saw Bo", (0, 90, "Bo")), "quotes 'Bo', and the text has 'Al saw Bo' there"),
        (_quoting("Al saw Bo", (0, 2, "Al"), (-2, 2, "Bo")), "quotes 'Bo', and the text has no such place"),
        (_quoting("\U0001f600 Al saw Bo", (4, 6, "Al")), "quotes 'Al', and the text has ' s' there"),
        (_quoting("\U0001f600 Al", (1, 3, "Al")), "quotes 'Al', and the text has ' A' there"),
    ],
)  # fmt: skip
def test_a_span_that_contradicts_its_quote_is_refused(rows: Rows, there: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError) as raised:
        loaded(tmp_path / "mine", ".json", json.dumps(rows).encode())
    assert "train.json, row 1: task 17: the span from" in str(raised.value)
    assert there in str(raised.value)


_BESIDE = [{"_n": 1, "id": 1, "text": TEXT, "intent": "go", "cats": {"a": 1}, "note": "", "label": _SPANS}]


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        (_BESIDE, "Columns left out: intent, cats."),
        ([_TASK | {"data": {"text": TEXT, "intent": "go"}}], "Columns left out: intent."),
        ([_TASK], "annotations that are no spans, such as choices: 2 in train, 2 in test; left out."),
    ],
)
def test_fields_beside_spans_are_told(rows: Rows, note: str, tmp_path: Path) -> None:
    corpus = loaded(tmp_path / "mine", ".json", json.dumps(rows).encode())
    assert [task.name for task in corpus.tasks] == ["ner"]
    assert any(note in told for told in corpus.notes)
    skipped = [column.name for column in corpus.readings[0].columns if column.taken == "skipped"]
    assert ", ".join(skipped) in note


def test_columns_beside_the_labels_are_skipped_and_told(tmp_path: Path) -> None:
    rows: Rows = [
        {"id": [0, 1], "n": ["1", "2"], "source": "go", "tokens": ["a", "b"], "pos": ["X", "Y"], "ner": None},
        {"id": [0, 1], "n": ["1", "2"], "source": "go", "tokens": ["c", "d"], "pos": None, "ner": None},
        {"id": [], "n": [], "source": "go", "tokens": [], "pos": [], "ner": []},
    ]
    corpus = loaded(tmp_path / "mine", ".jsonl", lines(rows))
    assert [(dict(s.labels), len(s.tokens)) for s in corpus.train] == [({"pos": ("X", "Y")}, 2), ({}, 2)]
    (reading,) = corpus.readings
    assert [column.name for column in reading.columns if column.taken == "skipped"] == [
        "id", "ner", "n", "source",
    ]  # fmt: skip
    assert "Columns left out: id, ner, n, source." in corpus.notes
    assert "train.jsonl: 1 row without words left out." in corpus.notes


_NULL_FIRST: Rows = [{"tokens": ["Li", "sat"], "ner_tags": None}, *NAMED]
_LATE_NUMBERS: Rows = [{"tokens": ["Li", "sat"], "ner_tags": None}, *NUMBERED]
_LATE_INTENT: Rows = [NAMED[0], *(row | {"intent": kind} for kind in "abab" for row in NAMED)]
_NOT_LABELLED = [{"text": "Li sat", "id": 1}, {"text": "Ada ran", "label": [{"start": 0, "end": 3}]}]
_NOT_LABELLED[1]["label"][0]["labels"] = ["PER"]  # type: ignore[index]
_NO_SPANS: Rows = [{"text": "Li sat", "answer": "accept"}]
_NO_SPANS += [{"text": "Ada ran", "spans": [{"start": 0, "end": 3, "label": "PER"}], "answer": "accept"}]

# Each case: ending, content, and the labels of its last task in the first two sentences.
LATE: dict[str, tuple[str, bytes, list[list[str] | None]]] = {
    "labels": (".jsonl", lines(_NULL_FIRST), [None, ["B-PER", "O"]]),
    "labels in Parquet": (".parquet", parquet(_NULL_FIRST), [None, ["B-PER", "O"]]),
    "numbers in Parquet": (".parquet", parquet(_LATE_NUMBERS, {"ner_tags": FEATURE}), [None, ["B-PER", "O"]]),
    "labels beside others": (
        ".jsonl", lines([row | {"pos": ["X"] * len(row["tokens"])} for row in _NULL_FIRST]),
        [None, ["B-PER", "O"]],
    ),
    "labels of sentences": (
        ".jsonl", lines([_LATE_INTENT[0] | {"intent": None}, *_LATE_INTENT[1:]]), [None, ["a"]],
    ),
    "a key of sentences": (".jsonl", lines(_LATE_INTENT), [None, ["a"]]),
    "words": (".jsonl", lines([{"tokens": [], "ner_tags": []}, *NAMED]), [["B-PER", "O"], ["B-PER"]]),
    "spans of JSON-MIN": (".json", json.dumps(_NOT_LABELLED).encode(), [["O", "O"], ["B-PER", "O"]]),
    "spans of Prodigy": (".jsonl", lines(_NO_SPANS), [["O", "O"], ["B-PER", "O"]]),
}  # fmt: skip


@pytest.mark.parametrize("case", LATE)
def test_a_later_row_tells_what_the_first_lacks(case: str, tmp_path: Path) -> None:
    ending, content, expected = LATE[case]
    corpus = loaded(tmp_path / "mine", ending, content)
    task = "intent" if "sentences" in case else "ner"
    labels = [sentence.labels.get(task) for sentence in corpus.train[:2]]
    assert [row and list(row) for row in labels] == expected
    assert not any(note.startswith("Columns left out") for note in corpus.notes)


def test_names_beside_the_files_are_of_later_numbers_too(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "labels.json").write_text(json.dumps(NAMES))
    corpus = loaded(tmp_path / "mine", ".jsonl", lines(_LATE_NUMBERS))
    assert [sentence.labels.get("ner") for sentence in corpus.train] == [None, ("B-PER", "O"), ("B-PER",)]


def test_names_in_the_training_file_are_those_of_the_others_too(tmp_path: Path) -> None:
    first = [NUMBERED[0] | {"ner_tags_names": NAMES}, NUMBERED[1]]
    corpus = loaded(tmp_path / "mine", ".json", json.dumps(first).encode(), json.dumps(NUMBERED).encode())
    assert corpus.test == corpus.train


_ROW = {"tokens": ["Ada", "ran"], "ner_tags": ["B-PER", "O"]}


@pytest.mark.parametrize(
    ("ending", "content", "expected"),
    [
        (".jsonl", lines(NUMBERED), "line 1: ner_tags holds numbers, and their names are not in the file"),
        (".parquet", parquet(NUMBERED), "row 1: ner_tags holds numbers, and their names"),
        (".jsonl", lines([{"tokens": ["Bo"], "ner_tags": []}]), "line 1: ner_tags has 0 labels"),
        (".parquet", parquet([_ROW, {"tokens": ["Bo"], "ner_tags": []}]), "row 2: ner_tags has 0 labels"),
        (".jsonl", lines([_ROW, {"tokens": ["Bo"]}]), "line 2: has no ner_tags; write null"),
        (".jsonl", lines([_ROW | {"x": ["X"]}, *[_ROW | {"x": ["X", "Y"]}] * 3]), "line 1: x has 1 label"),
        (".jsonl", lines([_ROW | {"ner_tags": None}] * 2), "the columns are tokens, ner_tags (null)."),
        (".jsonl", lines([_ROW, _ROW | {"pos": ["X", "Y"]}]), "line 2: has also pos; every row"),
        (".json", json.dumps([_ROW, {"tokens": "Bo", "ner_tags": []}]).encode(), "row 2: tokens must be"),
        (".json", json.dumps([_ROW, 3]).encode(), "row 2: expected an object such as"),
        (".json", b'[{"tokens": ["a"],]', "line 1: is no JSON"),
        (".json", b"[" * 50_000, "train.json is no JSON"),
        (".json", b'"a"', "train.json: expected a list of objects"),
        (".json", b'["\xff"]', "train.json: byte 0xff at position 3 is not UTF-8"),
        (".json", b'{"tokens": {"0": ["Bo"]}, "x": {"0": ["O"]}}', "row 1: expected an object for each row"),
        (".json", b'{"tokens": [["Bo"]], "ner": [["O"]]}', "row 1: expected an object for each row"),
        (".json", b'{"text": ["a", "b"], "label": ["c", "d"]}', "but found one of whole columns; write"),
        (".json", b'{"text": {"0": "a"}, "label": {"0": "b"}}', "but found one of whole columns; write"),
        (".json", b"[]", "train.json holds no sentence"),
        (".json", b'[{"text": "a", "label": "b"}]', "row 1: expected a list of words in tokens"),
        (".jsonl", lines([_ROW, _ROW | {"ner_tags": ["B-PER", 3]}]), "line 2: ner_tags holds numbers"),
        (".jsonl", lines([_ROW, _ROW | {"ner_tags": ["B-PER", " "]}]), "line 2: ner_tags has a label"),
        (".jsonl", lines([_ROW, _ROW | {"ner_tags": ["O", ["O"]]}]), "line 2: ner_tags has a label that is"),
        (".jsonl", lines([_ROW, _ROW | {"tokens": ["Ada", ["a"]]}]), "line 2: tokens must be a list of"),
        (".jsonl", lines([_ROW, _ROW | {"tokens": ["Ada", " "]}]), "line 2: word 2 of tokens is empty"),
        (".jsonl", lines([{"tokens": ["Ada"], "id": 1}]), "line 1: expected a list of labels beside tokens"),
        (".jsonl", lines([_ROW, _ROW | {"ner_tags": ["O", "I_PER"]}] * 30), "line 2, word 2: 'I_PER'"),
        (".jsonl", lines([{"tokens": ["a"], "x": [5], "x_names": ["A"]}]), "x has the number 5"),
        (".jsonl", lines(_doccano("a") + _doccano("a", [0, 2, "X"])), "line 2: a span is from 0 to 2"),
        (".jsonl", lines(_doccano("a") + _doccano("a", [0, 1])), "line 2: expected a span with start"),
        (".jsonl", lines(_doccano("a") + _doccano("a", ["0", 1, "X"])), "line 2: expected a span with start"),
        (".jsonl", lines(_doccano("a") + _doccano("a", [0, 1, " "])), "line 2: the span from 0 to 1 has no"),
        (
            ".jsonl", lines(_doccano("\u6211\u5728\u5317\u4eac\u5de5\u4f5c", [2, 4, "LOC"])),
            "line 1: the span from 2 to 4 is inside '\u6211\u5728\u5317\u4eac\u5de5\u4f5c', whose script",
        ),
        (".jsonl", lines([*_doccano("a"), {"label": []}]), "line 2: expected the text in text"),
        (".jsonl", lines([*_doccano("a"), {"text": "a", "label": "X"}]), "line 2: label must be"),
        (".json", json.dumps([_TASK, {"data": {}, "annotations": [{}]}]).encode(), "row 2: expected the"),
        (".csv", b"sent_id,word,pos\n,a,X\n", "line 2: sent_id is empty; the first word"),
        (".csv", b"sent_id,word,pos\n1,a,X\n2,b,X\n1,c,X\n", "line 4: 1 goes on after another sentence"),
        (".csv", b"sent_id,word,pos\n1,a,X\n2,b,X\n1,c,X\n", "in each document, add a column doc_id"),
        (".csv", b"sent_id,word,pos\n1,a,X\n,,X\n", "line 3: word is empty"),
        (".csv", b"sent_id,word,pos\n1,a,X\n,b,\n", "line 3: pos is empty"),
        (".csv", b"sent_id,word,pos,pos\n1,a,X,Y\n", "line 1: two columns are named 'pos'"),
        (".csv", b"sent_id,word\n1,a\n", "line 2: expected a list of labels beside tokens"),
        (".csv", b"sent_id,word,pos\n1,a\n", "line 2: expected 3 columns"),
        (".csv", b"sent_id,word,pos\n", "train.csv holds no sentence"),
        (".jsonl", lines([{"tokens": ["a"], "x": [0], "x_names": "A"}]), "x_names must be a list of names"),
        (".parquet", b"PAR1 and no more", "train.parquet cannot be read as Parquet"),
        (".arrow", b"ARROW1 and no more", "train.arrow cannot be read as Arrow"),
        (".feather", parquet(NAMED)[:80], "train.feather cannot be read as Feather"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_read_is_named(
    ending: str, content: bytes, expected: str, tmp_path: Path
) -> None:
    with pytest.raises(CorpusError) as raised:
        loaded(tmp_path / "mine", ending, content)
    assert expected in str(raised.value)
    assert f"train{ending}" in str(raised.value)


@pytest.mark.parametrize(
    "features",
    [[], {"ner_tags": []}, {"ner_tags": "List"}, {"ner_tags": {"feature": 1}}, {"ner_tags": {"names": [1]}}],
)
def test_metadata_of_another_form_names_nothing(features: Any, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="row 1: ner_tags holds numbers"):
        loaded(tmp_path / "mine", ".parquet", parquet(NUMBERED, features))
    assert loaded(tmp_path / "named", ".parquet", parquet(NAMED, features)).train


def test_a_word_a_line_has_a_task_for_each_column(tmp_path: Path) -> None:
    quote = '""""'
    text = f"Sentence #,Word,POS,Tag\nSentence: 1,London,NNP,B-geo\n,{quote},{quote},O\n"
    corpus = loaded(tmp_path / "mine", ".csv", text.encode())
    (sentence,) = corpus.train
    assert sentence.tokens == ("London", '"')
    assert dict(sentence.labels) == {"POS": ("NNP", '"'), "Tag": ("B-geo", "O")}


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        (".jsonl", lines([{"text": "a b", "label": "x"}])),
        (".jsonl", lines([{"text": "a b", "label": "x", "_spans": [[0, 1, "y"]]}])),
        (".csv", b"sentence,word,label\na b,a,x\n"),
        (".csv", b"sent_id,word,text,label\n1,a,a b,x\n"),
    ],
)
def test_texts_are_read_as_before(ending: str, content: bytes, tmp_path: Path) -> None:
    corpus = loaded(tmp_path / "mine", ending, content)
    assert {task.scheme for task in corpus.tasks} == {"text"}
