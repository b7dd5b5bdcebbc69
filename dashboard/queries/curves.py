"""Curves: which there are, smoothed on all points, thinned for the screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.mrn.relations import MODES
from core.store.records import MetricKey, MetricSeries, Run
from core.training.events import TOTAL
from dashboard.queries.naming import differing, run_name

__all__ = [
    "AXES",
    "METRICS",
    "RELATION_METRICS",
    "Curve",
    "CurvesView",
    "Metric",
    "choices",
    "curves",
    "smooth",
    "thin",
]

Floats = NDArray[np.float64]

AXES: Mapping[str, str] = {"step": "Step", "epoch": "Epoch", "minutes": "Minutes"}
_MOST_POINTS = 1000


@dataclass(frozen=True)
class Metric:
    """A kind of curve: where it is stored, what to call it, whether it is a share shown in percent."""

    split: str
    name: str
    title: str
    total: str
    percent: bool = False


METRICS: Mapping[str, Metric] = {
    "dev-score": Metric("dev", "score", "Dev score", "Mean over tasks", percent=True),
    "loss": Metric("train", "loss", "Training loss", "Total"),
    "dev-loss": Metric("dev", "loss", "Dev loss", "Total"),
    "penalty": Metric("train", "penalty", "MRN penalty", "Penalty, weighted by λ"),
    "objective": Metric("train", "objective", "Objective", "J, what heads and covariances lower together"),
    "lr": Metric("train", "lr", "Learning rate", "Learning rate"),
}

_NUMBERS = {
    "effective_rank": ("Effective rank", "How many directions share the variance"),
    "trace": ("Trace", "All variance together"),
    "condition": ("Condition", "Largest eigenvalue over the smallest"),
    "strongest": ("Strongest correlation", "The pair whose correlation is largest in size"),
}
RELATION_METRICS: Mapping[str, Metric] = {
    f"{mode}_{name}": Metric("train", f"{mode}_{name}", f"{title} of {mode}s", meaning)
    for mode in MODES
    for name, (title, meaning) in _NUMBERS.items()
}
"""The covariances in numbers, a value at each snapshot."""


@dataclass(frozen=True)
class Curve:
    """One line: the run and task it belongs to, its look, its points (y smoothed, raw beside it if
    smoothed).
    """

    run_id: int
    name: str
    task: str
    paradigm: str
    configuration: int
    x: Floats
    y: Floats
    raw_x: Floats | None
    raw_y: Floats | None
    last: float


@dataclass(frozen=True)
class CurvesView:
    """The large chart (`total`) and one small chart per task, all over the same axis."""

    metric: Metric
    axis: str
    total: tuple[Curve, ...]
    by_task: Mapping[str, tuple[Curve, ...]]

    @property
    def empty(self) -> bool:
        return not self.total and not any(self.by_task.values())


def choices(keys: Iterable[MetricKey], among: Mapping[str, Metric] = METRICS) -> list[str]:
    """Which of the metrics these runs have."""
    stored = {(key.split, key.name) for key in keys}
    return [name for name, metric in among.items() if (metric.split, metric.name) in stored]


def metric_keys(metric: Metric, keys: Iterable[MetricKey]) -> list[MetricKey]:
    """The stored curves of one metric: the total and each task's."""
    return sorted(key for key in keys if (key.split, key.name) == (metric.split, metric.name))


def curves(
    metric: Metric,
    axis: str,
    smoothing: float,
    runs: Sequence[Run],
    series: Iterable[MetricSeries],
    tasks: Sequence[str],
) -> CurvesView:
    """Lines of one metric for these runs. `smoothing` in [0, 1) is the weight of the past; 0 leaves lines
    raw.

    An STL run has one task: its total is that task's curve, and is drawn in the large chart as such.
    """
    by_id = {run.id: run for run in runs}
    distinct = dict.fromkeys(run.configuration_id for run in runs)
    ranks = {configuration: rank for rank, configuration in enumerate(distinct)}
    total: list[Curve] = []
    by_task: dict[str, list[Curve]] = {task: [] for task in tasks}
    for one in series:
        run = by_id[one.run_id]
        curve = _curve(metric, axis, smoothing, run, ranks[run.configuration_id], one)
        if one.key.task != TOTAL:
            by_task.setdefault(one.key.task, []).append(curve)
        else:
            total.append(curve)
    return CurvesView(
        metric, axis, tuple(total), {task: tuple(lines) for task, lines in by_task.items() if lines}
    )


def _curve(metric: Metric, axis: str, smoothing: float, run: Run, rank: int, series: MetricSeries) -> Curve:
    x = {"step": series.step.astype(float), "epoch": series.epoch, "minutes": series.seconds / 60}[axis]
    y = series.value * (100 if metric.percent else 1)
    smoothed = smooth(y, smoothing)
    thin_x, thin_y = thin(x, smoothed)
    raw_x, raw_y = thin(x, y) if smoothing else (None, None)
    task = series.key.task or (run.config.tasks[0] if run.config.paradigm == "stl" else TOTAL)
    last = float(smoothed[-1]) if len(smoothed) else float("nan")
    return Curve(run.id, run_name(run), task, run.config.paradigm, rank, thin_x, thin_y, raw_x, raw_y, last)


def smooth(values: Floats, weight: float) -> Floats:
    """Exponential moving average, corrected for its start, over all points; `weight` is that of the past."""
    if not weight:
        return values
    return np.asarray(pd.Series(values).ewm(alpha=1 - weight, adjust=True).mean(), dtype=float)


def thin(x: Floats, y: Floats, most: int = _MOST_POINTS) -> tuple[Floats, Floats]:
    """At most `most` points that draw the same line: first, last, and each stretch's lowest and highest."""
    if len(y) <= most:
        return x, y
    stretches = (most - 2) // 2
    edges = np.linspace(1, len(y) - 1, stretches + 1).astype(int)
    starts, ends = edges[:-1], edges[1:]
    low = np.where(np.isnan(y), np.inf, y)
    high = np.where(np.isnan(y), -np.inf, y)
    lowest = [a + int(np.argmin(low[a:b])) for a, b in zip(starts, ends, strict=True) if b > a]
    highest = [a + int(np.argmax(high[a:b])) for a, b in zip(starts, ends, strict=True) if b > a]
    keep = np.unique([0, *lowest, *highest, len(y) - 1])
    return x[keep], y[keep]


def legend(view: CurvesView, runs: Sequence[Run]) -> list[tuple[int, str, float]]:
    """Run, what sets it apart, last value of its line in the large chart."""
    first = {curve.run_id: curve.last for curve in reversed([*view.total, *_all(view)])}
    names = dict(zip((r.id for r in runs), differing([r.config for r in runs]), strict=True))
    return [(run.id, names[run.id], first[run.id]) for run in runs if run.id in first]


def _all(view: CurvesView) -> list[Curve]:
    return [curve for lines in view.by_task.values() for curve in lines]
