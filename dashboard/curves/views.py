"""Curves as they are shown: lines of runs or means over seeds, a panel per task, a legend."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from core.evaluation.statistics import band
from core.records import TOTAL
from core.store.records import Conditions, MetricSeries, Run, RunState
from dashboard.curves.numbers import (
    Floats,
    Metric,
    kept,
    mean_names,
    positions,
    side_by_side,
    smooth,
)
from jobs.naming import run_name
from jobs.results import one_per_seed

_LARGE_POINTS, _SMALL_POINTS, _LEAST_POINTS = 2000, 400, 40
"""Points that are drawn of a line: in the large chart, in a small one, and where many lines share a chart."""

_FULL_LINES = 6
"""So many lines of a chart have the points of six between them: a browser redraws these in 0.1 s."""
_OUTLIERS = (0.01, 0.99)

Point = tuple[float, float]


@dataclass(frozen=True)
class Reading:
    """How the curves are to be read.

    `seeds` is `lines`, or the mean over seeds with `sd` or `interval`. `smoothing` in [0, 1) is the weight of
    the past. `calm` fits y to the middle 98% of the values.
    """

    axis: str = "step"
    seeds: str = "lines"
    smoothing: float = 0.0
    log_x: bool = False
    log_y: bool = False
    calm: bool = False


@dataclass(frozen=True)
class Line:
    """A run's curve or a configuration's mean. `key` is the run's id or the configuration's.

    `rank` is the configuration's place, which gives its colour; `thin`: one of several seeds. `raw` is the
    curve before smoothing; `low`, `high` and `n` the band of a mean (NaN: none). `kept` is the point (x, y)
    of the kept checkpoint, `last` and `best` are points of the unsmoothed curve.
    """

    key: str
    name: str
    paradigm: str
    rank: int
    x: Floats
    y: Floats
    raw: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    n: Floats | None = None
    thin: bool = False
    seeds: tuple[int, ...] = ()
    state: RunState | None = None
    kept: Point | None = None
    last: Point | None = None
    best: Point | None = None


@dataclass(frozen=True)
class Panel:
    """One chart: the whole's (task TOTAL) or a task's."""

    task: str
    lines: tuple[Line, ...]
    y_range: tuple[float, float] | None


@dataclass(frozen=True)
class CurvesView:
    """The large panel, the small ones, and the legend: the large panel's lines, then those of small panels
    only, without last and best. `interpolated`: seeds had points at different x.
    """

    metric: Metric
    reading: Reading
    large: Panel
    small: tuple[Panel, ...]
    legend: tuple[Line, ...]
    x_end: float
    interpolated: bool = False


def curves(
    metric: Metric,
    reading: Reading,
    runs: Sequence[Run],
    series: Iterable[MetricSeries],
    tasks: Sequence[str],
    *,
    large: str = TOTAL,
    hidden: Collection[str] = (),
    conditions: Mapping[int, Conditions] = MappingProxyType({}),
) -> CurvesView:
    """One metric of these runs. `tasks` orders the panels; `large` names the one shown large.

    `conditions` tell which runs of a configuration a mean may include (`jobs.results.one_per_seed`).
    """
    by_task: dict[str, list[tuple[Run, MetricSeries]]] = {}
    place = {run.id: place for place, run in enumerate(runs)}
    for curve in sorted(series, key=lambda curve: place[curve.run_id]):
        by_task.setdefault(curve.key.task, []).append((runs[place[curve.run_id]], curve))
    ranks = {key: rank for rank, key in enumerate(dict.fromkeys(run.configuration_id for run in runs))}
    names = mean_names(runs)
    interpolated = False
    wholes: dict[str, list[Line]] = {}
    for task in dict.fromkeys((TOTAL, *tasks, *by_task)):
        if task in by_task:
            wholes[task], also = _lines(metric, reading, by_task[task], ranks, names, conditions)
            interpolated = interpolated or also
    shown = {task: [line for line in lines if line.key not in hidden] for task, lines in wholes.items()}
    return CurvesView(
        metric,
        reading,
        _panel(reading, large, shown.get(large, []), _LARGE_POINTS),
        _small(reading, {task: lines for task, lines in shown.items() if task != large}),
        _legend(wholes, large),
        max((float(line.x[-1]) for lines in shown.values() for line in lines), default=1.0),
        interpolated,
    )


def _values(metric: Metric, series: MetricSeries) -> Floats:
    """The values in the unit shown; infinite ones become NaN, which breaks a line."""
    return np.where(np.isfinite(series.value), series.value * (100 if metric.percent else 1), np.nan)


def _lines(
    metric: Metric,
    reading: Reading,
    members: Sequence[tuple[Run, MetricSeries]],
    ranks: Mapping[str, int],
    names: Mapping[int, str],
    conditions: Mapping[int, Conditions],
) -> tuple[list[Line], bool]:
    """A line per run, or a mean per configuration with its band, each seed smoothed first; and whether the
    seeds of any were interpolated.
    """
    single = reading.seeds == "lines"
    seeds = Counter(run.configuration_id for run, _ in members)
    groups: dict[str, list[tuple[Run, MetricSeries]]] = {}
    for run, curve in members:
        groups.setdefault(str(run.id) if single else run.configuration_id, []).append((run, curve))
    lines, any_interpolated = [], False
    for key, group in groups.items():
        if not single:
            counted = {run.id for run in one_per_seed([run for run, _ in group], conditions)}
            group = [(run, curve) for run, curve in group if run.id in counted]
        run, curve = group[0]
        xs = [positions(reading.axis, own.step, own.epoch, own.seconds) for _, own in group]
        raws = [_values(metric, own) for _, own in group]
        x, values, interpolated = side_by_side(xs, [smooth(raw, reading.smoothing) for raw in raws])
        any_interpolated = any_interpolated or interpolated
        of = band(values)
        raw = band(side_by_side(xs, raws)[1]).mean if reading.smoothing else of.mean
        line = Line(
            key,
            run_name(run) if single else names[run.id],
            run.config.paradigm,
            ranks[run.configuration_id],
            x,
            of.mean,
            raw if reading.smoothing else None,
            seeds=tuple(sorted(run.config.seed for run, _ in group)),
            **_ends(metric, x, raw),
        )
        if single:
            kept_point = _kept_point(run, curve.epoch, x, of.mean)
            thin = seeds[run.configuration_id] > 1
            line = dataclasses.replace(line, state=run.state, thin=thin, kept=kept_point)
        else:
            low, high = (of.mean - of.sd, of.mean + of.sd) if reading.seeds == "sd" else (of.low, of.high)
            line = dataclasses.replace(line, low=low, high=high, n=of.n.astype(float))
        lines.append(line)
    return lines, any_interpolated


def _ends(metric: Metric, x: Floats, raw: Floats) -> dict[str, Any]:
    """The last and the best point of an unsmoothed curve, where there are such."""
    known = np.flatnonzero(np.isfinite(raw))
    if not len(known):
        return {}
    places = {"last": known[-1]}
    if metric.best:
        places["best"] = known[(np.argmax if metric.best == "max" else np.argmin)(raw[known])]
    return {name: (float(x[place]), float(raw[place])) for name, place in places.items()}


def _kept_point(run: Run, epoch: Floats, x: Floats, y: Floats) -> Point | None:
    """The last point of the epoch whose weights the run has kept."""
    if run.best_epoch is None:
        return None
    place = int(np.searchsorted(epoch, run.best_epoch + 1e-9, "right")) - 1
    if place < 0 or epoch[place] <= run.best_epoch - 1 or np.isnan(y[place]):
        return None
    return float(x[place]), float(y[place])


def _panel(reading: Reading, task: str, lines: Sequence[Line], most: int) -> Panel:
    """The chart of a task; each of its lines with about `most` points, fewer where lines are many."""
    each = max(_LEAST_POINTS, min(most, _FULL_LINES * most // max(1, len(lines))))
    return Panel(task, tuple(_thinned(reading, line, each) for line in lines), _y_range(reading, lines))


def _thinned(reading: Reading, line: Line, most: int) -> Line:
    drawn = [values for values in (line.y, line.raw, line.low, line.high) if values is not None]
    at = kept(line.x, drawn, most, log=reading.log_x)
    raw, low, high, n = (
        None if values is None else values[at] for values in (line.raw, line.low, line.high, line.n)
    )
    return dataclasses.replace(line, x=line.x[at], y=line.y[at], raw=raw, low=low, high=high, n=n)


def _small(reading: Reading, lines: Mapping[str, Sequence[Line]]) -> tuple[Panel, ...]:
    """The small charts. Those of tasks share their y; the total, often the tasks' sum, has its own."""
    panels = [_panel(reading, task, of_task, _SMALL_POINTS) for task, of_task in lines.items()]
    ranges = [panel.y_range for panel in panels if panel.task != TOTAL and panel.y_range]
    shared = (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else None
    return tuple(
        panel if panel.task == TOTAL else dataclasses.replace(panel, y_range=shared) for panel in panels
    )


def _y_range(reading: Reading, lines: Sequence[Line]) -> tuple[float, float] | None:
    """From the lowest to the highest value; log10 of them on a log axis."""
    parts = []
    for line in lines:
        # A band's lower edge may come near zero, which a log axis would follow for decades.
        low = None if reading.log_y else line.low
        shown = [line.y] if reading.calm else [line.y, line.raw, low, line.high]
        parts += [values for values in shown if values is not None]
    values = np.concatenate(parts) if parts else np.array([])
    values = values[values > 0] if reading.log_y else values[np.isfinite(values)]
    if not len(values):
        return None
    ends = np.quantile(values, _OUTLIERS if reading.calm else (0, 1))
    bottom, top = map(float, np.log10(ends) if reading.log_y else ends)
    room = 0.05 * (top - bottom) or 0.05 * abs(top) or 0.5
    return bottom - room, top + room


def _legend(wholes: Mapping[str, list[Line]], large: str) -> tuple[Line, ...]:
    rows = {line.key: line for line in wholes.get(large, [])}
    for line in (line for lines in wholes.values() for line in lines):
        rows.setdefault(line.key, dataclasses.replace(line, last=None, best=None))
    return tuple(rows.values())
