"""Corpora from the Hub: conversion of a small dataset made here, and the answer where there is no network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.corpora import CATALOGUE, load, loading
from core.corpora.catalogue import from_dataset, is_local, offered
from core.errors import CorpusError

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


def test_class_labels_become_their_names() -> None:
    corpus = from_dataset("conll2003", small_dataset())
    assert [(sentence.tokens, dict(sentence.labels)) for sentence in corpus.train] == [
        (("Anna", "runs"), {"pos": ("NN", "VBZ"), "ner": ("B-PER", "O")}),
        (("Rose",), {"pos": ("NN",), "ner": ("B-PER",)}),
    ]
    assert len(corpus.dev) == len(corpus.test) == 1
    assert corpus.task("pos").unseen == {"dev": ("''",), "test": ("''",)}
    assert corpus.task("ner").labels == ("O", "B-PER")


def test_without_hub_or_folder_the_answer_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreachable(*args: object, **options: object) -> None:
        raise ConnectionError("Couldn't reach the Hub")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    with pytest.raises(CorpusError, match=r"Hub cannot be reached; set MRNLAB_DATA to a folder") as raised:
        load("both-pos")
    assert "\n" not in str(raised.value)


def test_the_hub_is_asked_for_the_revision_without_code(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[str, str]] = []

    def recorded(repository: str, revision: str) -> Any:
        requests.append((repository, revision))
        return small_dataset()

    monkeypatch.setattr(datasets, "load_dataset", recorded)
    monkeypatch.setattr("core.corpora.catalogue._look_up_hub", lambda: None)
    assert load("conll2003").name == "conll2003"
    assert requests == [("eriktks/conll2003", "refs/convert/parquet")]


def test_folders_under_mrnlab_data_take_the_place_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = ["conll2003", "conll2000", "both-pos", "streusle"]
    assert [name for name in CATALOGUE if not is_local(name)] == remote
    assert [name for name, spec in CATALOGUE.items() if spec.hub_folders] == remote
    monkeypatch.setenv("MRNLAB_DATA", str(tmp_path))
    for name, columns, missing in (("conll2003", 4, [*remote[1:]]), ("conll2000", 3, ["streusle"])):
        (tmp_path / name).mkdir()
        rows = "\n".join(" ".join(row.split()[:columns]) for row in ROWS.splitlines())
        for split in ("train", "test"):
            (tmp_path / name / f"{split}.conll").write_text(rows)
        assert [task.name for task in load(name).tasks] == ["pos", "chunk", "ner"][: columns - 1]
        assert [name for name in CATALOGUE if not is_local(name)] == missing
    assert "streusle" not in offered()
    with pytest.raises(CorpusError, match="'streusle' with its files"):
        load("streusle")
    both = load("both-pos")
    assert [task.name for task in both.tasks] == ["pos-2003", "pos-2000"]
    assert [(set(sentence.labels), sentence.part) for sentence in both.train] == [
        ({"pos-2003"}, "conll2003"),
        ({"pos-2000"}, "conll2000"),
    ]
