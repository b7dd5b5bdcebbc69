"""Curves as they are shown: lines of runs or means over seeds, a panel per task, a legend."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from core.evaluation.statistics import band
from core.records import TOTAL
from core.store.records import Conditions, MetricSeries, Run, RunState
from dashboard.curves.numbers import (
    Floats,
    Metric,
    Window,
    kept,
    mean_names,
    positions,
    side_by_side,
    smooth,
)
from jobs.naming import run_name
from jobs.results import one_per_seed

LARGE_POINTS = 4500
"""Points that a large chart draws, shared by its lines: a browser redraws them in 50 ms."""

SMALL_POINTS = 1200
_LEAST_POINTS = 40
_MOST_POINTS = 2000
_OUTLIERS = (0.01, 0.99)


@dataclass(frozen=True)
class Reading:
    """How the curves are to be read.

    `seeds` is `lines`, or the mean over seeds with `sd` or `interval`. `smoothing` in [0, 1) is the weight of
    the past. `calm` fits y to the middle 98% of the values. `window` is the zoomed part of x.
    """

    axis: str = "step"
    seeds: str = "lines"
    smoothing: float = 0.0
    log_x: bool = False
    log_y: bool = False
    calm: bool = False
    window: Window | None = None


@dataclass(frozen=True)
class Line:
    """A run's curve or a configuration's mean. `key` is the run's id or the configuration's.

    `rank` is the configuration's place; `apart`: dashes tell all configurations apart; `thin`: one of several
    seeds. `raw_x` and `raw` are the unsmoothed curve; `low`, `high` and `n` the band of a mean (NaN: none);
    `chosen` is the point of the kept checkpoint.
    """

    key: str
    name: str
    task: str
    paradigm: str
    rank: int
    apart: bool
    x: Floats
    y: Floats
    raw_x: Floats | None = None
    raw: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    n: Floats | None = None
    thin: bool = False
    seeds: tuple[int, ...] = ()
    state: RunState | None = None
    chosen: tuple[float, float] | None = None


@dataclass(frozen=True)
class Entry:
    """A row of the legend: last and best value of a line, unsmoothed, each with its place on x."""

    key: str
    name: str
    paradigm: str
    task: str
    rank: int
    apart: bool
    seeds: tuple[int, ...]
    state: RunState | None
    last: float | None
    last_x: float | None
    best: float | None
    best_x: float | None

    @property
    def n(self) -> int:
        """The number of runs."""
        return len(self.seeds)


@dataclass(frozen=True)
class Panel:
    """One chart: the whole's (task TOTAL) or a task's."""

    task: str
    lines: tuple[Line, ...]
    y_range: tuple[float, float] | None


@dataclass(frozen=True)
class CurvesView:
    """The large panel, the small ones, and the legend. `interpolated`: seeds had points at different x."""

    metric: Metric
    reading: Reading
    large: Panel
    small: tuple[Panel, ...]
    entries: tuple[Entry, ...]
    x_end: float
    interpolated: bool = False

    @property
    def empty(self) -> bool:
        return not self.entries


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
    looks = _looks(runs)
    names = mean_names(runs)
    interpolated = False
    wholes: dict[str, list[Line]] = {}
    for task in dict.fromkeys((TOTAL, *tasks, *by_task)):
        if task not in by_task:
            continue
        if reading.seeds == "lines":
            wholes[task] = _runs(metric, reading, by_task[task], looks)
        else:
            wholes[task], any_interpolated = _means(metric, reading, by_task[task], looks, names, conditions)
            interpolated = interpolated or any_interpolated
    shown = {task: [line for line in lines if line.key not in hidden] for task, lines in wholes.items()}
    return CurvesView(
        metric,
        reading,
        _panel(reading, large, shown.get(large, []), LARGE_POINTS),
        tuple(_panel(reading, task, lines, SMALL_POINTS) for task, lines in shown.items() if task != large),
        _entries(metric, wholes, large),
        max((float(line.x[-1]) for lines in shown.values() for line in lines), default=1.0),
        interpolated,
    )


def _looks(runs: Sequence[Run]) -> dict[str, tuple[int, bool]]:
    """Rank of each configuration, and whether dashes tell all apart: at most one per paradigm (for STL, per
    task).
    """
    configs = {run.configuration_id: run.config for run in runs}
    kinds = {
        (config.paradigm, config.tasks if config.paradigm == "stl" else ()) for config in configs.values()
    }
    apart = len(kinds) == len(configs)
    return {key: (rank, apart) for rank, key in enumerate(configs)}


def _values(metric: Metric, series: MetricSeries) -> Floats:
    """The values in the unit shown; infinite ones become NaN, which breaks a line."""
    return np.where(np.isfinite(series.value), series.value * (100 if metric.percent else 1), np.nan)


def _colour_task(run: Run, task: str) -> str:
    """The task whose colour a line has: an STL run's total is the curve of its task."""
    return task or (run.config.tasks[0] if run.config.paradigm == "stl" else TOTAL)


def _runs(
    metric: Metric,
    reading: Reading,
    members: Sequence[tuple[Run, MetricSeries]],
    looks: Mapping[str, tuple[int, bool]],
) -> list[Line]:
    """A line per run."""
    lines = []
    seeds = Counter(run.configuration_id for run, _ in members)
    for run, curve in members:
        x = positions(reading.axis, curve.step, curve.epoch, curve.seconds)
        raw = _values(metric, curve)
        y = smooth(raw, reading.smoothing)
        lines.append(
            Line(
                str(run.id),
                run_name(run),
                _colour_task(run, curve.key.task),
                run.config.paradigm,
                *looks[run.configuration_id],
                x,
                y,
                x,
                raw,
                seeds=(run.config.seed,),
                state=run.state,
                thin=seeds[run.configuration_id] > 1,
                chosen=_chosen(run, curve.epoch, x, y),
            )
        )
    return lines


