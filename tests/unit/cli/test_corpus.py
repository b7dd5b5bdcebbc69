"""mrnlab corpus, and what launch prints of how a corpus was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.making import corpus_folder
from tests.unit.cli.conftest import Laboratory

_ROWS = "-DOCSTART- O\n\nAda S-PER\nOld B-LOC\nMill E-LOC\nfell O\n"


def _folder(tmp_path: Path) -> str:
    return corpus_folder(tmp_path / "mine", dict.fromkeys(("train.conll", "test.conll"), _ROWS))


def test_a_corpus_is_read_and_reported(lab: Laboratory, tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    first, title, *rest = lab.answer("corpus", folder).splitlines()
    assert first == "1 train and 1 test sentences, 8 words."
    assert title == "mine, CoNLL columns separated by spaces: train.conll (train), test.conll (test)"
    assert rest[2].split("  ")[0] == "ner (guessed)"
    assert "spans of words: 4 spans, 4 labels" in rest[2]
    assert "ner: written in IOBES in the train and test splits; converted to IOB2." in rest
    document = lab.json("corpus", folder, "--columns", "tokens,entity")
    (reading,) = document["readings"]
    assert [(column["name"], column["guessed"]) for column in reading["columns"]] == [
        ("tokens", False),
        ("entity", False),
    ]
    assert document["tasks"] == [
        {"name": "entity", "scheme": "iob2", "labels": ["O", "B-LOC", "I-LOC", "B-PER"]}
    ]
    assert lab.store.runs() == []
    assert "there is no corpus" in lab.refusal("corpus", "nowhere").lower()


def test_launch_prints_how_a_corpus_of_others_was_read(lab: Laboratory, tmp_path: Path) -> None:
    arguments = ("--paradigm", "stl", "--encoder-training", "frozen")
    told = lab.call("launch", "--corpus", _folder(tmp_path), *arguments, "--set", "dev_sentences=0").stderr
    assert "ner (guessed)" in told
    assert told.count("converted to IOB2") == 1
    assert told.index("ner (guessed)") < told.index("Queued run 1.")
    known = lab.call("launch", "--corpus", "demo", "--tasks", "pos", *arguments).stderr
    assert "labels of words" not in known


def test_a_dataset_goes_through_the_same_doors(lab: Laboratory, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = {"tokens": [["Ada", "ran"], ["Bo"]] * 5, "ner_tags": [["B-PER", "O"], ["B-PER"]] * 5}
    table = datasets.Dataset.from_dict(rows)
    datasets.DatasetDict(train=table, validation=table, test=table).save_to_disk(tmp_path / "mine")
    name = f"hub:{tmp_path / 'mine'}"
    (reading,) = lab.json("corpus", name)["readings"]
    assert [(column["name"], column["column"]) for column in reading["columns"]] == [
        ("tokens", ""),
        ("ner", "ner_tags"),
    ]
    arguments = ("--paradigm", "stl", "--encoder-training", "frozen", "--tasks", "ner")
    told = lab.call("launch", "--corpus", f"{name}?columns=tokens,ner_tags:ner&train=4", *arguments).stderr
    assert f"fingerprint {reading['revision']}" in told
    (run,) = lab.store.runs()
    assert run.config.corpus == f"{name}?columns=tokens,ner_tags:ner&train=4"
    assert lab.refusal("launch", "--corpus", "hub:no such thing", *arguments).startswith(
        "'no such thing' is neither"
    )
