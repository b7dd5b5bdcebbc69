"""Curves as they are shown: lines of runs or means over seeds, a panel for the whole and one per task."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from core.evaluation.statistics import band
from core.records import TOTAL
from core.store.records import Conditions, MetricSeries, Run, RunState
from dashboard.curves.numbers import Metric, Window, kept, positions, side_by_side, smooth
from jobs.naming import differing, run_name
from jobs.results import one_per_seed

# What the Curves page shows, as frozen values: the lines of each panel and the rows of the legend.


@dataclass(frozen=True)
class Reading:
    """How the curves are to be read. `seeds`: `lines`, or their mean with `sd` or `interval`.

    `smoothing` in [0, 1) is the weight of the past. `calm` fits y to the middle 98% of the values.
    `window` is the part of x that a reader has zoomed into.
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
    """A run's curve or a configuration's mean, thinned. `key` is the run's number or the configuration's id.

    `apart`: dashes tell all configurations apart. `thin`: one of several seeds. `raw_x`, `raw` hold it
    unsmoothed where it was smoothed; `low`, `high`, `n` its band (NaN: none there). `chosen` is the point of
    the run's checkpoint.
    """

    key: str
    name: str
    task: str
    paradigm: str
    rank: int
    apart: bool
    thin: bool
    x: Floats
    y: Floats
    raw_x: Floats | None = None
    raw: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    n: Floats | None = None
    chosen: tuple[float, float] | None = None


@dataclass(frozen=True)
class Entry:
    """A row of the legend, from all points, unsmoothed: last value and best, each with its place on x."""

    key: str
    name: str
    paradigm: str
    task: str
    rank: int
    apart: bool
    seeds: tuple[int, ...]
    state: RunState | None
    n: int
    last: float | None
    last_x: float | None
    best: float | None
    best_x: float | None


@dataclass(frozen=True)
class Panel:
    """One chart: the whole's (task TOTAL) or a task's."""

    task: str
    lines: tuple[Line, ...]
    y_range: tuple[float, float] | None


@dataclass(frozen=True)
class CurvesView:
    """The large panel, the small ones, the legend, and what must be said in words."""

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


Floats = NDArray[np.float64]

LARGE_POINTS = 4500
"""Points that a large chart draws, shared by its lines: what a browser redraws in a twentieth of a second."""

SMALL_POINTS = 1200
_LEAST_POINTS = 40
_MOST_POINTS = 2000
_OUTLIERS = (0.01, 0.99)


@dataclass
class _Whole:
    """A line with all its points, before anything is left out."""

    key: str
    name: str
    task: str
    run: Run
    rank: int
    apart: bool
    seeds: tuple[int, ...]
    x: Floats
    y: Floats
    raw: Floats
    low: Floats | None = None
    high: Floats | None = None
    n: Floats | None = None
    thin: bool = False
    chosen: tuple[float, float] | None = None
    parts: list[Run] = field(default_factory=list)


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
    """One metric of these runs. `tasks` orders the panels; `large` names the one shown large. `conditions`
    tell which runs of a configuration a mean may be of (`jobs.results.one_per_seed`).
    """
    by_id = {run.id: run for run in runs}
    looks = _looks(runs)
    found: dict[str, list[tuple[Run, MetricSeries]]] = {}
    place = {run.id: place for place, run in enumerate(runs)}
    for one in sorted(series, key=lambda one: place[one.run_id]):
        found.setdefault(one.key.task, []).append((by_id[one.run_id], one))
    names = dict(zip(by_id, differing([run.config for run in runs]), strict=True)) if runs else {}
    interpolated = False
    wholes: dict[str, list[_Whole]] = {}
    for task in dict.fromkeys((TOTAL, *tasks, *found)):
        if task not in found:
            continue
        if reading.seeds == "lines":
            wholes[task] = _runs(metric, reading, found[task], looks)
        else:
            wholes[task], any_interpolated = _means(metric, reading, found[task], looks, names, conditions)
            interpolated = interpolated or any_interpolated
    shown = {task: [one for one in lines if one.key not in hidden] for task, lines in wholes.items()}
    return CurvesView(
        metric,
        reading,
        _panel(reading, large, shown.get(large, []), LARGE_POINTS),
        tuple(_panel(reading, task, lines, SMALL_POINTS) for task, lines in shown.items() if task != large),
        _entries(metric, wholes, large),
        max((float(one.x[-1]) for lines in shown.values() for one in lines), default=1.0),
        interpolated,
    )


def _looks(runs: Sequence[Run]) -> dict[str, tuple[int, bool]]:
    """Each configuration's rank among those shown, and whether dashes tell them all apart: one configuration
    per paradigm (for STL, per task).
    """
    configs = {run.configuration_id: run.config for run in runs}
    kinds = [(one.paradigm, one.tasks if one.paradigm == "stl" else ()) for one in configs.values()]
    apart = len(set(kinds)) == len(kinds)
    return {key: (rank, apart) for rank, key in enumerate(configs)}


def _values(metric: Metric, series: MetricSeries) -> Floats:
    """The values in the unit shown; what is no number is NaN, which breaks a line."""
    return np.where(np.isfinite(series.value), series.value * (100 if metric.percent else 1), np.nan)


def _colour_task(run: Run, task: str) -> str:
    """The task whose colour a line has: an STL run's total is the curve of its task."""
    return task or (run.config.tasks[0] if run.config.paradigm == "stl" else TOTAL)


