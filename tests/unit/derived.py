"""Corpora as a run of a derived corpus has them."""

from __future__ import annotations

from typing import Any

from core.config import RunConfig
from core.corpora import Corpus, prepare


def made(corpus: str, tasks: str, **values: Any) -> Corpus:
    """The corpus of a run on these tasks."""
    paradigm = "mtl" if "," in tasks else "stl"
    return prepare(RunConfig.build(corpus=corpus, tasks=tasks, paradigm=paradigm, **values))


def on(corpus: Corpus, task: str) -> list[tuple[str, ...]]:
    """The words of the training sentences annotated for that task."""
    return [sentence.tokens for sentence in corpus.train if task in sentence.labels]
