"""The values of the Relations page: aligned steps, shared rows, strongest pairs, covariances.

A run's matrix is square; its rows are tasks, labels or features. Rows shared by runs are found by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.evaluation.relation_verdicts import (
    NEGLIGIBLE,
    OPPOSED,
    RELATED,
    UNDECIDED,
    CellVerdict,
    RelationVerdicts,
)
from core.mrn.relations import Relations, impossible_blocks, row_names, strongest_pairs
from core.registry import has_bilstm
from core.results.relations import counted
from core.store.types import MetricSeries, Run, RunState, RunWithFacts, SnapshotKey, StoredScore
from core.tasks.label_meanings import label_meanings
from core.wording import without_shared

Floats = NDArray[np.floating]
Bools = NDArray[np.bool_]
Places = NDArray[np.int64]

BEYOND = "Beyond"
"""The column of what is learned beyond the counts of gold labels."""
ALONE = "Alignment alone"
"""The column of what the alignment gives before anything is learned."""

_VANISHED = 1e-6
# The optimal order of leaves takes cubic time: 0.02 s for 100 rows, 4 s for 768.
_BEST_ORDER_UP_TO = 256


@dataclass(frozen=True)
class Group:
    """The runs of one matrix, which is their mean: of a configuration, a run a seed."""

    title: str
    runs: tuple[RunWithFacts, ...]

    @property
    def note(self) -> str:
        """What the matrix is of: `mean of 3 seeds`, `seed 2`."""
        several = len(self.runs) > 1
        return f"mean of {len(self.runs)} seeds" if several else f"seed {self.runs[0].config.seed}"

    @property
    def name(self) -> str:
        """`MRN, λ = 0.01, mean of 3 seeds`."""
        return f"{self.title}, {self.note}"


def by_group(groups: Sequence[Group], of_runs: Floats) -> list[Floats]:
    """What there is of each run, (runs, ...), for each matrix, in whose order the runs stand."""
    return np.split(of_runs, np.cumsum([len(group.runs) for group in groups])[:-1])


@dataclass(frozen=True)
class AlignedSteps:
    """The snapshot of each run at each position of the slider. The first run sets the positions.

    `exact`: all runs have snapshots at the same steps; otherwise snapshots nearest in their share of training
    are shown together. `cut`: the first run has later snapshots, which another run has not reached.
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
        """The position nearest to that step of the first run; the last one for None."""
        if step is None:
            return len(self.steps) - 1
        return int(np.argmin(np.abs(np.array(self.steps) - step)))


@dataclass(frozen=True)
class Trajectory:
    """One run's learned relations at each snapshot."""

    run: RunWithFacts
    keys: tuple[SnapshotKey, ...]
    learned: tuple[Relations, ...]


def aligned(runs: Sequence[Run], snapshots: Mapping[int, Sequence[SnapshotKey]]) -> AlignedSteps:
    """Align runs that all have snapshots by their share of training."""
    shares = [training_shares(run, snapshots[run.id]) for run in runs]
    # Runs of other lengths do not end at exactly the same share: a third of a slider step is tolerated.
    reached = min(of_run[-1] for of_run in shares) + 1 / (3 * len(shares[0]))
    targets = [share for share in shares[0] if share <= reached] or [shares[0][0]]
    keys = tuple(
        tuple(snapshots[run.id][int(np.argmin(np.abs(of_run - share)))] for share in targets)
        for run, of_run in zip(runs, shares, strict=True)
    )
    exact = len({tuple(key.step for key in of_run) for of_run in keys}) == 1
    return AlignedSteps(keys, tuple(map(float, targets)), exact, len(targets) < len(shares[0]))


def training_shares(run: Run, keys: Sequence[SnapshotKey]) -> Floats:
    """(k,): the share of training behind a run at each of its snapshots."""
    # Patience may end a run before its last step.
    steps = run.step if run.state is RunState.SUCCEEDED else run.total_steps or 0
    return np.array([key.step for key in keys]) / max(steps, keys[-1].step, 1)


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
class SharedRows:
    """The rows that all runs have, in the order of the first run.

    `places` says per run where each row is in its own matrix, `left_out` which of its rows are not shared.
    """

    rows: Rows
    places: tuple[Places, ...]
    left_out: tuple[tuple[str, ...], ...]


