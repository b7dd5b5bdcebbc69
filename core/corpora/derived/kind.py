"""What a kind of derived corpus is: its options, its tasks, and how its sentences come about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.corpora.types import Corpus

__all__ = ["Kind", "Option", "Options", "same_tasks"]

Options = Mapping[str, Any]
"""The values of the options that a name gives, read and in range."""


@dataclass(frozen=True)
class Option:
    """One option: `read` makes its value of the text, and raises ValueError with what is expected."""

    help: str
    read: Callable[[str], Any]


@dataclass(frozen=True)
class Kind:
    """One way to make a corpus of another.

    `tasks` maps each task of the made corpus to the task of the base that it comes from; it is given the
    base's tasks in order. `derive` makes the corpus with a run's seed; it draws of each part of a joined
    base apart. Its labels are counted afterwards. Both raise CorpusError.
    """

    name: str
    description: str
    options: Mapping[str, Option]
    tasks: Callable[[Sequence[str], Options], Mapping[str, str]]
    derive: Callable[[Corpus, Options, int], Corpus]


def same_tasks(base: Sequence[str], options: Options) -> dict[str, str]:
    """The `tasks` of a kind that keeps the tasks of its base."""
    del options
    return {task: task for task in base}
