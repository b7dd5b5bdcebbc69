"""Names for the columns of a CoNLL file, proposed from what is in them. The form has them confirmed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from core.corpora.columns import IGNORED, TOKENS, Table, read_table
from core.corpora.files import CONLLU, find_splits
from core.corpora.schemes import notation
from core.errors import CorpusError
from core.plain_text import shortened

__all__ = ["ColumnProposal", "detect_columns", "name_columns", "name_several"]

_CHUNK_TYPES = frozenset(["NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP"])

# A column with more kinds of values than this, and one for every few words, holds lemmas or the like.
_MOST_LABELS = 200
_WORDS_PER_LABEL = 10


@dataclass(frozen=True)
class ColumnProposal:
    """A name for each column, from left to right, and the first sentence's rows to check them by.

    A name that begins with `_` is a column to read over (numbers, lemmas).
    """

    columns: tuple[str, ...]
    sample: tuple[tuple[str, ...], ...]


def detect_columns(path: str | Path) -> ColumnProposal:
    """Proposed names for the columns of a CoNLL file, or of the train file of a folder.

    Raises CorpusError where the file cannot be read or has but one column.
    """
    # Of os.path, whose functions raise nothing, whatever a name holds.
    if not os.path.exists(path):
        raise CorpusError(f"There is no folder '{shortened(str(path), 300)}'; check the name.")
    path = Path(path)
    if path.is_dir():
        path = find_splits(path)["train"]
    if path.suffix.lower() == CONLLU:
        raise CorpusError(f"{path} is CoNLL-U, whose columns are fixed; there is nothing to name.")
    table = read_table(path)
    _, end = table.bounds[:2]
    sample = zip(*(column[:end] for column in table.columns), strict=True)
    return ColumnProposal(name_several(table, path), tuple(sample))


def name_several(table: Table, path: Path) -> tuple[str, ...]:
    """As `name_columns`. Raises CorpusError where the file of that path has but one column."""
    if len(table.columns) < 2:
        raise CorpusError(
            f"{path}, line 1: has one column; expected words and at least one column of labels."
        )
    return name_columns(table)


def name_columns(table: Table) -> tuple[str, ...]:
    """A name for each of two columns or more, from left to right, by what is in them; one is `tokens`."""
    columns = [table.column(place) for place in range(len(table.columns))]
    words = _words_place(columns)
    names: list[str] = []
    for place, column in enumerate(columns):
        name = TOKENS if place == words else _name(column)
        names.append(_free(name, names))
    return tuple(names)


def _words_place(columns: Sequence[Sequence[Sequence[str]]]) -> int:
    """The column with the most kinds of values that is neither a numbering nor labels of spans."""
    kinds = [
        0 if _is_numbering(column) or notation(column) != "plain" else len(_values(column))
        for column in columns
    ]
    return max(range(len(columns)), key=lambda place: (kinds[place], -place))


def _name(column: Sequence[Sequence[str]]) -> str:
    if _is_numbering(column):
        return IGNORED + "number"
    values = _values(column)
    if notation(column) != "plain":
        types = {value.partition("-")[2] for value in values if value != "O"}
        return "chunk" if len(types & _CHUNK_TYPES) * 2 >= len(types) else "ner"
    if values == {"O"}:
        return "ner"
    size = sum(map(len, column))
    return IGNORED + "other" if len(values) > max(_MOST_LABELS, size / _WORDS_PER_LABEL) else "pos"


def _is_numbering(column: Sequence[Sequence[str]]) -> bool:
    return all(
        value == str(first + place)
        for labels in column
        for first in (0 if labels[0] == "0" else 1,)
        for place, value in enumerate(labels)
    )


def _values(column: Iterable[Sequence[str]]) -> set[str]:
    return set(chain.from_iterable(column))


def _free(name: str, taken: Sequence[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}{number}" in taken:
        number += 1
    return f"{name}{number}"
