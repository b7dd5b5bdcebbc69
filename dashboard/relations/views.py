"""What MRN learned at one step: the whole matrix, its names, its strongest pairs, what could not be
learned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.mrn.relations import MODES, Block, Relations, impossible_blocks, row_names, strongest_pairs
from core.store.records import MetricSeries, Run, SnapshotKey

# Runs over training, side by side: at which of their snapshots each of them is shown.


@dataclass(frozen=True)
class Moments:
    """The moments shown: for each run the snapshot of each moment. The first run sets them.

    `exact`: every run has a snapshot at each of these very steps. Otherwise the snapshots meant are those
    nearest in their share of training. `cut`: the first run has later ones, which another has not reached.
    """

    keys: tuple[tuple[SnapshotKey, ...], ...]
    shares: tuple[float, ...]
    exact: bool
    cut: bool

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps of the first run."""
        return tuple(key.step for key in self.keys[0])

    def at(self, step: int | None) -> int:
        """The moment nearest to that step of the first run; the last one for None."""
        if step is None:
            return len(self.steps) - 1
        return int(np.argmin(np.abs(np.array(self.steps) - step)))

    def only(self, moment: int) -> Moments:
        """That moment alone."""
        keys = tuple((of_run[moment],) for of_run in self.keys)
        return Moments(keys, (self.shares[moment],), self.exact, self.cut)


@dataclass(frozen=True)
class Course:
    """What one run had learned at each moment."""

    run: Run
    keys: tuple[SnapshotKey, ...]
    learned: tuple[Relations, ...]


def aligned(runs: Sequence[Run], snapshots: Mapping[int, Sequence[SnapshotKey]]) -> Moments:
    """The moments of runs that all have snapshots, the same share of training for each."""
    shares = [_shares(run, snapshots[run.id]) for run in runs]
    # A third of a step of the slider is no difference: runs of other lengths end at the same share.
    slack = 1 / (3 * len(shares[0]))
    reached = min(of_run[-1] for of_run in shares) + slack
    shown = [place for place, share in enumerate(shares[0]) if share <= reached] or [0]
    chosen = [[int(np.argmin(np.abs(of_run - shares[0][place]))) for place in shown] for of_run in shares]
    keys = tuple(
        tuple(snapshots[run.id][place] for place in places) for run, places in zip(runs, chosen, strict=True)
    )
    steps = {tuple(key.step for key in of_run) for of_run in keys}
    return Moments(
        keys, tuple(float(shares[0][place]) for place in shown), len(steps) == 1, len(shown) < len(shares[0])
    )


def _shares(run: Run, keys: Sequence[SnapshotKey]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How much of its training the run had behind it at each snapshot."""
    return np.array([key.step for key in keys]) / max(run.total_steps or 0, keys[-1].step, 1)


# The rows of the matrices: which several runs share, and in which order they are drawn.


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


# How the gold labels go together on the training words, beside the relations learned.


@dataclass(frozen=True)
class Agreement:
    """How far learned and gold correlations go together over `pairs` pairs of labels."""

    pearson: float
    spearman: float
    pairs: int


def gold_labels(run: Run) -> Floats | None:
    """(C, C): the correlation of "this word has label i" with "this word has label j" on the training words,
    rows as in the label covariance. None where the run has none.
    """
    stored = run.facts.get("cooccurrence")
    return np.array(stored, dtype=np.float32) if stored else None


def why_no_gold(run: Run) -> str:
    """Why a run without gold correlations has none, in a sentence."""
    owners = run.facts.get("label_owners", ())
    mapped = (run.config.alignment or "").startswith("mapping")
    merged = mapped or any(len(tasks) > 1 for tasks in owners)
    if not owners:
        return "No gold labels beside: this run has not told its labels yet."
    if merged:
        return (
            "No gold labels beside: this alignment makes rows of several labels, which no label of a word "
            "stands for."
        )
    return (
        "No gold labels beside: the tasks are not annotated on the same words, so there is nothing to count "
        "between them."
    )


def agreement(
    learned: Floats, gold: Floats, rows: Rows, impossible: tuple[Block, ...], *, between: bool
) -> Agreement | None:
    """Over the pairs that can be learned, all of them or those `between` tasks; None for fewer than three, or
    where one of both is the same for all.
    """
    pairs = np.triu(~impossible_cells(impossible, len(rows)), 1)
    if between:
        pairs &= ~same_task(rows)
    both = pd.DataFrame({"learned": learned[pairs], "gold": gold[pairs]}).astype(float)
    if len(both) < 3 or not np.isfinite(both.to_numpy()).all() or (both.nunique() < 2).any():
        return None
    ranks = both.rank()
    return Agreement(
        pearson=float(both["learned"].corr(both["gold"])),
        spearman=float(ranks["learned"].corr(ranks["gold"])),
        pairs=len(both),
    )


def same_task(rows: Rows) -> NDArray[np.bool_]:
    """(n, n): whether two rows have a task in common."""
    tasks = sorted({task for owners in rows.owners for task in owners})
    owned = np.array([[task in owners for task in tasks] for owners in rows.owners], dtype=np.int64)
    return (owned @ owned.T > 0) if tasks else np.zeros((len(rows), len(rows)), dtype=bool)
