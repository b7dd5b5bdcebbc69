"""What MRN learned at one step: the whole matrix, its names, its strongest pairs, what could not be
learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.mrn.numbers import strongest_pairs
from core.mrn.relations import MODES, Relations
from core.mrn.rows import Block, impossible_blocks
from core.store.records import MetricSeries, Run, SnapshotKey
from dashboard.queries.relations_rows import Rows, rows_of

__all__ = [
    "Pair",
    "RelationsView",
    "impossible_cells",
    "learns",
    "penalty_vanished",
    "relations",
    "saturated",
]

Floats = NDArray[np.floating]
_VANISHED = 1e-6
_NEARLY_ONE = 0.98


@dataclass(frozen=True)
class Pair:
    """Two rows of the matrix and their correlation."""

    first: int
    second: int
    first_name: str
    second_name: str
    value: float


@dataclass(frozen=True)
class RelationsView:
    """One run's matrix at one step, (n, n) within [−1, 1], rows in the run's own order. `impossible` are the
    blocks that cannot be other than zero.
    """

    mode: str
    key: SnapshotKey
    rows: Rows
    matrix: Floats
    impossible: tuple[Block, ...]
    pairs: tuple[Pair, ...]


def relations(run: Run, mode: str, key: SnapshotKey, learned: Relations, top: int = 12) -> RelationsView:
    """The view of one snapshot of `task`, `label` or `feature`."""
    matrix = learned.correlation(mode)
    rows = rows_of(run, mode, learned)
    impossible = impossible_blocks(run.facts, mode, rows.owners)
    return RelationsView(mode, key, rows, matrix, impossible, _pairs(matrix, rows.names, impossible, top))


def _pairs(matrix: Floats, names: Sequence[str], impossible: Iterable[Block], top: int) -> tuple[Pair, ...]:
    strongest = strongest_pairs(matrix, top, impossible)
    return tuple(Pair(i, j, names[i], names[j], value) for i, j, value in strongest)


def impossible_cells(blocks: Iterable[Block], size: int) -> NDArray[np.bool_]:
    """(n, n): whether the alignment forces a cell to zero."""
    cells = np.zeros((size, size), dtype=bool)
    for block in blocks:
        cells[block.top : block.bottom, block.left : block.right] = True
    return cells


def learns(run: Run, mode: str) -> bool:
    """Whether the run learns this covariance; otherwise it stays as it began."""
    return mode in (run.config.learn or MODES)


def saturated(view: RelationsView) -> float | None:
    """The share of possible pairs whose correlation is all but ±1, where that is most of them."""
    pairs = np.triu(~impossible_cells(view.impossible, len(view.matrix)), 1)
    sizes = np.abs(view.matrix[pairs])
    share = float(np.mean(sizes >= _NEARLY_ONE)) if len(sizes) else 0.0
    return share if share > 0.5 else None


def penalty_vanished(penalty: MetricSeries | None) -> tuple[float, float] | None:
    """The largest and the last penalty, where the last is nothing beside the largest: MRN has become MTL."""
    if penalty is None:
        return None
    finite = penalty.value[np.isfinite(penalty.value)]
    if len(finite) < 2:
        return None
    largest, last = float(np.max(np.abs(finite))), float(abs(finite[-1]))
    return (largest, last) if largest > 0 and last <= _VANISHED * largest else None
