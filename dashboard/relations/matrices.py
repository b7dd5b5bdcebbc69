"""The matrices that the player shows, each at every step: of one run, of several, their difference, their
mean and spread, the gold labels beside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.mrn.relations import Block, Relations, impossible_blocks
from dashboard.relations.views import Floats, Places, Rows, SharedRows, Trajectory, clustered, together

# Cells along one side, of features: of one matrix alone, of several, and of a zoomed part. A part of so many
# features is exact. Labels are never averaged: each has a name.
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
    """The rows or columns drawn, from `start` to `stop`; each is the mean of `block` rows."""

    rows: Rows
    start: int
    stop: int
    block: int


@dataclass(frozen=True)
class Panel:
    """One matrix at every step, (k, n, m), or (1, n, m) where it is constant.

    `scale` is `correlation` (−1 to 1), `difference` (−limit to limit) or `spread` (0 to limit). The alignment
    forces the `impossible` blocks to zero. `steps` are the panel's own, where it has any.
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


def arrangement(mode: str, shared: SharedRows, last: Sequence[Relations], order: str) -> Places:
    """The shared rows in the order drawn: by task, or clustered by their correlations at the last step, so
    that rows keep their places while the steps are played.
    """
    if order != "cluster":
        return together(shared.rows)
    matrices = [one.correlation(mode)[np.ix_(at, at)] for one, at in zip(last, shared.places, strict=True)]
    return clustered(np.mean(matrices, axis=0))


def picture(
    trajectories: Sequence[Trajectory],
    names: Sequence[str],
    mode: str,
    view: str,
    shared: SharedRows,
    order: Places,
    window: Window | None = None,
    gold: Floats | None = None,
) -> Picture:
    """The panels of a view. `names` are the runs', `order` the shared rows as drawn, `gold` is (C, C) in the
    first run's own order.
    """
    size = len(order)
    part = window.within(size) if window else Window(0, size, 0, size)
    most = _MOST_ZOOMED if window else _MOST_ALONE if view == "one" else _MOST_BESIDE
    most = most if mode == "feature" else size
    rows = _axis(shared.rows.at(order), part.top, part.bottom, most)
    columns = _axis(shared.rows.at(order), part.left, part.right, most)
    panels = []
    for one, own, name in zip(trajectories, shared.places, names, strict=True):
        values = _stack(one.learned, mode, own[order], part, rows.block, columns.block)
        blocks = impossible_blocks(one.run.facts, mode, shared.rows.at(order).owners)
        steps = tuple(key.step for key in one.keys)
        panels.append(Panel(name, "correlation", 1.0, values, _clipped(blocks, part), steps))
    panels = _combined(panels, view)
    if gold is not None:
        first = shared.places[0][order]
        counted = np.asarray(gold[np.ix_(first, first)], dtype=np.float32)
        counted = counted[None, part.top : part.bottom, part.left : part.right]
        panels += [
            Panel("Gold labels", "correlation", 1.0, counted),
            _difference("Learned − gold", panels[0].values, counted, panels[0].impossible),
        ]
    if len(panels) == 1:
        panels = [replace(panels[0], title="")]
    return Picture(mode, rows, columns, tuple(panels))


def _combined(learned: list[Panel], view: str) -> list[Panel]:
    """The panels of a view, from one per run."""
    if view == "one":
        return [replace(learned[0], title="Learned", steps=())]
    if view == "difference":
        a, b = learned
        impossible = tuple(dict.fromkeys((*a.impossible, *b.impossible)))
        between = _difference("A − B", a.values, b.values, impossible)
        return [between, replace(a, title=f"A: {a.title}"), replace(b, title=f"B: {b.title}")]
    if view == "mean":
        values = np.stack([panel.values for panel in learned])
        seeds, spread = f"over {len(values)} seeds", values.std(axis=0, ddof=1)
        mean = replace(learned[0], title=f"Mean {seeds}", values=values.mean(axis=0), steps=())
        return [mean, replace(mean, title=f"SD {seeds}", scale="spread", limit=_limit(spread), values=spread)]
    return learned


def _difference(title: str, a: Floats, b: Floats, impossible: tuple[Block, ...]) -> Panel:
    values = np.asarray(a - b, dtype=np.float32)
    return Panel(title, "difference", _limit(values), values, impossible)


def _limit(values: Floats) -> float:
    """The end of a panel's own scale: the next of 1, 2, 5, 10, ... hundredths above the largest size."""
    finite = np.abs(values[np.isfinite(values)])
    largest = max(float(finite.max(initial=0.0)), 0.01)
    power = 10.0 ** math.floor(math.log10(largest))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= largest * (1 - 1e-6))


def _axis(ordered: Rows, start: int, stop: int, most: int) -> Axis:
    block = -(-(stop - start) // most)
    first = range(start, stop, block)
    drawn = ordered.at(first)
    if block > 1:
        last = [ordered.names[min(at + block, stop) - 1] for at in first]
        pairs = zip(drawn.names, last, strict=True)
        drawn = Rows(tuple(a if a == b else f"{a} … {b}" for a, b in pairs), drawn.owners)
    return Axis(drawn, start, first[-1] + block, block)


def _clipped(blocks: Sequence[Block], part: Window) -> tuple[Block, ...]:
    """The blocks as they lie in the part."""
    down, across = part.bottom - part.top, part.right - part.left
    moved = (
        Block(
            *np.clip([block.top - part.top, block.bottom - part.top], 0, down).tolist(),
            *np.clip([block.left - part.left, block.right - part.left], 0, across).tolist(),
        )
        for block in blocks
    )
    return tuple(block for block in moved if block.top < block.bottom and block.left < block.right)


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
    # Cells that hold the same feature as row and as column.
    lacking = np.where(scale > 0, 1 - np.einsum("dr,dr->d", unit, unit), 0.0)
    _, at_row, at_column = np.intersect1d(rows, columns, assume_unique=True, return_indices=True)
    np.add.at(sums, (at_row // down, at_column // across), lacking[rows[at_row]])
    return np.asarray(np.clip(sums / np.outer(height, width), -1, 1), dtype=np.float32)


def _sums(unit: Floats, block: int) -> tuple[Floats, Places]:
    """The sums of each `block` rows, and how many rows each sums."""
    edges = np.arange(0, len(unit), block)
    return np.add.reduceat(unit, edges, axis=0), np.diff(np.append(edges, len(unit)))