def rows_of(run: RunWithFacts, mode: str, learned: Relations) -> Rows:
    """The rows of a run's matrix of `task`, `label` or `feature`."""
    size = len(learned.feature_factor) if mode == "feature" else len(learned.covariance(mode))
    return Rows(*row_names(run.facts, run.config.tasks, mode, size))


def shared_rows(all_rows: Sequence[Rows]) -> SharedRows:
    """Returns the names of the rows that all runs have: `pos:NN`, or a task."""
    common = set(all_rows[0].names).intersection(*(rows.names for rows in all_rows[1:]))
    names = [name for name in all_rows[0].names if name in common]
    where = [{name: place for place, name in enumerate(rows.names)} for rows in all_rows]
    places = tuple(np.array([of[name] for name in names], dtype=np.int64) for of in where)
    left_out = tuple(tuple(name for name in rows.names if name not in common) for rows in all_rows)
    return SharedRows(all_rows[0].at(places[0]), places, left_out)


def not_comparable(runs: Sequence[Run], mode: str, shared: SharedRows) -> str | None:
    """Why these runs cannot be compared row by row, in a sentence; None where they can."""
    if mode == "feature" and len({run.config.encoder for run in runs}) > 1:
        return "Feature 7 of one encoder is not feature 7 of another, so these are not compared."
    if mode == "feature" and any(has_bilstm(run.config.encoder) for run in runs):
        return (
            "LSTM features start from random weights: feature 7 of one run is not feature 7 of another, so "
            "these are not compared."
        )
    if len(shared.rows) < 2:
        return f"These runs have fewer than two {mode}s of the same name: nothing to compare."
    return None


def together(rows: Rows) -> Places:
    """The order by task: rows of the same tasks together, groups and rows in the order of the first."""
    first = {tasks: place for place, tasks in reversed(list(enumerate(rows.owners)))}
    return np.array(sorted(range(len(rows)), key=lambda row: first[rows.owners[row]]), dtype=np.int64)


def clustered(correlations: Floats) -> Places:
    """The order that puts rows of similar relations next to each other.

    Average linkage over the distances 1 − r, with leaves ordered so that neighbours are as near as possible
    (Bar-Joseph, Gifford and Jaakkola 2001, "Fast optimal leaf ordering"). Rows keep their order where a
    correlation is not finite or there are fewer than three.
    """
    size = len(correlations)
    if size < 3 or not np.isfinite(correlations).all():
        return np.arange(size)
    # Imported here: loading takes a quarter of a second, and only this order needs it.
    from scipy.cluster.hierarchy import leaves_list, linkage

    exact = np.asarray(correlations, dtype=np.float64)
    distances = np.clip(1 - (exact + exact.T) / 2, 0, None)[np.triu_indices(size, 1)]
    tree = linkage(distances, "average", optimal_ordering=size <= _BEST_ORDER_UP_TO)
    return np.asarray(leaves_list(tree), dtype=np.int64)


_TAGS_IN_WORDS = {
    ".": "period",
    ",": "comma",
    ":": "colon",
    "``": "open quote",
    "''": "close quote",
    '"': "quote",
    "(": "open bracket",
    ")": "close bracket",
    "$": "dollar",
    "#": "pound",
}


def short_names(names: Sequence[str], mode: str) -> dict[str, str]:
    """The rows' names as they are written, by name: `without_shared`, and tags of marks in words."""
    short = without_shared(names)
    return {name: in_words(text) for name, text in short.items()} if mode == "label" else short


def in_words(label: str) -> str:
    """A label whose tag is a mark in words, with its task before it or without: `pos:,` is `pos:comma`."""
    task, colon, tag = label.partition(":")
    if not tag:
        return _TAGS_IN_WORDS.get(label, label)
    return f"{task}{colon}{_TAGS_IN_WORDS.get(tag, tag)}"


