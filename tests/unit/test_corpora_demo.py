"""The demo corpora are what they were: scores on them are comparable between versions."""

from __future__ import annotations

import pytest

from core.corpora import CATALOGUE
from core.corpora.loading import read


@pytest.mark.parametrize(
    ("name", "text_hash", "sizes", "schemes"),
    [
        ("demo", "06fa149e52aa53ee", (1200, 300, 300), ("plain", "iob2", "iob2")),
        ("demo-pos-a", "ba962dbf4625d78a", (600, 200, 200), ("plain",)),
        ("demo-pos-b", "10aea14c602153ea", (600, 200, 200), ("plain",)),
        ("demo-both-pos", "f5a48a2ab3d86ad5", (1200, 400, 400), ("plain", "plain")),
    ],
)
def test_the_text_never_changes(
    name: str, text_hash: str, sizes: tuple[int, ...], schemes: tuple[str, ...]
) -> None:
    corpus = read(name)
    assert corpus.text_hash == text_hash
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == sizes
    assert tuple(task.name for task in corpus.tasks) == CATALOGUE[name].tasks
    assert tuple(task.scheme for task in corpus.tasks) == schemes
    assert corpus.notes == ()
    assert not any(any(task.illegal.values()) for task in corpus.tasks)


def test_the_two_tag_sets_share_most_labels() -> None:
    a, b = (set(read(name).task("pos").labels) for name in ("demo-pos-a", "demo-pos-b"))
    assert len(a & b) >= 24
    assert a - b
    assert b - a
