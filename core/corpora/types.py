"""Sentence, Task and Corpus: annotated text, however it was stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Corpus", "Scheme", "Sentence", "Split", "Task"]

Split = Literal["train", "dev", "test"]
Scheme = Literal["iob2", "plain"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """The words of a sentence and, for each task annotated on it, one label per word.

    `part` names the corpus it came from, where several were joined; empty elsewhere.
    """

    tokens: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]]
    part: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """One column of labels.

    `labels` are those of the *training* sentences, `O` first, then by span type and prefix; a head has one
    row for each. `unseen` maps a split to labels that only it has: they are scored as errors.
    `illegal` counts, per split, tag sequences that the scheme forbids (an I- that continues nothing).
    """

    name: str
    scheme: Scheme
    labels: tuple[str, ...]
    unseen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    illegal: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Corpus:
    """Splits of sentences with tasks. `dev` may be empty; `train` and `test` are not.

    `notes` are sentences for the researcher: what was converted, counted or left out at load.
    `dev_from_train` says that `dev` is a seeded tenth of the training sentences, for want of a split of its
    own.
    """

    name: str
    tasks: tuple[Task, ...]
    train: tuple[Sentence, ...]
    dev: tuple[Sentence, ...]
    test: tuple[Sentence, ...]
    notes: tuple[str, ...] = ()
    dev_from_train: bool = False

    def split(self, name: Split) -> tuple[Sentence, ...]:
        """The sentences of that split."""
        return {"train": self.train, "dev": self.dev, "test": self.test}[name]

    def task(self, name: str) -> Task:
        """The task of that name (KeyError where there is none)."""
        return {task.name: task for task in self.tasks}[name]