def label_of(name: str, owners: Sequence[str]) -> str:
    """The label of a row, without its task before it."""
    return name.removeprefix(f"{owners[0]}:") if owners else name


def row_meanings(rows: Rows) -> dict[str, str]:
    """What the rows' labels mean, by the rows' names; without labels of no known tag set."""
    labels: dict[str, set[str]] = {}
    for name, owners in zip(rows.names, rows.owners, strict=True):
        for task in owners:
            labels.setdefault(task, set()).add(label_of(name, owners))
    by_task = {task: label_meanings(of_task) for task, of_task in labels.items()}
    return {
        name: meaning
        for name, owners in zip(rows.names, rows.owners, strict=True)
        for task in owners
        if (meaning := by_task[task].get(label_of(name, owners)))
    }


def signed(value: float, digits: int = 2) -> str:
    """A number with so many decimals and a real minus sign; no sign on zero."""
    return f"{value:z.{digits}f}".replace("-", "−").replace("inf", "∞").replace("nan", "not a number")


# The matrices at one step


def shared_matrices(learned: Sequence[Relations], mode: str, shared: SharedRows) -> Floats:
    """(runs, n, n): the correlations of the shared rows in each run."""
    runs = zip(learned, shared.places, strict=True)
    return np.stack([relations.correlation(mode)[np.ix_(places, places)] for relations, places in runs])


def impossible_pairs(runs: Sequence[RunWithFacts], mode: str, rows: Rows) -> Bools:
    """A mask (runs, n, n) of the pairs that each run's alignment fixes."""
    fixed = np.zeros((len(runs), len(rows), len(rows)), dtype=bool)
    for of_run, run in zip(fixed, runs, strict=True):
        for block in impossible_blocks(run.facts, mode, rows.owners):
            of_run[block.top : block.bottom, block.left : block.right] = True
    return fixed


def variances(learned: Relations, mode: str) -> Floats:
    """(d,): the diagonal of a covariance over its mean, so that 1 is the mean row."""
    diagonal = learned.unit_rows()[0] ** 2 if mode == "feature" else np.diagonal(learned.covariance(mode))
    mean = float(np.mean(diagonal, dtype=np.float64))
    return np.asarray(diagonal / (mean if mean > 0 else 1.0), dtype=np.float64)


def same_task(rows: Rows) -> Bools:
    """(n, n): whether two rows share a task."""
    tasks = sorted({task for owners in rows.owners for task in owners})
    owned = np.array([[task in owners for task in tasks] for owners in rows.owners], dtype=np.int64)
    owned = owned.reshape(len(rows), len(tasks))
    return owned @ owned.T > 0


def penalty_vanished(penalty: MetricSeries | None) -> tuple[float, float] | None:
    """The largest and the last penalty, where the last is negligible: MRN has become MTL."""
    finite = np.array([]) if penalty is None else penalty.value[np.isfinite(penalty.value)]
    if len(finite) < 2:
        return None
    largest, last = float(np.max(np.abs(finite))), float(abs(finite[-1]))
    return (largest, last) if largest > 0 and last <= _VANISHED * largest else None


def dev_scores(curves: Iterable[MetricSeries], steps: Mapping[int, int]) -> dict[str, dict[int, float]]:
    """The dev score by task and run at the last evaluation up to the run's step; none before the first."""
    scores: dict[str, dict[int, float]] = {}
    for curve in curves:
        if evaluated := int(np.searchsorted(curve.step, steps[curve.run_id], side="right")):
            scores.setdefault(curve.key.task, {})[curve.run_id] = float(curve.value[evaluated - 1])
    return scores


def majority_shares(scores: Iterable[StoredScore]) -> dict[str, float]:
    """The share of the most frequent label by task, of tasks scored by accuracy.

    It is the score of a model that always predicts this label. A task without a stored report has none.
    """
    supports = {
        score.task: [row["support"] for row in score.report.values()]
        for score in scores
        if score.score_name == "accuracy" and score.report
    }
    return {task: max(counts) / sum(counts) for task, counts in supports.items() if any(counts)}


