"""What MRN learned at one step, ready to draw: the matrix, its names, its strongest pairs, what could not be
learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.mrn.numbers import strongest_pairs
from core.mrn.relations import Relations
from core.mrn.rows import Block, impossible_blocks, row_names, stretches
from core.store.records import MetricSeries, Run, SnapshotKey

__all__ = [
    "Pair",
    "PairLine",
    "RelationsView",
    "gold_view",
    "pair_line",
    "penalty_vanished",
    "relations",
]

Floats = NDArray[np.floating]
_MOST_CELLS = 256
_VANISHED = 1e-6


@dataclass(frozen=True)
class Pair:
    """Two rows of the matrix and their correlation."""

    first: int
    second: int
    first_name: str
    second_name: str
    value: float


@dataclass(frozen=True)
class PairLine:
    """The correlation of one pair at every snapshot."""

    first_name: str
    second_name: str
    steps: NDArray[np.int64]
    values: Floats


@dataclass(frozen=True)
class RelationsView:
    """One matrix at one step.

    `matrix` is (n, n) within [−1, 1], rows of the same tasks beside each other; a matrix too large to hover
    is averaged over `block` × `block` cells. `names` and `owners` (each row's tasks) are those of the drawn
    rows, `rows` their first rows in the learned matrix, whose names are `all_names` and to which `pairs`
    refer. `impossible` are the drawn blocks that cannot be other than zero.
    """

    mode: str
    key: SnapshotKey
    names: tuple[str, ...]
    all_names: tuple[str, ...]
    owners: tuple[tuple[str, ...], ...]
    matrix: Floats
    block: int
    impossible: tuple[Block, ...]
    pairs: tuple[Pair, ...]
    rows: tuple[int, ...]

    @property
    def stretches(self) -> list[tuple[int, int, tuple[str, ...]]]:
        """Neighbouring rows of the same tasks: first, one past the last, the tasks."""
        return [(top, bottom, self.owners[top]) for top, bottom in stretches(self.owners)]


def relations(run: Run, mode: str, key: SnapshotKey, learned: Relations, top: int = 12) -> RelationsView:
    """The view of one snapshot of `task`, `label` or `feature`."""
    matrix = learned.correlation(mode)
    size = len(matrix)
    all_names, owners = row_names(run.facts, run.config.tasks, mode, size)
    pairs = _pairs(matrix, all_names, impossible_blocks(run.facts, mode, owners), top)
    order = _together(owners)
    block = -(-size // _MOST_CELLS)
    rows = tuple(order[::block])
    names = tuple(all_names[row] for row in rows)
    if block > 1:
        last = [order[min(i + block, size) - 1] for i in range(0, size, block)]
        names = tuple(f"{name} to {all_names[row]}" for name, row in zip(names, last, strict=True))
    drawn = _block_mean(_ordered(matrix, order), block)
    owners = tuple(owners[row] for row in rows)
    impossible = impossible_blocks(run.facts, mode, owners)
    return RelationsView(mode, key, names, all_names, owners, drawn, block, impossible, pairs, rows)


def _together(owners: Sequence[tuple[str, ...]]) -> list[int]:
    """The rows, those of the same tasks beside each other, groups and rows in the order of the first."""
    first = {tasks: place for place, tasks in reversed(list(enumerate(owners)))}
    return sorted(range(len(owners)), key=lambda row: first[owners[row]])


def _ordered(matrix: Floats, order: Sequence[int]) -> Floats:
    return matrix if list(order) == list(range(len(matrix))) else matrix[np.ix_(order, order)]


def _pairs(matrix: Floats, names: Sequence[str], impossible: Iterable[Block], top: int) -> tuple[Pair, ...]:
    strongest = strongest_pairs(matrix, top, impossible)
    return tuple(Pair(i, j, names[i], names[j], value) for i, j, value in strongest)


def _block_mean(matrix: Floats, block: int) -> Floats:
    if block == 1:
        return np.asarray(matrix, dtype=np.float32)
    edges = np.arange(0, len(matrix), block)
    sums = np.add.reduceat(np.add.reduceat(matrix, edges, axis=0), edges, axis=1)
    sizes = np.diff(np.append(edges, len(matrix)))
    return np.asarray(sums / np.outer(sizes, sizes), dtype=np.float32)


def pair_line(
    names: Sequence[str],
    mode: str,
    first: int,
    second: int,
    snapshots: Iterable[tuple[SnapshotKey, Relations]],
) -> PairLine:
    """One pair's correlation over training."""
    points = [(key.step, _one_correlation(learned, mode, first, second)) for key, learned in snapshots]
    steps, values = zip(*points, strict=True)
    return PairLine(names[first], names[second], np.array(steps), np.array(values, dtype=float))


def _one_correlation(learned: Relations, mode: str, i: int, j: int) -> float:
    """One cell without the whole matrix: (a·I + F Fᵀ) needs two rows of F only."""
    if mode != "feature":
        return float(learned.correlation(mode)[i, j])
    factor = np.asarray(learned.feature_factor[[i, j]], dtype=float)
    gram = factor @ factor.T + learned.feature_diagonal * np.eye(2)
    scale = np.sqrt(gram[0, 0] * gram[1, 1])
    return float(gram[0, 1] / scale) if scale > 0 else 0.0


def gold_view(run: Run, learned: RelationsView) -> RelationsView:
    """The correlations of gold labels on the training words, beside the learned ones: same rows, nothing
    impossible.

    To be called where the run's facts hold them (tasks that share words).
    """
    matrix = np.array(run.facts["cooccurrence"], dtype=np.float32)
    drawn = _ordered(matrix, learned.rows)
    return replace(learned, matrix=drawn, impossible=(), pairs=_pairs(matrix, learned.all_names, (), 12))


def penalty_vanished(penalty: MetricSeries | None) -> tuple[float, float] | None:
    """The largest and the last penalty, where the last is nothing beside the largest: MRN has become MTL."""
    if penalty is None:
        return None
    finite = penalty.value[np.isfinite(penalty.value)]
    if len(finite) < 2:
        return None
    largest, last = float(np.max(np.abs(finite))), float(abs(finite[-1]))
    return (largest, last) if largest > 0 and last <= _VANISHED * largest else None
