"""Columns as readers give them, and what each is for: the same for all formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from core.corpora.types import Scheme

Content = Literal["names", "text", "whole", "real", "bool", "other"]
"""The type of values: numbers of named labels, texts, whole or real numbers, booleans, anything else."""


@dataclass(frozen=True)
class Field:
    """A column as a reader gives it.

    is_list    a row has a list, of a value for each word; else a single value
    seen       the values of the first rows; None where a row has none
    names      the names of numbers, in their order
    is_single  real numbers have single precision, whose first six digits mean something
    """

    name: str
    is_list: bool
    content: Content
    seen: Sequence[Any] = ()
    names: tuple[str, ...] = ()
    is_single: bool = False


@dataclass(frozen=True)
class Layout:
    """What each column is for.

    columns   all, from left to right
    words     the column of words; empty where there is none
    texts     the column of a text, or the two of a pair, where there is none of words
    schemes   by column of labels or numbers, the kind of task; None where the labels of words tell it
    tasks     by the same columns, the name of the task
    left_out  by column that is no task, why; empty where its name or its type says it
    guessed   the columns whose name or role is a guess by what they hold
    """

    columns: tuple[str, ...]
    words: str = ""
    texts: tuple[str, ...] = ()
    schemes: Mapping[str, Scheme | None] = field(default_factory=dict)
    tasks: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    guessed: frozenset[str] = frozenset()

    @property
    def task_schemes(self) -> dict[str, Scheme]:
        """The kind of each task that is known before its labels are read."""
        return {self.tasks[column]: scheme for column, scheme in self.schemes.items() if scheme is not None}

    @property
    def left_out_shown(self) -> list[str]:
        """The columns that are for nothing, each with the reason where there is one."""
        names = [
            name for name in self.columns if name not in (self.words, *self.texts, *self.schemes) or not name
        ]
        return [f"{name} ({reason})" if (reason := self.left_out.get(name)) else name for name in names]
