"""The matrices that the player shows, each at every moment: of one run, of several, their difference, their
mean and spread, the gold labels beside.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from core.mrn.relations import Block, Relations, impossible_blocks
from core.paths import database_url
from dashboard.relations.views import Course, Places, Rows, Shared, clustered, together

Floats = NDArray[np.floating]

# Cells along one side, of features: of one matrix alone, of several, and of a part zoomed into. A part of so
# many features is exact. Labels are never averaged: each has a name.
_MOST_ALONE, _MOST_BESIDE, _MOST_ZOOMED = 192, 128, 128


@dataclass(frozen=True)
class Window:
    """A part of the matrix: half-open ranges of rows and of columns, in the order drawn."""

    top: int
    bottom: int
    left: int
    right: int

    def within(self, size: int) -> Window:
        """As much of it as a matrix of that size has, a row and a column at least."""
        top, left = (min(edge, size - 1) for edge in (self.top, self.left))
        return Window(top, max(min(self.bottom, size), top + 1), left, max(min(self.right, size), left + 1))


@dataclass(frozen=True)
class Axis:
    """The rows or columns drawn. `first` is where each begins in the order drawn; each is the mean of `block`
    rows (the last may be of fewer), whose names `rows.names` tell.
    """

    rows: Rows
    first: tuple[int, ...]
    block: int


@dataclass(frozen=True)
class Panel:
    """One matrix at every moment, (k, n, m), or (1, n, m) where it is the same at all.

    `scale` is `correlation` (−1 to 1), `difference` (−limit to limit) or `spread` (0 to limit). `impossible`
    are the drawn blocks that the alignment forces to zero. `steps` are its own, where it has any.
    """

    title: str
    scale: str
    limit: float
    values: Floats
    impossible: tuple[Block, ...] = ()
    steps: tuple[int, ...] = ()


@dataclass(frozen=True)
class Picture:
    """Panels of the same rows and columns."""

    mode: str
    rows: Axis
    columns: Axis
    panels: tuple[Panel, ...]


def arrangement(mode: str, shared: Shared, last: Sequence[Relations], order: str) -> Places:
    """The shared rows in the order drawn: by task, or clustered by their correlations at the last step, so
    that nothing moves about while the steps are played.
    """
    if order != "cluster":
        return together(shared.rows)
    found = [
        learned.correlation(mode)[np.ix_(at, at)] for learned, at in zip(last, shared.places, strict=True)
    ]
    return clustered(np.mean(found, axis=0))


def picture(
    courses: Sequence[Course],
    names: Sequence[str],
    mode: str,
    view: str,
    shared: Shared,
    places: Places,
    window: Window | None = None,
    gold: Floats | None = None,
) -> Picture:
    """The panels of a view. `names` are the runs', `places` the shared rows in the order drawn, `gold` is
    (C, C) in the first run's own order.
    """
    size = len(places)
    part = window.within(size) if window else Window(0, size, 0, size)
    most = _MOST_ZOOMED if window else _MOST_ALONE if view == "one" else _MOST_BESIDE
    rows, columns = (
        _axis(shared.rows, places, start, stop, most if mode == "feature" else size)
        for start, stop in ((part.top, part.bottom), (part.left, part.right))
    )

    def panel(course: Course, own: Places, title: str) -> Panel:
        values = _stack(course.learned, mode, own[places], part, rows.block, columns.block)
        blocks = impossible_blocks(course.run.facts, mode, shared.rows.at(places).owners)
        return Panel(
            title, "correlation", 1.0, values, _part_of(blocks, part), tuple(key.step for key in course.keys)
        )

    learned = [panel(*one) for one in zip(courses, shared.places, names, strict=True)]
    panels = _VIEWS[view](learned)
    if len(panels) == 1 and gold is None:
        panels = [replace(panels[0], title="")]
    if gold is not None:
        counted = _cells(gold[np.ix_(shared.places[0], shared.places[0])][np.ix_(places, places)], part)[None]
        panels += [
            Panel("Gold labels", "correlation", 1.0, counted),
            _difference("Learned − gold", panels[0].values, counted, panels[0].impossible),
        ]
    return Picture(mode, rows, columns, tuple(panels))


def _one(learned: Sequence[Panel]) -> list[Panel]:
    return [replace(learned[0], title="Learned", steps=())]


def _difference_of_two(learned: Sequence[Panel]) -> list[Panel]:
    a, b = learned
    cannot = tuple(dict.fromkeys((*a.impossible, *b.impossible)))
    between = _difference("A − B", a.values, b.values, cannot)
    return [between, replace(a, title=f"A: {a.title}"), replace(b, title=f"B: {b.title}")]


def _mean(learned: Sequence[Panel]) -> list[Panel]:
    values = np.stack([panel.values for panel in learned])
    n = len(values)
    mean = replace(learned[0], title=f"Mean over {n} seeds", values=values.mean(axis=0), steps=())
    spread = values.std(axis=0, ddof=1)
    return [
        mean,
        replace(mean, title=f"SD over {n} seeds", scale="spread", limit=_limit(spread), values=spread),
    ]


_VIEWS: Mapping[str, Callable[[Sequence[Panel]], list[Panel]]] = {
    "one": _one,
    "side": list,
    "difference": _difference_of_two,
    "mean": _mean,
}


def _difference(title: str, a: Floats, b: Floats, impossible: tuple[Block, ...]) -> Panel:
    values = np.asarray(a - b, dtype=np.float32)
    return Panel(title, "difference", _limit(values), values, impossible)


def _limit(values: Floats) -> float:
    """The end of a scale of its own: the next of 1, 2, 5, 10, ... hundredths above the largest size."""
    finite = np.abs(values[np.isfinite(values)])
    largest = max(float(finite.max(initial=0.0)), 0.01)
    power = 10.0 ** math.floor(math.log10(largest))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= largest * (1 - 1e-6))


def _axis(rows: Rows, places: Places, start: int, stop: int, most: int) -> Axis:
    block = -(-(stop - start) // most)
    first = tuple(range(start, stop, block))
    drawn = rows.at(places[list(first)])
    if block > 1:
        last = [rows.names[places[min(at + block, stop) - 1]] for at in first]
        names = (
            one if one == other else f"{one} … {other}" for one, other in zip(drawn.names, last, strict=True)
        )
        drawn = Rows(tuple(names), drawn.owners)
    return Axis(drawn, first, block)


def _cells(matrix: Floats, part: Window) -> Floats:
    return np.asarray(matrix[part.top : part.bottom, part.left : part.right], dtype=np.float32)


def _part_of(blocks: Sequence[Block], part: Window) -> tuple[Block, ...]:
    """The blocks as they lie in the part."""
    moved = (
        Block(
            max(b.top, part.top) - part.top,
            min(b.bottom, part.bottom) - part.top,
            max(b.left, part.left) - part.left,
            min(b.right, part.right) - part.left,
        )
        for b in blocks
    )
    return tuple(b for b in moved if b.top < b.bottom and b.left < b.right)


def _stack(
    learned: Sequence[Relations], mode: str, own: Places, part: Window, down: int, across: int
) -> Floats:
    """(k, n, m): the part of the matrix whose rows are `own`, in means of `down` × `across` cells."""
    rows, columns = own[part.top : part.bottom], own[part.left : part.right]
    if mode == "feature":
        return np.stack([_feature_blocks(one, rows, columns, down, across) for one in learned])
    return np.stack([one.correlation(mode)[np.ix_(rows, columns)] for one in learned])


def _feature_blocks(learned: Relations, rows: Places, columns: Places, down: int, across: int) -> Floats:
    """Means of the feature correlations without the D × D matrix: the mean of g_i·g_j over a block is the
    product of the mean g_i and the mean g_j. On the diagonal R is 1, so what |g_i|² lacks of it is added.
    """
    scale, unit = learned.unit_rows()
    left, height = _sums(unit[rows], down)
    right, width = _sums(unit[columns], across)
    sums = left @ right.T
    # Where the same feature is in a row and in a column: in which cell that is.
    lacking = np.where(scale > 0, 1 - np.einsum("dr,dr->d", unit, unit), 0.0)
    _, at_row, at_column = np.intersect1d(rows, columns, assume_unique=True, return_indices=True)
    np.add.at(sums, (at_row // down, at_column // across), lacking[rows[at_row]])
    return np.asarray(np.clip(sums / np.outer(height, width), -1, 1), dtype=np.float32)


def _sums(unit: Floats, block: int) -> tuple[Floats, Places]:
    """The sums of each `block` rows, and how many rows each sums."""
    edges = np.arange(0, len(unit), block)
    return np.add.reduceat(unit, edges, axis=0), np.diff(np.append(edges, len(unit)))


# Matrices made ready for the player: computed once per runs, snapshots and view, for all sessions.


_MOST_BYTES = 200_000_000


@dataclass(frozen=True)
class Ready:
    """What the player gets, and which of the shared rows stands where in the order drawn."""

    frame: dict[str, Any]
    numbers: bytes
    places: Places


class Pictures:
    """The pictures made last, as many as fit into the memory set aside for them."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._kept: OrderedDict[Hashable, Ready] = OrderedDict()
        self._most = most_bytes
        self._lock = threading.Lock()

    def has(self, signature: Hashable) -> bool:
        """Whether that picture is there without being made."""
        return signature in self._kept

    def get(self, signature: Hashable, make: Callable[[], Ready]) -> Ready:
        """The picture of that signature, which says all that it depends on; made where it is not there."""
        with self._lock:
            found = self._kept.get(signature)
        if found is None:
            found = make()
        with self._lock:
            self._kept[signature] = found
            self._kept.move_to_end(signature)
            while len(self._kept) > 1 and sum(len(one.numbers) for one in self._kept.values()) > self._most:
                self._kept.popitem(last=False)
        return found


@st.cache_resource(max_entries=4, show_spinner=False)
def _pictures(url: str) -> Pictures:
    return Pictures()


def pictures() -> Pictures:
    """Those of the store in use."""
    return _pictures(database_url())
