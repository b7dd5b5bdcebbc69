"""The names of labels that are numbers, where another column has one for each: `label` and `label_text`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import partial
from typing import TypeVar

import numpy as np

from core.config.typed import real_number
from core.corpora.reading import ColumnReading, values_shown
from core.corpora.types import Column, Scheme, Sentences, Split
from core.tasks import KINDS

_OF_NAMES = ("_text", "_name", "_names", "_str", "_string")
"""The ends of the names of columns that name numbers."""
_ROWS = 100
"""In so many rows a name for each number is no coincidence, whatever the columns are called."""

Value = TypeVar("Value", bound=Hashable)


def names_of(pairs: Iterable[tuple[Value, str]]) -> dict[Value, str]:
    """The name that texts have for each number; empty where it is not one for each."""
    different = set(pairs)
    names = dict(different)
    is_one_to_one = len(different) == len(names) == len({name for _, name in different})
    return names if is_one_to_one and all(names.values()) else {}


def name_numbers(splits: dict[Split, Sentences], schemes: Mapping[str, Scheme]) -> list[ColumnReading]:
    """Gives labels of texts or sentences that are numbers the names that another column has for them.

    Changes `splits`: the other column is no task. Returns its reading.
    """
    tasks = [task for task, scheme in schemes.items() if KINDS[scheme].reads != "words"]
    tasks = [task for task in tasks if not KINDS[schemes[task]].is_number]
    kinds = {task: set(splits["train"].column(task).rows.counts()) for task in tasks}
    numbers = [task for task in tasks if kinds[task] and None not in map(real_number, kinds[task])]
    texts = [task for task in tasks if kinds[task] and {*map(real_number, kinds[task])} == {None}]
    readings = []
    for task in numbers:
        for other in list(texts):
            pairs = [
                pair for each in splits.values() for pair in _pairs(each.column(task), each.column(other))
            ]
            names = names_of(pairs)
            rows = len(splits["train"].column(task).at)
            if len(names) < 2 or not (rows >= _ROWS or other.lower().endswith(_OF_NAMES)):
                continue
            texts.remove(other)
            examples = values_shown(splits["train"].column(other).rows.counts())
            for split, sentences in splits.items():
                column = sentences.column(task)
                named = Column(column.at, column.rows.mapped(partial(_named, names)))
                splits[split] = sentences.with_column(task, named).without([other])
            notes = (f"left out: it names the numbers of {task}.",)
            readings.append(ColumnReading(other, "skipped", examples=examples, notes=notes))
            break
    return readings


def _named(names: Mapping[str, str], label: str) -> str:
    return names.get(label, label)


def _pairs(numbers: Column, names: Column) -> set[tuple[str, str]]:
    """The different pairs of labels that two columns have on one row."""
    _, here, there = np.intersect1d(numbers.at, names.at, assume_unique=True, return_indices=True)
    rows = np.stack([numbers.rows.numbers[here], names.rows.numbers[there]], axis=1).astype(np.int64)
    return {
        (numbers.rows.names[number], names.rows.names[name])
        for number, name in np.unique(rows, axis=0).tolist()
    }