def _runs(
    metric: Metric,
    reading: Reading,
    found: Sequence[tuple[Run, MetricSeries]],
    looks: dict[str, tuple[int, bool]],
) -> list[_Whole]:
    lines = []
    seeds = Counter(run.configuration_id for run, _ in found)
    for run, one in found:
        x = positions(reading.axis, one.step, one.epoch, one.seconds)
        raw = _values(metric, one)
        y = smooth(raw, reading.smoothing)
        lines.append(
            _Whole(
                str(run.id),
                run_name(run),
                _colour_task(run, one.key.task),
                run,
                *looks[run.configuration_id],
                (run.config.seed,),
                x,
                y,
                raw,
                thin=seeds[run.configuration_id] > 1,
                chosen=_chosen(run, one.epoch, x, y),
                parts=[run],
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
    found: Sequence[tuple[Run, MetricSeries]],
    looks: dict[str, tuple[int, bool]],
    names: dict[int, str],
    conditions: Mapping[int, Conditions],
) -> tuple[list[_Whole], bool]:
    """A mean per configuration, with its band; each seed is smoothed by itself first."""
    groups: dict[str, list[tuple[Run, MetricSeries]]] = {}
    for run, one in found:
        groups.setdefault(run.configuration_id, []).append((run, one))
    lines, any_interpolated = [], False
    for key, same in groups.items():
        counted = {run.id for run in one_per_seed([run for run, _ in same], conditions)}
        members = [(run, one) for run, one in same if run.id in counted]
        xs = [positions(reading.axis, one.step, one.epoch, one.seconds) for _, one in members]
        raws = [_values(metric, one) for _, one in members]
        x, values, interpolated = side_by_side(xs, [smooth(raw, reading.smoothing) for raw in raws])
        any_interpolated = any_interpolated or interpolated
        of = band(values)
        low, high = (of.mean - of.sd, of.mean + of.sd) if reading.seeds == "sd" else (of.low, of.high)
        raw = band(side_by_side(xs, raws)[1]).mean if reading.smoothing else of.mean
        run, one = members[0]
        name = names[run.id]
        if run.config.paradigm == "stl":
            name = f"{name} {run.config.tasks[0]}"
        lines.append(
            _Whole(
                key,
                name,
                _colour_task(run, one.key.task),
                run,
                *looks[key],
                tuple(sorted(member.config.seed for member, _ in members)),
                x,
                of.mean,
                raw,
                low,
                high,
                of.n.astype(float),
                parts=[member for member, _ in members],
            )
        )
    return lines, any_interpolated


def _panel(reading: Reading, task: str, lines: Sequence[_Whole], budget: int) -> Panel:
    # A smoothed line brings its raw one, a band two edges.
    weight = 2 if reading.smoothing else 1
    each = min(_MOST_POINTS, max(_LEAST_POINTS, budget // max(1, weight * len(lines))))
    return Panel(task, tuple(_thinned(reading, one, each) for one in lines), _y_range(reading, lines))


def _thinned(reading: Reading, one: _Whole, most: int) -> Line:
    edges = [edge for edge in (one.low, one.high) if edge is not None]
    at = kept(one.x, [one.y, *edges], most, reading.window, log=reading.log_x)
    raw_at = kept(one.x, [one.raw], most, reading.window, log=reading.log_x) if reading.smoothing else None
    return Line(
        one.key,
        one.name,
        one.task,
        one.run.config.paradigm,
        one.rank,
        one.apart,
        one.thin,
        one.x[at],
        one.y[at],
        None if raw_at is None else one.x[raw_at],
        None if raw_at is None else one.raw[raw_at],
        None if one.low is None else one.low[at],
        None if one.high is None else one.high[at],
        None if one.n is None else one.n[at],
        one.chosen,
    )


def _y_range(reading: Reading, lines: Sequence[_Whole]) -> tuple[float, float] | None:
    """From the lowest to the highest value in the window; log10 of them on a log axis."""
    parts = []
    for one in lines:
        a, b = (0, len(one.x))
        if reading.window is not None:
            a, b = (
                np.searchsorted(one.x, reading.window[0]),
                np.searchsorted(one.x, reading.window[1], "right"),
            )
        # A band's lower edge may come near zero, which a log axis would follow for decades.
        low = None if reading.log_y else one.low
        shown = [one.y] if reading.calm else [one.y, one.raw, low, one.high]
        parts += [values[a:b] for values in shown if values is not None]
    values = np.concatenate(parts) if parts else np.array([])
    values = values[values > 0] if reading.log_y else values[np.isfinite(values)]
    if not len(values):
        return None
    if reading.calm:
        low, high = (float(value) for value in np.quantile(values, _OUTLIERS))
    else:
        low, high = float(values.min()), float(values.max())
    if reading.log_y:
        low, high = float(np.log10(low)), float(np.log10(high))
    room = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
    return low - room, high + room


def _entries(metric: Metric, wholes: dict[str, list[_Whole]], large: str) -> tuple[Entry, ...]:
    """A row for each line of the large panel, then one for each line that only a small panel has."""
    rows = {one.key: _entry(metric, one) for one in wholes.get(large, [])}
    for lines in wholes.values():
        for one in lines:
            if one.key not in rows:
                rows[one.key] = dataclasses.replace(
                    _entry(metric, one), last=None, last_x=None, best=None, best_x=None
                )
    return tuple(rows.values())


def _entry(metric: Metric, one: _Whole) -> Entry:
    known = np.flatnonzero(np.isfinite(one.raw))
    last = best = None
    if len(known):
        last = known[-1]
        if metric.best:
            values = one.raw[known]
            best = known[np.argmax(values) if metric.best == "max" else np.argmin(values)]
    return Entry(
        one.key,
        one.name,
        one.run.config.paradigm,
        one.task,
        one.rank,
        one.apart,
        one.seeds,
        one.run.state if one.n is None else None,
        len(one.parts),
        None if last is None else float(one.raw[last]),
        None if last is None else float(one.x[last]),
        None if best is None else float(one.raw[best]),
        None if best is None else float(one.x[best]),
    )
