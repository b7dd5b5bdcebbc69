"""Corpora from the Hub: conversion of a small dataset made here, and the answer where there is no network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.corpora import CATALOGUE, load, loading
from core.corpora.catalogue.names import is_local, offered
from core.corpora.types import Sentence
from core.errors import CorpusError
from tests.making import corpus_folder

datasets = pytest.importorskip("datasets", reason="the package datasets is not installed here")

ROWS = "EU NNP B-NP B-ORG\nrejects VBZ B-VP O\n"


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """What came from this pretended Hub is not kept in memory for other tests."""
    yield
    loading._read.cache_clear()


def small_dataset() -> Any:
    """Two splits in the shape of eriktks/conll2003: ids, tokens, ClassLabel columns; one empty row."""
    features = datasets.Features(
        {
            "id": datasets.Value("string"),
            "tokens": datasets.Sequence(datasets.Value("string")),
            "pos_tags": datasets.Sequence(datasets.ClassLabel(names=["''", "NN", "VBZ"])),
            "ner_tags": datasets.Sequence(datasets.ClassLabel(names=["O", "B-PER", "I-PER"])),
        }
    )
    train = {
        "id": ["0", "1", "2"],
        "tokens": [["Anna", "runs"], [], ["Rose"]],
        "pos_tags": [[1, 2], [], [1]],
        "ner_tags": [[1, 0], [], [1]],
    }
    test = {"id": ["0"], "tokens": [["''"]], "pos_tags": [[0]], "ner_tags": [[0]]}
    return datasets.DatasetDict(
        train=datasets.Dataset.from_dict(train, features=features),
        validation=datasets.Dataset.from_dict(test, features=features),
        test=datasets.Dataset.from_dict(test, features=features),
    )


def test_class_labels_of_the_revision_without_code_become_their_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests = _pretend(monkeypatch, small_dataset())
    corpus = load("conll2003")
    assert requests == [("eriktks/conll2003", None, "refs/convert/parquet")]
    assert [(sentence.tokens, dict(sentence.labels)) for sentence in corpus.train] == [
        (("Anna", "runs"), {"pos": ("NN", "VBZ"), "ner": ("B-PER", "O")}),
        (("Rose",), {"pos": ("NN",), "ner": ("B-PER",)}),
    ]
    assert len(corpus.dev) == len(corpus.test) == 1
    assert corpus.task("pos").unseen == {"dev": ("''",), "test": ("''",)}
    assert corpus.task("ner").labels == ("O", "B-PER")


def pairs_dataset(gold: float, *, numbers: bool) -> Any:
    """Three splits in the shape of GLUE's qqp or stsb, whose test split has -1 as every label."""
    names = ("sentence1", "sentence2") if numbers else ("question1", "question2")
    label = (
        datasets.Value("float32") if numbers else datasets.ClassLabel(names=["not_duplicate", "duplicate"])
    )
    features = datasets.Features(
        {name: datasets.Value("string") for name in names} | {"label": label, "idx": datasets.Value("int32")}
    )

    def table(firsts: list[str], labels: list[float]) -> Any:
        rows = {names[0]: firsts, names[1]: ["what is it ?"] * len(firsts), "label": labels}
        return datasets.Dataset.from_dict({**rows, "idx": list(range(len(firsts)))}, features=features)

    return datasets.DatasetDict(
        train=table(["how is it ?", " ", "why ?"], [gold, gold, 0]),
        validation=table(["which one ?"], [gold]),
        test=table(["who ?", "where ?"], [-1, -1]),
    )


def test_texts_of_the_hub_have_their_numbers_as_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"text": ["a fine film", "so so"], "label": [4, 2], "label_text": ["very positive", "neutral"]}
    table = datasets.Dataset.from_dict(rows)
    requests = _pretend(monkeypatch, datasets.DatasetDict(train=table, validation=table, test=table))
    corpus = load("sst")
    assert requests == [("SetFit/sst5", None, "main")]
    assert [(task.name, task.scheme, task.labels) for task in corpus.tasks] == [("sst", "text", ("2", "4"))]
    assert corpus.train[0] == Sentence(("a", "fine", "film"), {"sst": ("4",)}, whole=True)
    assert (len(corpus.dev), len(corpus.test), loading.read("sst").notes) == (2, 2, ())