# Gold labels


def gold_labels(run: RunWithFacts) -> Floats | None:
    """The correlations (C, C) of gold labels on the training words; None if the run has none.
    A label is a 0/1 variable of the word. Rows are as in the label covariance.
    """
    stored = run.facts.cooccurrence if run.facts else ()
    return np.array(stored, dtype=np.float32) if stored else None


def why_no_gold(run: RunWithFacts) -> str:
    """Why a run without gold correlations has none, in a sentence."""
    owners = run.facts.label_owners if run.facts else ()
    if not owners:
        return "No gold labels: the labels are not recorded yet."
    if (run.config.alignment or "").startswith("mapping") or any(len(tasks) > 1 for tasks in owners):
        return "No gold labels: this alignment makes rows of several labels, and a word has one label."
    return "No gold labels: the tasks are not annotated on the same words, so nothing can be counted."


def agreement(learned: Floats, gold: Floats, pairs: Bools) -> tuple[float, int] | None:
    """The rank correlation (Spearman) of learned and gold relations of these pairs, and their number.
    All matrices are (n, n). None for fewer than three pairs, or if either is constant.
    """
    above = np.triu(pairs, 1)
    both = pd.DataFrame({"learned": learned[above], "gold": gold[above]}).astype(float)
    if len(both) < 3 or not np.isfinite(both.to_numpy()).all() or (both.nunique() < 2).any():
        return None
    return _spearman(both), len(both)


def _spearman(two: pd.DataFrame) -> float:
    return float(two.corr("spearman").to_numpy()[0, 1])


# Pairs of rows


def learnable_pairs(runs: Sequence[RunWithFacts], mode: str, rows: Rows, among: str) -> Bools:
    """A mask (n, n) of the pairs that the alignment of any run can relate.
    `among` is all rows, `within` a task or `between` tasks.
    """
    learnable = np.asarray(~impossible_pairs(runs, mode, rows).all(axis=0))
    return learnable if among == "all" else learnable & (same_task(rows) == (among == "within"))


def strongest(
    matrices: Sequence[Floats],
    possible: Bools,
    verdicts: Sequence[RelationVerdicts | None],
    *,
    beyond: Floats | None = None,
    top: int = 12,
) -> list[tuple[int, int]]:
    """The `possible` pairs (n, n) that are strongest in any of these matrices (n, n), or furthest `beyond`
    what the alignment alone gives (n, n).

    As many are positive as negative, where there are enough; pairs that the verdicts decide come first.
    """
    stack = np.stack(matrices)
    if beyond is not None:
        stack = stack - beyond
    highest, lowest = stack.max(axis=0), stack.min(axis=0)
    ranks = np.maximum(highest, -lowest) * possible
    decided = [
        np.isin(of.verdict, (RELATED, OPPOSED)) & ~counted(of, beyond) for of in verdicts if of is not None
    ]
    if decided:
        ranks += 2 * (possible & np.any(decided, axis=0))
    return _of_both_signs(highest >= -lowest, ranks, top)


def pair_table(
    columns: Mapping[str, Floats],
    pairs: Sequence[tuple[int, int]],
    names: Sequence[str],
    verdicts: Mapping[str, RelationVerdicts | None],
    alone: Floats | None = None,
) -> pd.DataFrame:
    """The pairs with their values in these matrices (n, n), and in `alone`, what the alignment alone gives.

    Columns First and Second, then those of the matrices. Of one matrix with verdicts also the interval and
    the verdict; of several each value has the mark of its verdict, by the same names as the matrices.
    """
    table: dict[str, list[Any]] = {
        "First": [names[i] for i, _ in pairs],
        "Second": [names[j] for _, j in pairs],
    }
    for title, matrix in columns.items():
        of_matrix = verdicts.get(title)
        values = [float(matrix[i, j]) for i, j in pairs]
        if len(columns) == 1 or of_matrix is None:
            table[title] = values
        else:
            marks = [_mark(of_matrix, i, j) for i, j in pairs]
            table[title] = [f"{signed(value)} {mark}" for value, mark in zip(values, marks, strict=True)]
    if alone is not None:
        table[ALONE] = [float(alone[at]) for at in pairs]
    single_verdicts = next(iter(verdicts.values())) if len(columns) == len(verdicts) == 1 else None
    if single_verdicts is not None:
        cells = [single_verdicts.cell(i, j) for i, j in pairs]
        if alone is None:  # there is no room for both
            table["95% interval"] = [interval_text(cell) for cell in cells]
        not_learned = counted(single_verdicts, alone)
        table["Verdict"] = [
            f"{COUNTED_MARK if not_learned[at] else MARKS[cell.verdict]} {cell.verdict}".strip()
            if single_verdicts.tested[at]
            else ""
            for at, cell in zip(pairs, cells, strict=True)
        ]
    return pd.DataFrame(table)


