"""The rows of the matrices: which several runs share, and in which order they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.mrn.relations import Relations
from core.mrn.rows import row_names
from core.store.records import Run

__all__ = ["Places", "Rows", "Shared", "clustered", "not_comparable", "rows_of", "shared_rows", "together"]

Floats = NDArray[np.floating]
Places = NDArray[np.int64]

# The best order of the leaves takes time with the cube of their number: 0.02 s for 100 rows, 4 s for 768.
_BEST_ORDER_UP_TO = 256


@dataclass(frozen=True)
class Rows:
    """The rows of one matrix: their names, and the tasks that own each (none, where no task does)."""

    names: tuple[str, ...]
    owners: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.names)

    def at(self, places: Sequence[int] | Places) -> Rows:
        """These rows, in this order."""
        return Rows(tuple(self.names[i] for i in places), tuple(self.owners[i] for i in places))


@dataclass(frozen=True)
class Shared:
    """The rows that all of some runs have, in the order of the first run.

    `places` says per run where each of them is in its own matrix, `left_out` which rows of it are not shared.
    """

    rows: Rows
    places: tuple[Places, ...]
    left_out: tuple[tuple[str, ...], ...]


def rows_of(run: Run, mode: str, learned: Relations) -> Rows:
    """The rows of a run's matrix of `task`, `label` or `feature`."""
    size = len(learned.feature_factor) if mode == "feature" else len(learned.covariance(mode))
    return Rows(*row_names(run.facts, run.config.tasks, mode, size))


def shared_rows(all_rows: Sequence[Rows]) -> Shared:
    """The rows of the same name, which are those of the same meaning: `pos:NN`, or a task."""
    common = set(all_rows[0].names).intersection(*(rows.names for rows in all_rows[1:]))
    names = [name for name in all_rows[0].names if name in common]
    where = [{name: place for place, name in enumerate(rows.names)} for rows in all_rows]
    places = tuple(np.array([of[name] for name in names], dtype=np.int64) for of in where)
    left_out = tuple(tuple(name for name in rows.names if name not in common) for rows in all_rows)
    return Shared(all_rows[0].at(places[0]), places, left_out)


def together(rows: Rows) -> Places:
    """The order by task: rows of the same tasks beside each other, groups and rows in the order of the
    first.
    """
    first = {tasks: place for place, tasks in reversed(list(enumerate(rows.owners)))}
    return np.array(sorted(range(len(rows)), key=lambda row: first[rows.owners[row]]), dtype=np.int64)


def clustered(correlations: Floats) -> Places:
    """The order that sets rows of like relations beside each other.

    Average linkage over the distances 1 − r, the leaves turned so that neighbours are as near as can be
    (Bar-Joseph, Gifford and Jaakkola 2001, "Fast optimal leaf ordering"). Where a correlation is no number
    or there is nothing to order, the rows stay as they are.
    """
    size = len(correlations)
    if size < 3 or not np.isfinite(correlations).all():
        return np.arange(size)
    # Loads in a quarter of a second, and only who asks for this order waits for it.
    from scipy.cluster.hierarchy import leaves_list, linkage

    exact = np.asarray(correlations, dtype=np.float64)
    distances = np.clip(1 - (exact + exact.T) / 2, 0, None)[np.triu_indices(size, 1)]
    tree = linkage(distances, "average", optimal_ordering=size <= _BEST_ORDER_UP_TO)
    return np.asarray(leaves_list(tree), dtype=np.int64)


def not_comparable(runs: Sequence[Run], mode: str, shared: Shared) -> str | None:
    """Why these runs cannot be set beside each other row by row, in a sentence; None where they can."""
    first = f"Run {runs[0].id} is shown alone."
    if mode == "feature" and len({run.config.encoder for run in runs}) > 1:
        return f"Feature 7 of one encoder is not feature 7 of another, so these are not compared. {first}"
    if len(shared.rows) < 2:
        return f"These runs have fewer than two {mode}s of the same name: nothing to compare. {first}"
    return None