@pytest.mark.parametrize(
    ("name", "gold", "config", "label", "scheme"),
    [("quora", 1, "qqp", "1", "pair"), ("sts", 3.8, "stsb", "3.8", "score")],
)
def test_a_test_split_without_gold_is_left_out(
    monkeypatch: pytest.MonkeyPatch, name: str, gold: float, config: str, label: str, scheme: str
) -> None:
    requests = _pretend(monkeypatch, pairs_dataset(gold, numbers=name == "sts"))
    corpus = load(name)
    assert requests == [("nyu-mll/glue", config, "main")]
    assert corpus.tasks[0].scheme == scheme
    first, other = corpus.train
    assert (first.tokens, first.second) == (("how", "is", "it", "?"), ("what", "is", "it", "?"))
    assert (first.labels, other.labels) == ({name: (label,)}, {name: ("0",)})
    assert corpus.dev == ()
    assert [pair.tokens for pair in corpus.test] == [("which", "one", "?")]
    assert corpus.notes[:3] == (
        "train: 1 row without words left out.",
        "test: none of 2 rows has a label; the split was left out.",
        "There is no test split with labels: validation is the test split.",
    )


def _pretend(monkeypatch: pytest.MonkeyPatch, data: Any) -> list[tuple[str, str | None, str]]:
    """A Hub that has these data alone, and what it is asked for."""
    requests: list[tuple[str, str | None, str]] = []

    def recorded(repository: str, config: str | None, revision: str) -> Any:
        requests.append((repository, config, revision))
        return data

    monkeypatch.setattr(datasets, "load_dataset", recorded)
    monkeypatch.setattr("core.corpora.catalogue.names.look_up_hub", lambda: None)
    return requests


def test_without_hub_or_folder_the_answer_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*args: object, **options: object) -> None:
        raise ConnectionError("Couldn't reach the Hub")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    with pytest.raises(CorpusError, match=r"Hub cannot be reached; set MRNLAB_DATA to a folder") as raised:
        load("both-pos")
    assert "\n" not in str(raised.value)


def test_folders_under_mrnlab_data_take_the_place_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["sst", "quora", "sts"]
    remote = ["conll2003", "conll2000", "both-pos", "streusle", "ud-lines", *texts]
    assert [name for name in CATALOGUE if not is_local(name)] == remote
    assert [name for name, spec in CATALOGUE.items() if spec.hub_folders] == remote
    monkeypatch.setenv("MRNLAB_DATA", str(tmp_path))
    for name, columns, missing in (("conll2003", 4, remote[1:]), ("conll2000", 3, remote[3:])):
        rows = "\n".join(" ".join(row.split()[:columns]) for row in ROWS.splitlines())
        corpus_folder(tmp_path / name, dict.fromkeys(("train.conll", "test.conll"), rows))
        assert [task.name for task in load(name).tasks] == ["pos", "chunk", "ner"][: columns - 1]
        assert [name for name in CATALOGUE if not is_local(name)] == missing
    assert "streusle" not in offered()
    with pytest.raises(CorpusError, match="'streusle' with its files"):
        load("streusle")
    for place, name in ((tmp_path / "sentences", "sst"), (tmp_path, "sts"), (tmp_path / "sentences", "sts")):
        rows = f"text\tlabel\nit lies in {place.name}\t1\n"
        corpus_folder(place / name, dict.fromkeys(("train.tsv", "test.tsv"), rows))
    assert [name for name in CATALOGUE if not is_local(name)] == ["streusle", "ud-lines", "quora"]
    assert load("sst").train[0].tokens[-1] == "sentences"
    assert load("sts").train[0].tokens[-1] == tmp_path.name
    both = load("both-pos")
    assert [task.name for task in both.tasks] == ["pos-2003", "pos-2000"]
    assert [(set(sentence.labels), sentence.part) for sentence in both.train] == [
        ({"pos-2003"}, "conll2003"),
        ({"pos-2000"}, "conll2000"),
    ]
