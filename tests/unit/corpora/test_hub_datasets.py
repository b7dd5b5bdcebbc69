"""Copies of datasets of the Hub, in the layouts of well-known ones, are read by their features."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.corpora import load, prepare
from core.corpora.catalogue import hub
from core.corpora.loading import derivation_of, files_of, pinned_name, tasks_of
from core.errors import CorpusError
from tests.hub_copies import (
    CONLL2003,
    GLUE,
    INTENTS,
    STRING,
    STRINGS,
    UNIVERSAL_DEPENDENCIES,
    WIKIANN,
    WNUT_17,
    as_parquet,
    as_saved,
    listed,
    names,
    splits,
    table,
)

datasets = pytest.importorskip("datasets", reason="the package datasets is not installed here")

LAYOUTS: dict[str, tuple[Any, str, dict[str, str], dict[str, str]]] = {
    "conll2003": (CONLL2003, "", {"pos": "plain", "chunk": "iob2", "ner": "iob2"}, {"id": ""}),
    "wnut_17": (WNUT_17, "", {"ner": "iob2"}, {"id": ""}),
    "wikiann": (
        WIKIANN,
        "",
        {"ner": "iob2"},
        {"langs": "all its values are the same", "spans": "its lists are not as long as those of the words"},
    ),
    "universal_dependencies": (
        UNIVERSAL_DEPENDENCIES,
        "",
        {"upos": "plain", "xpos": "plain", "deprel": "plain"},
        dict.fromkeys(["idx", "text", "lemmas", "feats", "head", "deps", "misc"], ""),
    ),
    "intents": (INTENTS, "", {"slots": "iob2", "intent": "sentence"}, {"utterance_id": ""}),
    "cola": (GLUE, "cola", {"{name}": "text"}, {"idx": ""}),
    "stsb": (GLUE, "stsb", {"{name}": "score"}, {"idx": ""}),
}
"""By layout: its configurations, the one that is read, its tasks, and the columns left out and why."""


@pytest.mark.parametrize("form", [as_parquet, as_saved])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_copy_is_read_by_its_features(layout: str, form: Any, tmp_path: Path) -> None:
    data, config, tasks, left_out = LAYOUTS[layout]
    configs = data if isinstance(data, dict) and config else {"default": data}
    folder = form(tmp_path / layout.replace("cola", "glue").replace("stsb", "glue"), configs)
    name = f"hub:{folder}{f'?config={config}' if config else ''}"
    corpus = load(name)
    called = f"glue-{config}" if config else layout
    assert {task.name: task.scheme for task in corpus.tasks} == {
        task.format(name=called): scheme for task, scheme in tasks.items()
    }
    (reading,) = corpus.readings
    columns = {column.name: column for column in reading.columns}
    assert {column for column in columns if columns[column].taken == "skipped"} == left_out.keys()
    assert {column: "".join(columns[column].notes) for column in left_out} == {
        column: f"left out: {reason}." if reason else "" for column, reason in left_out.items()
    }
    assert not any(column.guessed for column in reading.columns)
    assert (
        reading.title.endswith(
            f"fingerprint {reading.revision}: train (train), validation (dev), test (test)"
        )
        or config
    )
    assert corpus.name == called
    config_ = RunConfig.build(corpus=name, tasks=[task.name for task in corpus.tasks][:1], paradigm="stl")
    assert prepare(config_).text_hash == corpus.text_hash != ""


def test_words_labels_and_what_is_left_out(tmp_path: Path) -> None:
    corpus = load(f"hub:{as_saved(tmp_path / 'conll2003', {'': CONLL2003})}")
    first, second = corpus.train
    assert first.tokens == ("EU", "rejects", "lamb")
    assert first.labels == {
        "pos": ("NNP", "VBZ", "NN"),
        "chunk": ("B-NP", "B-VP", "B-NP"),
        "ner": ("B-ORG", "O", "O"),
    }
    assert second.labels["ner"] == ("B-PER", "I-PER")
    assert len(corpus.dev) == len(corpus.test) == 2
    assert "train: 1 row without words left out." in corpus.notes
    # The labels that the dataset declares have a row in the head, whether they occur or not.
    assert corpus.task("chunk").inventory == ("O", "B-NP", "I-NP", "B-VP", "I-VP")

    of_both = load(f"hub:{as_saved(tmp_path / 'intents', {'': INTENTS})}")
    assert [sentence.labels.get("intent") for sentence in of_both.train] == [("book",), ("ask",), None]
    assert of_both.train[0].is_of_text("intent")
    assert not of_both.train[0].is_of_text("slots")
    universal = load(f"hub:{as_parquet(tmp_path / 'ud', {'en': UNIVERSAL_DEPENDENCIES})}")
    assert [sorted(sentence.labels) for sentence in universal.train] == [
        ["deprel", "upos"],
        ["deprel", "upos", "xpos"],
    ]


def test_a_test_split_without_gold_gives_way_to_dev(tmp_path: Path) -> None:
    folder = as_parquet(tmp_path / "glue", GLUE)
    corpus = load(f"hub:{folder}?config=cola")
    assert (corpus.dev, len(corpus.test)) == ((), 2)
    assert corpus.train[0].labels == {"glue-cola": ("acceptable",)}
    assert corpus.notes[:2] == (
        "test: none of 1 row has a label; the split was left out.",
        "There is no test split with labels: validation is the test split.",
    )
    assert corpus.readings[0].files == {"train": "train", "test": "validation"}
    numbers = load(f"hub:{folder}?config=stsb")
    assert numbers.train[0].labels == {"glue-stsb": ("3.8",)}
    assert numbers.train[0].second == ("A", "dog", "is", "running.")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("", "has several configurations; name one as config=NAME: cola, stsb, mnli"),
        ("?config=sst2", "has no configuration 'sst2'; name one as config=NAME: cola, stsb, mnli"),
        ("?config=mnli", "both validation_matched and validation_mismatched could be the dev split"),
        ("?config=cola&splits=train", "splits must name two or three"),
        (
            "?config=cola&splits=train,dev,test",
            "has no split 'dev'; its splits are train, validation and test",
        ),
        ("?config=cola&columns=sentence,mark", "has no column 'mark'; its columns are sentence, label, idx"),
        ("?config=cola&columns=sentence:a,label:a", "no name twice"),
        ("?config=cola&columns=", "columns is empty"),
        ("?config=cola&config=stsb", "config is given twice"),
        ("?config=../glue", "'../glue' cannot be the name of a configuration"),
        ("?config=..", "cannot be the name of a configuration"),
        ("?config=cola&color=red", "has no option 'color'"),
    ],
)
def test_a_name_that_says_nothing_is_refused(options: str, problem: str, tmp_path: Path) -> None:
    folder = as_parquet(tmp_path / "glue", GLUE)
    with pytest.raises(CorpusError, match=re.escape(problem)) as raised:
        load(f"hub:{folder}{options}")
    assert "\n" not in str(raised.value)


def test_options_choose_splits_and_columns(tmp_path: Path) -> None:
    folder = as_parquet(tmp_path / "glue", GLUE)
    matched = "splits=train,validation_matched,validation_mismatched"
    corpus = load(f"hub:{folder}?config=mnli&{matched}&columns=premise:text1,hypothesis:text2,label:entails")
    assert [(task.name, task.scheme) for task in corpus.tasks] == [("entails", "pair")]
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (2, 2, 2)
    halves = load(f"hub:{folder}?config=mnli&splits=train[:50%],train[50%:]&columns=hypothesis:text,label")
    assert [sentence.labels["glue-mnli"] for sentence in (*halves.train, *halves.test)] == [
        ("entailment",),
        ("contradiction",),
    ]
    words = as_saved(tmp_path / "ud", {"": UNIVERSAL_DEPENDENCIES})
    assert tasks_of(f"hub:{words}?columns=tokens,feats:morphology,upos") == ("morphology", "upos")


@pytest.mark.parametrize(
    ("features", "rows", "tasks", "guessed"),
    [
        (
            {"text": STRING, "label": datasets.Value("int64"), "label_text": STRING},
            [("a fine film", 1, "good"), ("so so", 0, "bad"), ("fine", 1, "good")],
            {"mine": ("bad", "good")},
            set(),
        ),
        (
            {"question": STRING, "passage": STRING, "answer": datasets.Value("bool")},
            [("is it so", "it is so", True), ("is it not", "it is", False)],
            {"answer": ("false", "true")},
            {"question", "passage"},
        ),
        (
            {"body": STRING, "kind": STRING, "price": datasets.Value("float64")},
            [("one two", "a", 0.5), ("three four", "b", 1.5), ("five", "a", 2.5), ("six", "b", 3.5)],
            {"kind": ("a", "b")},
            {"body"},
        ),
        (
            {"tokens": STRINGS, "topic": STRING, "length": datasets.Value("int32")},
            [(["Ada", "ran"], "sport", 2), (["Bo", "voted", "."], "news", 3)],
            {"topic": ("news", "sport")},
            set(),
        ),
        (
            {"FORM_": STRINGS, "tag": STRINGS},
            [(["Ada", "ran"], ["N", "V"]), (["Bo", "sat"], ["N", "V"])],
            {"tag": ("N", "V")},
            {"FORM_"},
        ),
    ],
)
def test_columns_are_told_by_features_names_and_content(
    features: dict[str, Any],
    rows: list[tuple[Any, ...]],
    tasks: dict[str, tuple[str, ...]],
    guessed: set[str],
    tmp_path: Path,
) -> None:
    corpus = load(f"hub:{as_saved(tmp_path / 'mine', {'': splits(features, *rows)})}")
    assert {task.name: tuple(sorted(task.labels)) for task in corpus.tasks} == tasks
    assert {column.name for column in corpus.readings[0].columns if column.guessed} == guessed


@pytest.mark.parametrize(
    ("features", "row", "problem"),
    [
        (
            {"tokens": STRINGS, "tags": datasets.List(datasets.Value("int32"))},
            (["a"], [1]),
            "tags: it holds numbers without names",
        ),
        (
            {"text": STRING, "cost": datasets.Value("float32")},
            ("a", 0.5),
            "numbers, which are learned of pairs",
        ),
        ({"a": STRING, "b": STRING, "c": STRING}, ("x", "y", "z"), "a, b and c may be one"),
        ({"label": names("x", "y")}, (1,), "none is one"),
    ],
)
def test_a_dataset_without_labels_says_what_its_columns_are(
    features: dict[str, Any], row: tuple[Any, ...], problem: str, tmp_path: Path
) -> None:
    folder = as_saved(tmp_path / "mine", {"": splits(features, row)})
    with pytest.raises(CorpusError, match=problem) as raised:
        load(f"hub:{folder}")
    assert "columns=" in str(raised.value)


def test_a_word_without_a_label_is_told(tmp_path: Path) -> None:
    features = {"tokens": STRINGS, "pos_tags": STRINGS, "ner_tags": listed("O", "B-PER")}
    rows: list[tuple[Any, ...]] = [
        (["Ada", "ran"], ["N", "V"], [1, 0]),
        (["Bo", "sat"], ["N", "V"], [1, -1]),
        (["Li", "hid"], ["N", None], [1, -1]),
        (["Jo", "hid"], [None, None], [-1, -1]),
    ]
    corpus = load(f"hub:{as_saved(tmp_path / 'mine', {'': splits(features, *rows)})}")
    assert [dict(sentence.labels) for sentence in corpus.train] == [
        {"pos": ("N", "V"), "ner": ("B-PER", "O")},
        {"pos": ("N", "V")},
    ]
    assert corpus.notes[:3] == (
        "train: 1 row with a word without a label not annotated for ner.",
        "train: 1 row with a word without a label left out.",
        "train: 1 row without labels left out.",
    )
    unlabelled = splits(features, *rows, train=table(features, *rows[2:]))
    with pytest.raises(CorpusError, match="no row of its train split has a label of each word; choose"):
        load(f"hub:{as_saved(tmp_path / 'other', {'': unlabelled})}")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["a"] * 4, "all its values are the same"),
        ([None] * 4, "no row has a label of it"),
        (list("abcd"), "it has too many different values for labels"),
    ],
)
def test_a_column_without_labels_says_why(values: list[Any], reason: str, tmp_path: Path) -> None:
    features = {"text": STRING, "label": names("x", "y"), "kind": STRING}
    rows = [("a b", number % 2, value) for number, value in enumerate(values)]
    corpus = load(f"hub:{as_saved(tmp_path / 'mine', {'': splits(features, *rows)})}")
    assert f"kind: left out: {reason}." in corpus.notes


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ((["Ada", " "], [0, 1]), "mine, train, row 3: a word of tokens is empty"),
        ((["Ada", "ran"], [0]), "mine, train, row 3: ner_tags has 1 label, and tokens 2 words"),
    ],
)
def test_errors_name_split_and_row(row: tuple[Any, ...], problem: str, tmp_path: Path) -> None:
    features = {"tokens": STRINGS, "ner_tags": listed("O", "B-PER")}
    good = (["Ada", "ran"], [1, 0])
    data = splits(features, good, good, train=table(features, *[good] * 2, row))
    with pytest.raises(CorpusError, match=problem):
        load(f"hub:{as_saved(tmp_path / 'mine', {'': data})}")


def test_datasets_are_joined_dealt_out_and_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_parquet(tmp_path / "owner" / "glue", GLUE)
    as_saved(tmp_path / "conll2003", {"": CONLL2003})
    monkeypatch.setenv("MRNLAB_DATA", str(tmp_path))
    joined = "joined:hub:owner/glue?config=cola+hub:owner/glue?config=stsb+hub:conll2003?train=1"
    corpus = load(joined)
    assert [task.name for task in corpus.tasks] == ["glue-cola", "glue-stsb", "pos", "chunk", "ner"]
    assert [sentence.part for sentence in corpus.train] == ["glue-cola", "glue-stsb", "conll2003"]
    assert len(corpus.readings) == 3
    for name in ("hub:owner/glue?config=cola&train=1", "hub:owner/glue?train=1&config=cola"):
        assert len(load(name).train) == 1
        assert pinned_name(name) == f"hub:{tmp_path}/owner/glue?config=cola&train=1"
    dealt = load("apart:hub:conll2003?tokens=2&tasks=ner,pos")
    assert sorted(tuple(sentence.labels) for sentence in dealt.train) == [("ner",), ("pos",)]
    assert pinned_name(joined).count(str(tmp_path)) == 3
    assert load(pinned_name(joined)).train == corpus.train
    assert getattr(derivation_of(joined), "name", None) == joined


def test_a_copy_is_read_anew_where_its_files_change(tmp_path: Path) -> None:
    folder = as_parquet(tmp_path / "mine", {"default": WNUT_17})
    name = f"hub:{folder}"
    before, files = load(name), files_of(name)
    table(WNUT_17["train"].features, ("9", ["Bo"], [3])).to_parquet(
        folder / "default" / "train-00000-of-00001.parquet"
    )
    after = load(name)
    assert files_of(name) != files
    assert [sentence.tokens for sentence in after.train] == [("Bo",)]
    assert before.readings[0].revision != after.readings[0].revision


def test_a_copy_may_hold_csv_or_json_and_one_table_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.csv").write_text("text,label\nit works,yes\nit fails,no\n,no\nit may,\n")
    with pytest.raises(
        CorpusError, match=r"mine has no test split; .*; its splits are train\. train\[:90%\] and"
    ):
        load(f"hub:{folder}")
    (folder / "dev.csv").write_text("text,label\nit does,yes\n")
    with_dev = load(f"hub:{folder}")
    assert (len(with_dev.dev), len(with_dev.test)) == (0, 1)
    assert "There is no test split with labels: validation is the test split." in with_dev.notes
    corpus = load(f"hub:{folder}?splits=train,train[:50%]")
    assert [sentence.labels["mine"] for sentence in corpus.train] == [("yes",), ("no",)]
    assert len(corpus.test) == 2
    assert "train: 1 row without words left out." in corpus.notes
    assert "train: 1 row without labels left out." in corpus.notes
    rows = [{"tokens": ["Ada"], "ner_tags": ["B-PER"]}, {"tokens": ["ran"], "ner_tags": ["O"]}]
    folder = tmp_path / "lines"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [len(load(f"hub:{folder}").split(split)) for split in ("train", "dev", "test")] == [2, 2, 2]
    monkeypatch.setattr(hub, "_MOST_FILES", 2)
    with pytest.raises(CorpusError, match="holds more than 2 files"):
        load(f"hub:{folder}")
    with pytest.raises(CorpusError, match=r"train.csv is a file"):
        load(f"hub:{tmp_path}/mine/train.csv")
