"""The real corpora, where they are: sizes and label sets as published."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.config import RunConfig
from core.corpora import load, prepare

pytestmark = pytest.mark.realdata


@pytest.fixture(autouse=True)
def in_mrnlab_data(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MRNLAB_DATA", str(real_data))
    return real_data


def test_conll2003() -> None:
    corpus = load("conll2003")
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (14041, 3250, 3453)
    assert [(task.name, task.scheme, len(task.labels)) for task in corpus.tasks] == [
        ("pos", "plain", 45),
        ("chunk", "iob2", 20),
        ("ner", "iob2", 9),
    ]
    assert corpus.task("chunk").unseen == {"dev": ("I-PRT",)}
    assert all(not any(task.illegal.values()) for task in corpus.tasks)


def test_conll2000_and_both_pos() -> None:
    corpus = load("conll2000")
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (8936, 0, 2012)
    both = prepare(
        RunConfig.build(corpus="both-pos", tasks="pos-2003,pos-2000", paradigm="mtl", fraction=0.01)
    )
    parts = [sentence.part for sentence in both.train]
    assert (parts.count("conll2003"), parts.count("conll2000")) == (140, 80)
    assert len(both.dev) == 3250 + 9
    assert len(both.test) == 3453 + 2012


def test_ud_lines() -> None:
    corpus = load("ud-lines")
    assert [(task.name, len(task.labels)) for task in corpus.tasks] == [("upos", 17), ("xpos", 143)]
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (3457, 1118, 1121)
    assert "train.conllu: 690 rows of multiword ranges and empty nodes left out." in corpus.notes
