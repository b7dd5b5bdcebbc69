"""Any dataset of the Hub: local copies in the layouts of well-known ones, its name, and how it is pinned."""

from __future__ import annotations

import io
import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.corpora import load, prepare
from core.corpora.catalogue import hub
from core.corpora.loading import derivation_of, files_of, is_here, pinned_name, tasks_of
from core.errors import CorpusError
from core.foreign import child, inside
from core.recording.resolve import with_absolute_paths

datasets = pytest.importorskip("datasets", reason="the package datasets is not installed here")
Parquet: Any = pytest.importorskip("datasets.packaged_modules.parquet.parquet").Parquet

Rows = dict[str, list[Any]]
STRING = datasets.Value("string")
STRINGS = datasets.List(STRING)
COMMIT = "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"


@pytest.fixture(autouse=True)
def without_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are read in this process: what a child process does more is tested in tests/security."""
    monkeypatch.setattr(child, "run", inside.here)


def names(*labels: str) -> Any:
    return datasets.ClassLabel(names=list(labels))


def listed(*labels: str) -> Any:
    return datasets.List(names(*labels))


def table(features: Mapping[str, Any], *rows: tuple[Any, ...]) -> Any:
    columns: Rows = {name: [row[place] for row in rows] for place, name in enumerate(features)}
    return datasets.Dataset.from_dict(columns, features=datasets.Features(features))


def splits(features: Mapping[str, Any], *rows: tuple[Any, ...], **others: Any) -> Any:
    """A dataset whose splits have the same rows, but for those given."""
    made = {name: table(features, *rows) for name in ("train", "validation", "test")}
    return datasets.DatasetDict(made | others)


CONLL2003 = splits(
    {
        "id": STRING,
        "tokens": STRINGS,
        "pos_tags": listed("NN", "NNP", "VBZ"),
        "chunk_tags": listed("O", "B-NP", "I-NP", "B-VP", "I-VP"),
        "ner_tags": listed("O", "B-PER", "I-PER", "B-ORG", "I-ORG"),
    },
    ("0", ["EU", "rejects", "lamb"], [1, 2, 0], [1, 3, 1], [3, 0, 0]),
    ("1", ["Ada", "Lovelace"], [1, 1], [1, 2], [1, 2]),
    ("2", [], [], [], []),
)
WNUT_17 = splits(
    {"id": STRING, "tokens": STRINGS, "ner_tags": listed("O", "B-corporation", "I-corporation", "B-person")},
    ("0", ["@paulwalk", "at", "Acme", "Inc"], [0, 0, 1, 2]),
    ("1", ["Ada", "ran"], [3, 0]),
)
WIKIANN = splits(
    {"tokens": STRINGS, "ner_tags": listed("O", "B-PER", "I-PER"), "langs": STRINGS, "spans": STRINGS},
    (["R.H.", "Saunders"], [1, 2], ["en", "en"], ["PER: R.H. Saunders"]),
    (["She", "ran", "."], [0, 0, 0], ["en"] * 3, []),
)
UNIVERSAL_DEPENDENCIES = splits(
    {
        "idx": STRING,
        "text": STRING,
        "tokens": STRINGS,
        "lemmas": STRINGS,
        "upos": listed("NOUN", "PUNCT", "VERB", "_"),
        "xpos": STRINGS,
        "feats": STRINGS,
        "head": STRINGS,
        "deprel": STRINGS,
        "deps": STRINGS,
        "misc": STRINGS,
    },
    (
        *("w1", "Dogs bark.", ["Dogs", "bark", "."], ["dog", "bark", "."], [0, 2, 1], [None, None, None]),
        *(["{'Number': 'Plur'}", "None", "None"], ["2", "0", "2"], ["nsubj", "root", "punct"]),
        *(["None"] * 3, ["None", "{'SpaceAfter': 'No'}", "None"]),
    ),
    (
        *("w2", "Cats sleep", ["Cats", "sleep"], ["cat", "sleep"], [0, 2], ["NNS", "VBP"]),
        *(["{'Number': 'Plur'}", "None"], ["2", "0"], ["nsubj", "root"], ["None"] * 2, ["None"] * 2),
    ),
)
INTENTS = splits(
    {
        "utterance_id": STRING,
        "tokens": STRINGS,
        "slots": listed("O", "B-city"),
        "intent": names("book", "ask"),
    },
    ("a", ["fly", "to", "Riga"], [0, 0, 1], 0),
    ("b", ["how", "much", "?"], [0, 0, 0], 1),
    ("c", ["a", "gate"], [0, 0], -1),
)
_ID = datasets.Value("int32")
GLUE = {
    "cola": splits(
        {"sentence": STRING, "label": names("unacceptable", "acceptable"), "idx": _ID},
        ("It works.", 1, 0),
        ("Works it.", 0, 1),
        test=table(
            {"sentence": STRING, "label": names("unacceptable", "acceptable"), "idx": _ID}, ("Ran he.", -1, 0)
        ),
    ),
    "stsb": splits(
        {"sentence1": STRING, "sentence2": STRING, "label": datasets.Value("float32"), "idx": _ID},
        ("A dog runs.", "A dog is running.", 3.8, 0),
        ("A cat.", "A plane.", 0.0, 1),
    ),
    "mnli": datasets.DatasetDict(
        {
            split: table(
                {
                    "premise": STRING,
                    "hypothesis": STRING,
                    "label": names("entailment", "neutral", "contradiction"),
                    "idx": _ID,
                },
                ("It rains.", "It is wet.", 0, 0),
                ("It rains.", "It is dry.", 2, 1),
            )
            for split in ("train", "validation_matched", "validation_mismatched")
        }
    ),
}
"""GLUE, a few sentences of three of its configurations."""


def as_parquet(folder: Path, configs: Mapping[str, Any]) -> Path:
    """A copy as the Hub has it: files of Parquet, and the card that says which are of which configuration."""
    lines = ["---", "configs:"]
    for name, data in configs.items():
        place = folder / name
        place.mkdir(parents=True)
        lines += [f"- config_name: {name}", "  data_files:"]
        for split, rows in data.items():
            rows.to_parquet(place / f"{split}-00000-of-00001.parquet")
            lines += [f"  - split: {split}", f"    path: {name}/{split}-*"]
    (folder / "README.md").write_text("\n".join([*lines, "---", "# A dataset"]), encoding="utf-8")
    return folder


def as_saved(folder: Path, configs: Mapping[str, Any]) -> Path:
    for name, data in configs.items():
        data.save_to_disk(folder if len(configs) == 1 else folder / name)
    return folder


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
            {"tokens": STRINGS, "tags": datasets.List(_ID)},
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


# The Hub, by what it once answered.


def answer(*files: str) -> bytes:
    """The part of the Hub's answer on a revision of a dataset that is used, as recorded."""
    recorded = {"id": "nyu-mll/glue", "sha": COMMIT, "gated": False}
    configs = [
        {"config_name": name, "data_files": [{"split": "train", "path": f"{name}/train-*"}]} for name in GLUE
    ]
    siblings = [{"rfilename": file} for file in files]
    return json.dumps({**recorded, "cardData": {"configs": configs}, "siblings": siblings}).encode()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """A Hub that has nyu-mll/glue, a script owner/old and nothing else, and the addresses it is asked for."""
    addresses: list[str] = []

    def opened(request: urllib.request.Request, **options: object) -> io.BytesIO:
        addresses.append(request.full_url)
        if "nyu-mll/glue" in request.full_url:
            return io.BytesIO(answer(".gitattributes", "README.md", "cola/train-00000-of-00001.parquet"))
        if "owner/old" in request.full_url:
            return io.BytesIO(answer("README.md", "old.py"))
        raise urllib.error.HTTPError(request.full_url, 404, "Not Found", {}, None)  # type: ignore[arg-type]

    monkeypatch.setattr(urllib.request, "urlopen", opened)
    monkeypatch.setattr("core.corpora.catalogue.hub.look_up_hub", lambda: None)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    hub._newest.cache_clear()
    return addresses


