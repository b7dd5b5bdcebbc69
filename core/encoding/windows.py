"""Sentences longer than the encoder's limit, read in overlapping windows.

Every word lies in at least one window and *belongs* to exactly one: the one where it has more context on its
shorter side. Labels are learned and predicted where a word belongs, so joining windows again is nothing but
reading words in order, and no word is ever without a prediction.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["OVERLAP", "Window", "cut"]

OVERLAP = 0.25
"""Share of a window that the next one reads again, as context."""


@dataclass(frozen=True, slots=True)
class Window:
    """Words [start, stop) are read; words [own_start, own_stop) belong to this window."""

    start: int
    stop: int
    own_start: int
    own_stop: int


def cut(lengths: Sequence[int], budget: int) -> list[Window]:
    """Windows over words of these lengths in subwords, each at most `budget` subwords long.

    A word longer than the budget gets a window of its own (the caller cuts its tail off). The words that
    belong to the windows are the words of the sentence, each once, in order. Raises ValueError for a
    budget below 1.
    """
    if budget < 1:
        raise ValueError(f"budget must be at least 1 subword, not {budget}")
    ends = np.cumsum(lengths)
    starts = ends - np.asarray(lengths, dtype=ends.dtype)
    total = len(lengths)
    spans: list[tuple[int, int]] = []
    start = 0
    while start < total:
        stop = max(int(np.searchsorted(ends, starts[start] + budget, side="right")), start + 1)
        spans.append((start, stop))
        if stop == total:
            break
        # The next window begins `OVERLAP` of the budget before this one's end, but always further on.
        back = int(np.searchsorted(starts, ends[stop - 1] - int(budget * OVERLAP), side="left"))
        start = min(max(back, start + 1), stop)
    borders = [0]
    for (_, stop), (after, _) in itertools.pairwise(spans):
        borders.append((after + stop) // 2)
    borders.append(total)
    return [
        Window(start, stop, borders[index], borders[index + 1]) for index, (start, stop) in enumerate(spans)
    ]
