"""The matrices that the player shows, each at every step: means over seeds, gold labels, gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from core.evaluation.relation_verdicts import RelationVerdicts
from core.mrn.relations import Block, Relations, impossible_blocks
from dashboard.relations.views import (
    Floats,
    Group,
    Places,
    Rows,
    SharedRows,
    Trajectory,
    clustered,
    shared_matrices,
    together,
    variances,
)

# Cells along one side, of features: of one matrix alone, of several, and of the part that one can zoom into,
# whose values are exact. Labels are never averaged: each has a name.
_MOST_ALONE, _MOST_BESIDE, _ZOOMED = 192, 128, 64

_ABOUT_ONE = 0.05
"""Variances of all rows so near to their mean are no news: they have no bars."""

Corner = tuple[int, int]
"""The first row and column of a part of the feature matrix, in the order drawn."""


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

    `scale` is `correlation` or `cosine` (−1 to 1), or `difference` (−limit to limit). The alignment forces
    the `impossible` blocks to zero. `steps` are the panel's own, where it has any. `variances` (k, n) are
    those of the rows over their mean; empty where the panel has none. `verdicts` are on its cells at the
    last step, in the order drawn. `note` stands under the title.
    """

    title: str
    scale: str
    limit: float
    values: Floats
    impossible: tuple[Block, ...] = ()
    steps: tuple[int, ...] = ()
    variances: Floats = field(default_factory=lambda: np.empty((0, 0)))
    verdicts: RelationVerdicts | None = None
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """Panels of the same rows and columns."""

    mode: str
    rows: Axis
    columns: Axis
    panels: tuple[Panel, ...]


def arrangement(mode: str, shared: SharedRows, last: Sequence[Relations], order: str) -> Places:
    """The shared rows in the order drawn: by task, or clustered by the correlations at the last step.
    Rows keep their places while the steps are played.
    """
    if order != "cluster":
        return together(shared.rows)
    return clustered(shared_matrices(last, mode, shared).mean(axis=0))


def picture(
    trajectories: Sequence[Trajectory],
    groups: Sequence[Group],
    mode: str,
    shared: SharedRows,
    order: Places,
    corner: Corner | None = None,
    gold: Floats | None = None,
    gradients: Floats | None = None,
    *,
    verdicts: Sequence[RelationVerdicts | None] = (),
    is_learned: bool = True,
) -> Picture:
    """A panel for each group of runs, their mean. `order` are the shared rows as drawn.
    `corner` is the first cell of the part of the features drawn, `gold` is (C, C) in the first run's order,
    `gradients` (T, T) are the cosines of its tasks, `verdicts` are on the shared rows, of each group.
    Matrices that are not learned are cosines, and have no variances.
    """
    drawn, size = shared.rows.at(order), len(order)
    most = size if mode != "feature" else _MOST_ALONE if len(trajectories) == 1 else _MOST_BESIDE
    starts = (0, 0)
    if corner is not None and mode == "feature":
        size = most = min(size, _ZOOMED)
        starts = (min(corner[0], len(order) - size), min(corner[1], len(order) - size))
    rows, columns = (_axis(drawn, start, start + size, most) for start in starts)
    of_runs = iter(zip(trajectories, shared.places, strict=True))
    panels = []
    for place, group in enumerate(groups):
        means, spreads = [], []
        steps: tuple[int, ...] = ()
        for _ in group.runs:
            trajectory, row_places = next(of_runs)
            down, across = (row_places[order][axis.start : axis.stop] for axis in (rows, columns))
            means.append([_cells(learned, mode, down, across, rows.block) for learned in trajectory.learned])
            spreads.append([_variances(learned, mode, down, rows.block) for learned in trajectory.learned])
            steps = steps or tuple(key.step for key in trajectory.keys)
        values = np.mean(means, axis=0)
        spread = np.mean(spreads, axis=0)
        has_bars = is_learned and len(groups) == 1 and not _are_about_one(spread)
        panels.append(
            Panel(
                group.title,
                "correlation" if is_learned else "cosine",
                1.0,
                values,
                tuple(impossible_blocks(group.runs[0].facts, mode, drawn.owners)),
                steps,
                spread if has_bars else np.empty((0, 0)),
                of.at(order) if verdicts and (of := verdicts[place]) is not None else None,
                group.note,
            )
        )
    if gold is not None:
        first = shared.places[0][order]
        counted = np.asarray(gold[np.ix_(first, first)], dtype=np.float32)[None]
        panels += [
            Panel("Gold labels", "correlation", 1.0, counted),
            _difference("Learned − gold", panels[0].values, counted, panels[0].impossible),
        ]
    if gradients is not None:
        tasks = [trajectories[0].run.config.tasks.index(name) for name in drawn.names]
        cosines = np.asarray(gradients[np.ix_(tasks, tasks)], dtype=np.float32)[None]
        panels.append(Panel("Gradient cosine", "correlation", 1.0, cosines))
    if len(panels) > len(groups):
        panels[0] = replace(panels[0], title="Learned")
    if len(groups) == 1:  # the slider tells its steps
        panels[0] = replace(panels[0], steps=())
    return Picture(mode, rows, columns, tuple(panels))


def _variances(learned: Relations, mode: str, rows: Places, block: int) -> Floats:
    return np.divide(*_sums(variances(learned, mode)[rows], block))


def _are_about_one(values: Floats) -> bool:
    """Whether the variances (k, n) of all rows are about their mean, at every step."""
    return bool(np.abs(values - 1).max(initial=0.0) < _ABOUT_ONE)


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


def _cells(learned: Relations, mode: str, rows: Places, columns: Places, block: int) -> Floats:
    """(n, m): the correlations of these rows and columns, of features the means of blocks."""
    if mode == "feature":
        return _feature_blocks(learned, rows, columns, block)
    return np.asarray(learned.correlation(mode)[np.ix_(rows, columns)])


def _feature_blocks(learned: Relations, rows: Places, columns: Places, block: int) -> Floats:
    """Means over blocks of the feature correlations, without the D × D matrix.
    The mean of g_i·g_j over a block is the product of the mean g_i and the mean g_j. On the diagonal R is
    1, so 1 − |g_i|² is added.
    """
    scale, unit = learned.unit_rows()
    left, height = _sums(unit[rows], block)
    right, width = _sums(unit[columns], block)
    sums = left @ right.T
    # Cells that hold the same feature as row and as column.
    lacking = np.where(scale > 0, 1 - np.einsum("dr,dr->d", unit, unit), 0.0)
    _, at_row, at_column = np.intersect1d(rows, columns, assume_unique=True, return_indices=True)
    np.add.at(sums, (at_row // block, at_column // block), lacking[rows[at_row]])
    return np.asarray(np.clip(sums / np.outer(height, width), -1, 1), dtype=np.float32)


def _sums(unit: Floats, block: int) -> tuple[Floats, Places]:
    """The sums of each `block` rows, and how many rows each sums."""
    edges = np.arange(0, len(unit), block)
    return np.add.reduceat(unit, edges, axis=0), np.diff(np.append(edges, len(unit)))
