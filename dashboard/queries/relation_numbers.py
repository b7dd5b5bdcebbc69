"""What was learned, in numbers, ready for a table; what was planted beside what was learned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.mrn.relations import Relations
from core.store.records import MetricKey, MetricSeries, Run, SnapshotKey
from core.training.events import TOTAL
from core.training.relation_metrics import numbers_at
from dashboard.queries.relations import RelationsView
from dashboard.text import number

__all__ = ["NumberRow", "Planted", "PlantedPair", "in_numbers", "number_keys", "planted"]

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
    found = numbers_at(logged, view.mode, learned)
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
