"""The strongest pairs of a view as a table, and the line of one pair over training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.evaluation.statistics import CONFIDENCE
from core.mrn.relations import Relations, impossible_blocks
from core.records import TOTAL, statistics_at
from core.store.records import MetricKey, MetricSeries, Run, SnapshotKey
from core.wording import number
from dashboard.relations.views import Course, Places, RelationsView, Rows, Shared, impossible_cells, same_task

Floats = NDArray[np.floating]

BEYOND = "Beyond"
"""The column of what is learned beyond the counts of gold labels."""

AMONG = ("all", "within", "between")
"""Which pairs of labels: all, of the same task, of different tasks."""


@dataclass(frozen=True)
class PairRow:
    """Two of the shared rows, and what stands in each column of the table."""

    first: str
    second: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class PairTable:
    """The pairs by the size of the column `ranked`, the largest first."""

    columns: tuple[str, ...]
    ranked: int
    rows: tuple[PairRow, ...]


@dataclass(frozen=True)
class PairLine:
    """The correlation of a pair in one run at each moment; (k,) steps, shares of training and values."""

    run_id: int
    seed: int
    steps: NDArray[np.int64]
    shares: Floats
    values: Floats


def strongest(
    runs: Sequence[Run],
    learned: Sequence[Relations],
    mode: str,
    view: str,
    shared: Shared,
    *,
    among: str = "all",
    gold: Floats | None = None,
    beyond: bool = False,
    top: int = 12,
) -> PairTable:
    """The strongest pairs that can be learned, in a view of runs whose covariances are `learned`.

    `gold` (C, C) in the first run's order adds the counted correlation and what is learned beyond it; with
    `beyond`, pairs are ranked by that.
    """
    found = [one.correlation(mode)[np.ix_(at, at)] for one, at in zip(learned, shared.places, strict=True)]
    columns, ranked = _columns([run.id for run in runs], found, view)
    if gold is not None:
        counted = gold[np.ix_(shared.places[0], shared.places[0])]
        columns |= {"Gold": counted, BEYOND: columns[ranked] - counted}
        ranked = BEYOND if beyond else ranked
    weights = np.max(np.abs(found), axis=0) if view == "side" else np.abs(columns[ranked])
    allowed = _possible(runs, mode, shared) & _wanted(shared.rows, among) & (weights > 0)
    names = shared.rows.names
    titles = tuple(columns)
    return PairTable(
        titles,
        titles.index(ranked),
        tuple(
            PairRow(names[i], names[j], tuple(float(columns[title][i, j]) for title in titles))
            for i, j in _largest(weights, np.triu(allowed, 1), top)
        ),
    )


def _columns(ids: Sequence[int], found: Sequence[Floats], view: str) -> tuple[dict[str, Floats], str]:
    """What the table tells of a pair, and the column it is ranked by."""
    if view == "side":
        return {f"Run {run}": one for run, one in zip(ids, found, strict=True)}, f"Run {ids[0]}"
    if view == "difference":
        a, b = found
        return {"A": a, "B": b, "A − B": a - b}, "A − B"
    if view == "mean" and len(found) > 1:
        values = np.stack(found)
        return {"Mean": values.mean(axis=0), "SD": values.std(axis=0, ddof=1)}, "Mean"
    return {"Correlation": found[0]}, "Correlation"


def _possible(runs: Sequence[Run], mode: str, shared: Shared) -> NDArray[np.bool_]:
    """(n, n): the pairs that every one of these runs could learn."""
    size = len(shared.rows)
    cannot = np.zeros((size, size), dtype=bool)
    for run in runs:
        cannot |= impossible_cells(impossible_blocks(run.facts, mode, shared.rows.owners), size)
    return ~cannot


def _wanted(rows: Rows, among: str) -> NDArray[np.bool_]:
    if among == "all":
        return np.ones((len(rows), len(rows)), dtype=bool)
    within = same_task(rows)
    return within if among == "within" else ~within


def _largest(weights: Floats, allowed: NDArray[np.bool_], top: int) -> list[tuple[int, int]]:
    rows, columns = np.nonzero(allowed)
    sizes = weights[rows, columns]
    if len(sizes) > top:
        best = np.argpartition(-sizes, top)[:top]
        rows, columns, sizes = rows[best], columns[best], sizes[best]
    order = np.argsort(-sizes, kind="stable")
    return [(int(rows[i]), int(columns[i])) for i in order]


def pair_lines(
    courses: Sequence[Course], mode: str, places: Sequence[Places], first: int, second: int
) -> tuple[PairLine, ...]:
    """One pair of the shared rows over training, a line per run."""
    return tuple(
        PairLine(
            course.run.id,
            course.run.config.seed,
            np.array([key.step for key in course.keys]),
            np.array([key.step for key in course.keys])
            / max(course.run.total_steps or 0, course.keys[-1].step, 1),
            np.array(
                [_one_correlation(one, mode, int(own[first]), int(own[second])) for one in course.learned]
            ),
        )
        for course, own in zip(courses, places, strict=True)
    )


def half_interval(n: int) -> float | None:
    """What to multiply the SD of n seeds with for half the 95% interval of their mean; None for one seed."""
    if n < 2:
        return None
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, (1 + CONFIDENCE) / 2)) / math.sqrt(n)


def _one_correlation(learned: Relations, mode: str, i: int, j: int) -> float:
    """One cell without the whole matrix: (a·I + F Fᵀ) needs two rows of F only."""
    if mode != "feature":
        return float(learned.correlation(mode)[i, j])
    factor = np.asarray(learned.feature_factor[[i, j]], dtype=float)
    gram = factor @ factor.T + learned.feature_diagonal * np.eye(2)
    scale = np.sqrt(gram[0, 0] * gram[1, 1])
    return float(gram[0, 1] / scale) if scale > 0 else 0.0


# What was learned, in numbers, ready for a table; what was planted beside what was learned.


_TITLES = {
    "effective_rank": "Effective rank",
    "trace": "Trace",
    "condition": "Condition",
    "strongest": "Strongest pair",
    "penalty": "Penalty",
    "objective": "Objective J",
}
_NUMBERS = ("effective_rank", "trace", "condition", "strongest")
# Further digits are rounding, and would be all that the line of a constant shows.
_DIGITS = 6


@dataclass(frozen=True)
class NumberRow:
    """One number at the step shown, and its values at all snapshots."""

    title: str
    value: str
    line: tuple[float, ...]


@dataclass(frozen=True)
class PlantedPair:
    """A simulated task and the real one: the share of labels kept, their adjusted mutual information, the
    learned correlation.
    """

    task: str
    alpha: float
    ami: float
    learned: float


@dataclass(frozen=True)
class Planted:
    """Each simulated task beside the real one. `agreement` is Spearman's rank correlation of planted and
    learned, None where there are fewer than three α or all correlations are the same.
    """

    real: str
    pairs: tuple[PlantedPair, ...]
    agreement: float | None


def number_keys(mode: str) -> list[MetricKey]:
    """The curves behind the numbers of a mode."""
    names = ("penalty", "objective", *(f"{mode}_{name}" for name in _NUMBERS))
    return [MetricKey(TOTAL, "train", name) for name in names]


def in_numbers(
    view: RelationsView, learned: Relations, series: Sequence[MetricSeries], keys: Sequence[SnapshotKey]
) -> tuple[NumberRow, ...]:
    """The numbers of the mode shown at the step shown; penalty and J where they were logged."""
    curves = {one.key.name: one for one in series}
    logged = {name: value for name, one in curves.items() if (value := _at(one, view.key.step)) is not None}
    found = statistics_at(logged, view.mode, learned)
    written = {
        "effective_rank": _written(found.effective_rank)
        + (f" of {len(view.rows)}" if math.isfinite(found.effective_rank) else ""),
        "trace": _written(found.trace),
        "condition": _written(found.condition),
        "strongest": _pair(view),
        "penalty": _written(logged.get("penalty")),
        "objective": _written(logged.get("objective")),
    }
    steps = [key.step for key in keys]
    return tuple(
        NumberRow(title, written[name], _line(curves.get(_stored(name, view.mode)), steps))
        for name, title in _TITLES.items()
        if name in _NUMBERS or name in curves
    )


def _pair(view: RelationsView) -> str:
    if not view.pairs:
        return "none"
    best = view.pairs[0]
    return f"{best.value:z.3f}".replace("-", "−") + f" ({best.first_name}, {best.second_name})"


def _stored(name: str, mode: str) -> str:
    return f"{mode}_{name}" if name in _NUMBERS else name


def _at(series: MetricSeries, step: int) -> float | None:
    place = int(np.searchsorted(series.step, step))
    there = place < len(series.step) and series.step[place] == step
    return float(series.value[place]) if there else None


def _line(series: MetricSeries | None, steps: Sequence[int]) -> tuple[float, ...]:
    """A value per snapshot, without those that cannot be drawn."""
    if series is None:
        return ()
    values = series.value[np.isin(series.step, steps)]
    return tuple(float(f"{value:.{_DIGITS}g}") for value in values[np.isfinite(values)])


def _written(value: float | None) -> str:
    if value is None:
        return "not logged at this step"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return "not a number" if math.isnan(value) else number(float(f"{value:.4g}")).replace("-", "−")


def planted(run: Run, view: RelationsView) -> Planted | None:
    """What was planted in a simulated corpus beside the task correlations shown; None where nothing was, or
    the real task is not among the run's.
    """
    facts = run.facts.get("planted")
    if not facts or view.mode != "task":
        return None
    simulated = {task["name"] for task in run.facts["tasks"] if task["auxiliary"]}
    real = next((task for task in facts["tasks"] if task not in simulated), None)
    if real is None:
        return None
    row = facts["tasks"].index(real)
    place = {name: index for index, name in enumerate(view.rows.names)}
    pairs = tuple(
        PlantedPair(task, alpha, ami, float(view.matrix[place[real], place[task]]))
        for task, alpha, ami in zip(facts["tasks"], facts["alphas"], facts["ami"][row], strict=True)
        if task != real
    )
    return Planted(real, pairs, _agreement(pairs))


def _agreement(pairs: Sequence[PlantedPair]) -> float | None:
    if len({pair.alpha for pair in pairs}) < 3:  # tasks of one α are in no order but chance's
        return None
    ranks = pd.DataFrame({"planted": [p.ami for p in pairs], "learned": [p.learned for p in pairs]}).rank()
    found = float(ranks["planted"].corr(ranks["learned"])) if (ranks.nunique() > 1).all() else math.nan
    return None if math.isnan(found) else found