def test_a_dataset_is_pinned_by_its_commit_and_then_read_without_the_hub(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "hub:nyu-mll/glue?config=cola"
    pinned = f"{name}&revision={COMMIT}"
    assert not is_here(name)
    assert pinned_name(name) == pinned == pinned_name(pinned)
    assert asked == ["https://huggingface.co/api/datasets/nyu-mll/glue/revision/main"]
    described = RunConfig.build(corpus=name, tasks=["glue-cola"], paradigm="stl")
    assert with_absolute_paths(described).corpus == pinned

    folder = as_parquet(tmp_path / "copy", GLUE)
    given = datasets.load_dataset_builder(str(folder), "cola")
    loads: list[tuple[str, str | None, str | None]] = []

    def builder(source: str, config: str | None, cache_dir: None, revision: str | None) -> Any:
        """What `datasets` gives for the Hub: a builder of such files, with the commit as its hash."""
        loads.append((source, config, revision))
        files = given.config.data_files
        return Parquet(str(tmp_path / "cache"), "glue", config, revision, data_files=files, config_id=config)

    with monkeypatch.context() as online:
        online.setattr(datasets, "load_dataset_builder", builder)
        corpus = load(name)
    assert loads == [("nyu-mll/glue", "cola", COMMIT)]
    # `datasets` keeps what it read under the name of the repository, which a builder of local files has not.
    (tmp_path / "cache" / "glue").rename(tmp_path / "cache" / "nyu-mll___glue")
    (reading,) = corpus.readings
    assert reading.revision == COMMIT
    assert reading.title.startswith(f"glue-cola, dataset nyu-mll/glue, configuration cola, revision {COMMIT}")

    def unreachable(*args: object, **options: object) -> None:
        raise ConnectionError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", unreachable)
    monkeypatch.setattr(datasets, "load_dataset_builder", unreachable)
    hub._newest.cache_clear()
    assert is_here(pinned)
    assert hub.read_hub(pinned).train == hub.read_hub(name).train == corpus.train
    assert pinned_name(name) == pinned


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (
            "hub:owner/old",
            r"owner/old is a script \(old.py\), and scripts are never run; .*refs/convert/parquet",
        ),
        ("hub:owner/none", "does not offer the dataset owner/none .it answers 404."),
        ("hub:owner/none?revision=v1", "does not offer the dataset owner/none in the revision v1"),
        ("hub:csv", "'csv' is neither a folder here nor a dataset's name; write hub:OWNER/NAME"),
        ("hub:../x/y", "neither a folder here nor"),
        ("hub:", "names no dataset"),
        ("joined:hub:owner/old+demo", "is a script"),
        ("owner/none", "There is no corpus 'owner/none'.* Write hub:owner/none for the dataset of the Hub"),
    ],
)
def test_what_the_hub_does_not_have_is_told(asked: list[str], name: str, problem: str) -> None:
    with pytest.raises(CorpusError, match=problem):
        load(name)