def _chosen(run: Run, epoch: Floats, x: Floats, y: Floats) -> tuple[float, float] | None:
    """The last point of the epoch whose weights the run has kept."""
    if run.best_epoch is None:
        return None
    place = int(np.searchsorted(epoch, run.best_epoch + 1e-9, "right")) - 1
    if place < 0 or epoch[place] <= run.best_epoch - 1 or np.isnan(y[place]):
        return None
    return float(x[place]), float(y[place])


def _means(
    metric: Metric,
    reading: Reading,
    members: Sequence[tuple[Run, MetricSeries]],
    looks: Mapping[str, tuple[int, bool]],
    names: Mapping[int, str],
    conditions: Mapping[int, Conditions],
) -> tuple[list[Line], bool]:
    """A mean per configuration with its band, each seed smoothed first; and whether any was interpolated."""
    groups: dict[str, list[tuple[Run, MetricSeries]]] = {}
    for run, curve in members:
        groups.setdefault(run.configuration_id, []).append((run, curve))
    lines, any_interpolated = [], False
    for key, group in groups.items():
        counted = {run.id for run in one_per_seed([run for run, _ in group], conditions)}
        group = [(run, curve) for run, curve in group if run.id in counted]
        xs = [positions(reading.axis, curve.step, curve.epoch, curve.seconds) for _, curve in group]
        raws = [_values(metric, curve) for _, curve in group]
        x, values, interpolated = side_by_side(xs, [smooth(raw, reading.smoothing) for raw in raws])
        any_interpolated = any_interpolated or interpolated
        of = band(values)
        low, high = (of.mean - of.sd, of.mean + of.sd) if reading.seeds == "sd" else (of.low, of.high)
        raw = band(side_by_side(xs, raws)[1]).mean if reading.smoothing else of.mean
        run, curve = group[0]
        lines.append(
            Line(
                key,
                names[run.id],
                _colour_task(run, curve.key.task),
                run.config.paradigm,
                *looks[key],
                x,
                of.mean,
                x,
                raw,
                low,
                high,
                of.n.astype(float),
                seeds=tuple(sorted(run.config.seed for run, _ in group)),
            )
        )
    return lines, any_interpolated


def _panel(reading: Reading, task: str, lines: Sequence[Line], budget: int) -> Panel:
    # A smoothed line brings its raw one, a band two edges.
    weight = 2 if reading.smoothing else 1
    each = min(_MOST_POINTS, max(_LEAST_POINTS, budget // max(1, weight * len(lines))))
    return Panel(task, tuple(_thinned(reading, line, each) for line in lines), _y_range(reading, lines))


def _thinned(reading: Reading, line: Line, most: int) -> Line:
    """The line with about `most` points; its raw curve only if it was smoothed."""
    edges = [edge for edge in (line.low, line.high) if edge is not None]
    at = kept(line.x, [line.y, *edges], most, reading.window, log=reading.log_x)
    low, high, n = (None if values is None else values[at] for values in (line.low, line.high, line.n))
    raw_x = raw = None
    if reading.smoothing and line.raw is not None:
        raw_at = kept(line.x, [line.raw], most, reading.window, log=reading.log_x)
        raw_x, raw = line.x[raw_at], line.raw[raw_at]
    return dataclasses.replace(
        line, x=line.x[at], y=line.y[at], raw_x=raw_x, raw=raw, low=low, high=high, n=n
    )


def _y_range(reading: Reading, lines: Sequence[Line]) -> tuple[float, float] | None:
    """From the lowest to the highest value in the window; log10 of them on a log axis."""
    parts = []
    for line in lines:
        inside = slice(None)
        if reading.window is not None:
            start, end = reading.window
            inside = slice(np.searchsorted(line.x, start), np.searchsorted(line.x, end, "right"))
        # A band's lower edge may come near zero, which a log axis would follow for decades.
        low = None if reading.log_y else line.low
        shown = [line.y] if reading.calm else [line.y, line.raw, low, line.high]
        parts += [values[inside] for values in shown if values is not None]
    values = np.concatenate(parts) if parts else np.array([])
    values = values[values > 0] if reading.log_y else values[np.isfinite(values)]
    if not len(values):
        return None
    ends = np.quantile(values, _OUTLIERS if reading.calm else (0, 1))
    bottom, top = map(float, np.log10(ends) if reading.log_y else ends)
    room = 0.05 * (top - bottom) or 0.05 * abs(top) or 0.5
    return bottom - room, top + room


def _entries(metric: Metric, wholes: Mapping[str, list[Line]], large: str) -> tuple[Entry, ...]:
    """A row for each line of the large panel, then one without values for each line of small panels only."""
    rows = {line.key: _entry(metric, line) for line in wholes.get(large, [])}
    for lines in wholes.values():
        for line in lines:
            if line.key not in rows:
                rows[line.key] = dataclasses.replace(
                    _entry(metric, line), last=None, last_x=None, best=None, best_x=None
                )
    return tuple(rows.values())


def _entry(metric: Metric, line: Line) -> Entry:
    assert line.raw is not None
    points: list[float | None] = [None] * 4
    known = np.flatnonzero(np.isfinite(line.raw))
    if len(known):
        points[:2] = float(line.raw[known[-1]]), float(line.x[known[-1]])
        if metric.best:
            values = line.raw[known]
            best = known[np.argmax(values) if metric.best == "max" else np.argmin(values)]
            points[2:] = float(line.raw[best]), float(line.x[best])
    look = (line.key, line.name, line.paradigm, line.task, line.rank, line.apart, line.seeds, line.state)
    return Entry(*look, *points)
