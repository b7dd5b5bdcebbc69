"""Rows of texts in flat arrays: the words or labels of all sentences, each different text held once.

A corpus of millions of words needs some bytes for each word this way, and numpy counts and compares them.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.integer[Any]]
_ROWS_AT_ONCE = 1000
_NUMBERS_AT_ONCE = 1 << 18
"""Rows that are Python's at a time, and numbers that are counted: temporary arrays stay small."""

Value = TypeVar("Value", bound=Hashable)


def offsets(lengths: Numbers) -> NDArray[np.int64]:
    """The offsets (n+1,) of stretches stored one after the other."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def places(starts: Numbers, lengths: Numbers) -> NDArray[np.int64]:
    """The places starts[k] … starts[k]+lengths[k]−1 of all stretches k, one after the other."""
    begins = offsets(lengths)
    return np.repeat(starts - begins[:-1], lengths) + np.arange(begins[-1])


class Numbering(dict[Value, int], Generic[Value]):
    """A number for each different value, from 0, as they come."""

    def __missing__(self, value: Value) -> int:
        number = self[value] = len(self)
        return number


def shortest(numbers: Numbers, count: int) -> Numbers:
    """The numbers, all below `count`, in the smallest type that holds them."""
    return numbers.astype(np.min_scalar_type(max(count - 1, 0)), copy=False)


@dataclass(frozen=True, eq=False)
class Packed(Sequence[tuple[str, ...]]):
    """s rows of texts.

    names           the different texts; some may occur in no row
    numbers (N,)    the index in `names` of each text, row after row
    offsets (s+1,)  row k is numbers[offsets[k] : offsets[k+1]]
    """

    names: Sequence[str]
    numbers: Numbers
    offsets: NDArray[np.int64]

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(s,) the length of each row."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> Packed: ...
    def __getitem__(self, index: int | slice) -> tuple[str, ...] | Packed:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        start = range(len(self))[index]
        row = self.numbers[self.offsets[start] : self.offsets[start + 1]]
        return tuple(map(self.names.__getitem__, row.tolist()))

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        for first in range(0, len(self), _ROWS_AT_ONCE):
            borders = self.offsets[first : first + _ROWS_AT_ONCE + 1]
            texts = list(map(self.names.__getitem__, self.numbers[borders[0] : borders[-1]].tolist()))
            for start, end in pairwise((borders - borders[0]).tolist()):
                yield tuple(texts[start:end])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(map(tuple, other))

    def counts(self) -> Counter[str]:
        """How often each text occurs, in the order in which they first occur."""
        times = np.zeros(len(self.names), dtype=np.int64)
        order: dict[int, None] = {}
        for first in range(0, len(self.numbers), _NUMBERS_AT_ONCE):
            some = self.numbers[first : first + _NUMBERS_AT_ONCE]
            used, at = np.unique(some, return_index=True)
            order |= dict.fromkeys(used[np.argsort(at)].tolist())
            times += np.bincount(some, minlength=len(times))
        return Counter({self.names[number]: int(times[number]) for number in order})

    def take(self, rows: Numbers) -> Packed:
        """These rows, by their indices, in this order."""
        lengths = self.lengths[rows]
        return Packed(self.names, self.numbers[places(self.offsets[:-1][rows], lengths)], offsets(lengths))

    def mapped(self, change: Callable[[str], str]) -> Packed:
        """The rows with each text changed."""
        numbering = Numbering[str]()
        table = np.array([numbering[change(name)] for name in self.names], dtype=np.int64)
        return Packed(tuple(numbering), shortest(table, len(numbering))[self.numbers], self.offsets)

    def flags(self, is_so: Callable[[str], bool]) -> NDArray[np.bool_]:
        """(N,) whether each text is so."""
        return np.array([is_so(name) for name in self.names], dtype=bool)[self.numbers]

    def has(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(s,) whether some text of the row has its flag (N,) set."""
        any_flag = np.zeros(len(self), dtype=bool)
        any_flag[np.searchsorted(self.offsets, np.flatnonzero(flags), side="right") - 1] = True
        return any_flag

    def before(self, values: NDArray[Any], outside: Any) -> NDArray[Any]:
        """(N,) the value (N,) of the text before each one; `outside` at the beginning of a row."""
        moved = np.empty_like(values)
        moved[1:] = values[:-1]
        moved[self.offsets[:-1][self.lengths > 0]] = outside
        return moved


class Packer:
    """Makes `Packed` row by row."""

    def __init__(self) -> None:
        self._known = Numbering[str]()
        self._numbers = array("i")
        self._offsets = array("q", [0])

    def add(self, row: Iterable[str]) -> None:
        """One row more."""
        self._numbers.extend(map(self._known.__getitem__, row))
        self._offsets.append(len(self._numbers))

    def packed(self) -> Packed:
        """All rows so far."""
        numbers = np.frombuffer(self._numbers, dtype=np.intc) if self._numbers else np.zeros(0, np.intc)
        return Packed(
            tuple(self._known),
            shortest(numbers, len(self._known)),
            np.array(self._offsets, dtype=np.int64),
        )


def packed(rows: Iterable[Iterable[str]]) -> Packed:
    """These rows."""
    if isinstance(rows, Packed):
        return rows
    packer = Packer()
    for row in rows:
        packer.add(row)
    return packer.packed()


def joined(parts: Sequence[Packed]) -> Packed:
    """The rows of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    numbering = Numbering[str]()
    tables = [np.array([numbering[name] for name in part.names], dtype=np.int64) for part in parts]
    numbers = [
        shortest(table, len(numbering))[part.numbers] for table, part in zip(tables, parts, strict=True)
    ]
    lengths = [part.lengths for part in parts]
    return Packed(
        tuple(numbering),
        np.concatenate([np.zeros(0, np.uint8), *numbers]),
        offsets(np.concatenate([np.zeros(0, np.int64), *lengths])),
    )


def all_counts(columns: Iterable[Packed]) -> Counter[str]:
    """How often each text occurs in all of these, in the order in which they first occur."""
    total = Counter[str]()
    for column in columns:
        total.update(column.counts())
    return total