@pytest.mark.parametrize(
    ("card", "default"),
    [
        ({}, ""),
        ({"configs": [{"config_name": "default"}]}, ""),
        ({"configs": [{"config_name": "conll2003"}]}, "conll2003"),
        ({"configs": [{"config_name": "en"}, {"config_name": "de"}]}, ""),
        ({"configs": [{"config_name": "en"}, {"config_name": "de", "default": True}]}, "de"),
        ({"dataset_info": {"config_name": "split", "features": []}}, "split"),
        ({"dataset_info": {"features": []}}, ""),
    ],
)
def test_the_default_configuration_is_pinned_too(card: dict[str, Any], default: str) -> None:
    assert hub._default_config(card) == default


def test_another_revision_is_asked_for_by_its_name(asked: list[str]) -> None:
    assert pinned_name("hub:owner/glue?revision=refs/convert/parquet".replace("owner", "nyu-mll")).endswith(
        COMMIT
    )
    assert asked[0].endswith("/revision/refs%2Fconvert%2Fparquet")


def test_without_network_and_copy_the_answer_says_what_to_do(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in ("hub:nyu-mll/glue", f"hub:nyu-mll/glue?revision={COMMIT}"):
        with pytest.raises(CorpusError, match=r"cannot be reached; name the folder of a copy, as hub:/path"):
            load(name)