def _of_both_signs(is_positive: Bools, ranks: Floats, top: int) -> list[tuple[int, int]]:
    """The pairs of the `top` ranks (n, n): half of each sign where there are enough, the positive first."""
    signs = [
        [(i, j) for i, j, _ in strongest_pairs(ranks * of_sign, top)]
        for of_sign in (is_positive, ~is_positive)
    ]
    positive, negative = signs
    half = top // 2
    return positive[: max(half, top - len(negative))] + negative[: max(half, top - len(positive))]


MARKS = {RELATED: "●", OPPOSED: "×", NEGLIGIBLE: "–", UNDECIDED: ""}
"""The marks of decided cells."""
COUNTED_MARK = "○"
"""That of related cells which the alignment alone relates as far."""


def _mark(verdicts: RelationVerdicts, i: int, j: int) -> str:
    return MARKS[str(verdicts.verdict[i, j])]


def interval_text(cell: CellVerdict) -> str:
    """`[0.10, 0.30]`; empty without an interval."""
    return "" if cell.interval is None else f"[{', '.join(map(signed, cell.interval))}]"


def pair_values(
    trajectories: Sequence[Trajectory], mode: str, places: Sequence[Places], first: int, second: int
) -> Floats:
    """(runs, k): the correlation of one pair of the shared rows at each snapshot of each run."""
    return np.array(
        [
            [_cell(learned, mode, at[first], at[second]) for learned in trajectory.learned]
            for trajectory, at in zip(trajectories, places, strict=True)
        ]
    )


def _cell(learned: Relations, mode: str, i: int, j: int) -> float:
    """One correlation, without the D × D matrix of features."""
    if mode != "feature":
        return float(learned.correlation(mode)[i, j])
    _, unit = learned.unit_rows()
    return float(unit[i] @ unit[j])


# Simulated tasks


def planted(run: RunWithFacts, rows: Rows, values: Floats) -> tuple[str, pd.DataFrame, float | None] | None:
    """The real task, a row per simulated one, and the rank correlation of planted and learned relatedness.
    A row has the share of labels kept, the adjusted mutual information with the real task's labels and the
    learned correlation, from `values` (n, n) of the tasks in `rows`. The rank correlation (Spearman) is None
    with fewer than three α or equal correlations.

    None where the corpus is not simulated, or the real task is not among the run's.
    """
    tasks = run.facts.planted if run.facts else None
    if tasks is None:
        return None
    simulated = {task.name for task in run.task_facts if task.auxiliary}
    real = next((task for task in tasks.tasks if task not in simulated), None)
    if real is None:
        return None
    ami = tasks.ami[tasks.tasks.index(real)]
    learned = dict(zip(rows.names, values[rows.names.index(real)], strict=True))
    frame = pd.DataFrame(
        [
            (task, alpha, information, float(learned[task]))
            for task, alpha, information in zip(tasks.tasks, tasks.alphas, ami, strict=True)
            if task != real
        ],
        columns=["Task", "α", "Planted AMI", "Learned"],
    )
    if frame["α"].nunique() < 3:  # the order of tasks of one α is chance
        return real, frame, None
    spearman = _spearman(frame[["Planted AMI", "Learned"]])
    return real, frame, None if math.isnan(spearman) else spearman
