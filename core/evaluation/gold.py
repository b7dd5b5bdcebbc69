"""The gold labels of a task as numbers: made once, compared with what every epoch predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["Gold", "Ints", "Labels", "numbered"]

Labels = Sequence[Sequence[str]]
"""Labels of sentences."""
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Gold:
    """`numbers` (N,): the label of each word, as its place in `names`, sentence after sentence of `lengths`
    (s,) words. `names` may hold labels that no word has.
    """

    names: tuple[str, ...]
    numbers: Ints
    lengths: Ints

    @cached_property
    def first(self) -> NDArray[np.bool_]:
        """(N,): where a sentence begins."""
        flags = np.zeros(len(self.numbers), dtype=bool)
        flags[(np.cumsum(self.lengths) - self.lengths)[self.lengths > 0]] = True
        return flags


def numbered(gold: Labels, predicted: Labels) -> tuple[Gold, Ints]:
    """Gold labels, and predicted ones of the same lengths, as numbers (N,) of the same names."""
    flat = [label for column in (gold, predicted) for labels in column for label in labels]
    place = {label: number for number, label in enumerate(dict.fromkeys(flat))}
    codes = np.fromiter(map(place.__getitem__, flat), dtype=np.int64, count=len(flat))
    lengths = np.array([len(labels) for labels in gold], dtype=np.int64)
    words = int(lengths.sum())
    return Gold(tuple(place), codes[:words], lengths), codes[words:]
