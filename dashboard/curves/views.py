"""Curves as they are shown: lines of configurations or runs, a panel per task, a legend by configuration."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from core.evaluation.statistics import band
from core.metrics import TOTAL, Metric
from core.results.samples import one_per_seed
from core.store.types import Conditions, MetricSeries, Run, RunState
from dashboard.curves import numbers
from dashboard.curves.numbers import Configuration, Floats, side_by_side

_LARGE_POINTS, _SMALL_POINTS, _LEAST_POINTS = 960, 140, 30
"""Points that are drawn of a line: in the large chart, in a small one, and where many lines share a chart."""

_FULL_LINES = 6
"""So many lines of a chart have the points of six between them: a browser redraws these in 0.1 s."""
_MOST_RAW = 3
"""With more lines than this, the raw lines behind smoothed ones are a fog: none is drawn."""

_NEAR = 0.5
"""How far from the values of the second half of training others are near them, as a share of their range."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Display:
    """How the curves are to be read.

    `seeds` is `lines`, or the mean over seeds with `sd` or `interval`. `smoothing` in [0, 1) weighs the past.
    `of_end`: charts leave out the start of training, where it would take most of the y axis.
    """

    axis: str = "step"
    seeds: str = "sd"
    smoothing: float = 0.0
    log_y: bool = False
    of_end: bool = False


@dataclass(frozen=True)
class Line:
    """A run's curve (`key` is its id), or that of a configuration's seeds together (its key).

    `thin`: one of several seeds. `raw` is the curve before smoothing. A mean over two seeds or more has `low`
    and `high`, its band, and `n` (NaN: no band). `kept` is the point (x, y) of the kept checkpoint.
    `interpolated`: runs or seeds of it had points at different x.
    """

    key: str
    name: str
    configuration: Configuration
    x: Floats
    y: Floats
    raw: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    n: Floats | None = None
    thin: bool = False
    kept: Point | None = None
    interpolated: bool = False


@dataclass(frozen=True)
class Panel:
    """One chart: the whole's (task TOTAL) or a task's.

    `left_out` counts the points of its lines that a log axis has no place for: those of 0 or less.
    """

    task: str
    lines: tuple[Line, ...]
    y_range: tuple[float, float] | None
    left_out: int = 0

    @property
    def x_start(self) -> float:
        """The first x of its lines, where they have another."""
        start = min((float(line.x[0]) for line in self.lines), default=0.0)
        return start if start < self.x_end else 0.0

    @property
    def x_end(self) -> float:
        """The last x of its lines."""
        return max((float(line.x[-1]) for line in self.lines), default=1.0)


@dataclass(frozen=True)
class Curve:
    """The values of a run, or of one seed of STL as a whole: the mean of its tasks' runs. `y` is smoothed."""

    runs: tuple[Run, ...]
    x: Floats
    raw: Floats
    y: Floats
    epoch: Floats | None = None

    @property
    def seed(self) -> int:
        return self.runs[0].config.seed

    def best(self, metric: Metric) -> Point | None:
        """The best point; None where no value is a number."""
        known = np.flatnonzero(np.isfinite(self.y))
        if not len(known):
            return None
        best = known[(np.argmin if metric.best == "min" else np.argmax)(self.y[known])]
        return float(self.x[best]), float(self.y[best])


def last_shared(of: Sequence[Curve], among: Sequence[Curve]) -> tuple[float, list[float]] | None:
    """The last x where each of these curves has a value, and the values of all curves `among` there.

    Their mean is a point of the drawn line, though curves may end at different x.
    """
    if not of:
        return None
    x, values, _ = side_by_side([curve.x for curve in among], [curve.y for curve in among])
    known = np.isfinite(values)
    wanted = [row for row, curve in zip(known, among, strict=True) if any(curve is one for one in of)]
    shared = np.flatnonzero(np.all(wanted, axis=0))
    if not len(shared):
        return None
    at = shared[-1]
    return float(x[at]), values[known[:, at], at].tolist()


@dataclass(frozen=True)
class Group:
    """A configuration's curves of one task: per run (per seed for the whole of STL), and per seed.
    `interpolated`: STL's runs had points at different x.
    """

    configuration: Configuration
    runs: tuple[Curve, ...] = ()
    seeds: tuple[Curve, ...] = ()
    interpolated: bool = False

    @property
    def ended(self) -> tuple[Curve, ...]:
        """The seeds that came to their end (others would pull the mean of last values down); all if none."""
        succeeded = [seed for seed in self.seeds if {run.state for run in seed.runs} == {RunState.SUCCEEDED}]
        return tuple(succeeded) or self.seeds

    @property
    def keys(self) -> list[str]:
        return [str(curve.runs[0].id) for curve in self.runs]

    @property
    def names(self) -> list[str]:
        """`seed 1` of each run, and the run where a seed was run again."""
        taken = Counter(curve.seed for curve in self.runs)
        return [
            f"seed {curve.seed}" + (f" · run {key}" if taken[curve.seed] > 1 else "")
            for curve, key in zip(self.runs, self.keys, strict=True)
        ]


@dataclass(frozen=True)
class CurvesView:
    """The large panel, the small ones, and the legend.
    The legend has the large panel's groups, and empty ones for small panels only.

    `steep_until` is the x where the charts may start (`steep_until`), None for the first. They do with
    `reading.of_end`.
    """

    metric: Metric
    reading: Display
    large: Panel
    small: tuple[Panel, ...]
    legend: tuple[Group, ...]
    steep_until: float | None = None

    @property
    def start(self) -> float | None:
        """The x before which nothing is drawn; None where all is."""
        return self.steep_until if self.reading.of_end else None

    @property
    def interpolated(self) -> bool:
        """Whether any line has seeds with points at different x."""
        return any(line.interpolated for panel in (self.large, *self.small) for line in panel.lines)


def curves(
    metric: Metric,
    reading: Display,
    runs: Sequence[Run],
    series: Iterable[MetricSeries],
    tasks: Sequence[str],
    *,
    large: str = TOTAL,
    hidden: Collection[str] = (),
    conditions: Mapping[int, Conditions] = MappingProxyType({}),
    most: int = _LARGE_POINTS,
) -> CurvesView:
    """One metric of these runs. `tasks` orders the panels; `large` names the one shown large, with at most
    `most` points a line.

    `hidden` has keys of lines and of configurations. `conditions` tell which runs of a configuration a mean
    may include (`core.results.samples.one_per_seed`).
    """
    by_id = {run.id: run for run in runs}
    order = {run_id: order for order, run_id in enumerate(by_id)}
    configuration = numbers.configurations(runs)
    members: dict[str, dict[Configuration, list[Curve]]] = {}
    for curve in sorted(series, key=lambda curve: order[curve.run_id]):
        x = numbers.positions(reading.axis, curve.step, curve.epoch, curve.seconds)
        values = np.where(np.isfinite(curve.value), curve.value * (100 if metric.percent else 1), np.nan)
        members_of = members.setdefault(curve.key.task, {}).setdefault(configuration[curve.run_id], [])
        y = numbers.smooth(values, reading.smoothing)
        members_of.append(Curve((by_id[curve.run_id],), x, values, y, curve.epoch))
    groups = {
        task: [_group(reading, of, own_curves, conditions) for of, own_curves in members[task].items()]
        for task in dict.fromkeys((TOTAL, *tasks, *members))
        if task in members
    }
    shown = {
        task: [
            line
            for group in of_task
            if group.configuration.key not in hidden
            for line in _lines(reading, group)
            if line.key not in hidden
        ]
        for task, of_task in groups.items()
    }
    # Of the large chart: the x of all charts is one.
    steep = None if reading.log_y else steep_until(shown.get(large, []))
    start = steep if reading.of_end else None
    small = [
        _panel(reading, task, lines, _SMALL_POINTS, start) for task, lines in shown.items() if task != large
    ]
    ranges = [panel.y_range for panel in small if panel.y_range is not None]
    if metric.percent and ranges:  # tasks beside each other compare
        both = min(low for low, _ in ranges), max(high for _, high in ranges)
        small = [
            panel if panel.y_range is None else dataclasses.replace(panel, y_range=both) for panel in small
        ]
    return CurvesView(
        metric,
        reading,
        _panel(reading, large, shown.get(large, []), most, start),
        tuple(small),
        _legend(groups, large),
        steep,
    )


def _group(
    reading: Display,
    configuration: Configuration,
    members: Sequence[Curve],
    conditions: Mapping[int, Conditions],
) -> Group:
    counted = {run.id for run in one_per_seed([curve.runs[0] for curve in members], conditions)}
    by_seed: dict[int, list[Curve]] = {}
    for curve in sorted(members, key=lambda curve: curve.seed):
        if curve.runs[0].id in counted:
            by_seed.setdefault(curve.seed, []).append(curve)
    # The whole of STL is the mean of its tasks' runs: a seed that lacks a task has none.
    tasks = len({curve.runs[0].config.tasks for curve in members})
    if tasks == 1:
        return Group(configuration, tuple(members), tuple(of_seed[-1] for of_seed in by_seed.values()))
    seeds, interpolated = [], False
    for of_seed in by_seed.values():
        if len(of_seed) == tasks:
            x, values, also = side_by_side([curve.x for curve in of_seed], [curve.raw for curve in of_seed])
            raw = values.mean(axis=0)
            runs = tuple(curve.runs[0] for curve in of_seed)
            seeds.append(Curve(runs, x, raw, numbers.smooth(raw, reading.smoothing)))
            interpolated = interpolated or also
    return Group(configuration, tuple(seeds), tuple(seeds), interpolated)


def _lines(reading: Display, group: Group) -> list[Line]:
    """A line per run, or the mean of the seeds with its band."""
    configuration, seeds = group.configuration, group.seeds
    if reading.seeds == "lines" or len(seeds) == 1:
        mean = reading.seeds != "lines"
        return [
            Line(
                configuration.key if mean else key,
                configuration.name if mean else f"{configuration.name} · {name}",
                configuration,
                curve.x,
                curve.y,
                curve.raw if reading.smoothing else None,
                thin=not mean and len(group.runs) > 1,
                kept=_kept_point(curve),
                interpolated=group.interpolated,
            )
            for curve, key, name in zip(group.runs, group.keys, group.names, strict=True)
            if not mean or curve is seeds[0]
        ]
    if not seeds:
        return []
    xs = [curve.x for curve in seeds]
    x, values, also = side_by_side(xs, [curve.y for curve in seeds])
    of = band(values)
    low, high = (of.mean - of.sd, of.mean + of.sd) if reading.seeds == "sd" else (of.low, of.high)
    raw = band(side_by_side(xs, [curve.raw for curve in seeds])[1]).mean if reading.smoothing else None
    n, also = of.n.astype(float), also or group.interpolated
    line = Line(configuration.key, configuration.name, configuration, x, of.mean, raw, low, high, n)
    return [dataclasses.replace(line, interpolated=also)]


def _kept_point(curve: Curve) -> Point | None:
    """The last point of the epoch of the kept checkpoint."""
    best_epoch = curve.runs[0].best_epoch
    if best_epoch is None or curve.epoch is None:
        return None
    index = int(np.searchsorted(curve.epoch, best_epoch + 1e-9, "right")) - 1
    if index < 0 or curve.epoch[index] <= best_epoch - 1 or np.isnan(curve.y[index]):
        return None
    return float(curve.x[index]), float(curve.y[index])


def _panel(reading: Display, task: str, lines: Sequence[Line], most: int, start: float | None) -> Panel:
    """The chart of a task; each of its lines with about `most` points, fewer where lines are many."""
    each = max(_LEAST_POINTS, min(most, _FULL_LINES * most // max(1, len(lines))))
    if len(lines) > _MOST_RAW or most == _SMALL_POINTS:
        lines = [dataclasses.replace(line, raw=None) for line in lines]
    left_out = sum(int(np.sum(line.y <= 0)) for line in lines) if reading.log_y else 0  # NaN is no point
    thinned = tuple(_thinned(line, each) for line in lines)
    return Panel(task, thinned, _y_range(reading, lines, start), left_out)


def _thinned(line: Line, most: int) -> Line:
    drawn = [values for values in (line.y, line.raw, line.low, line.high) if values is not None]
    at = numbers.kept(line.x, drawn, most)
    raw, low, high, n = (
        None if values is None else values[at] for values in (line.raw, line.low, line.high, line.n)
    )
    return dataclasses.replace(line, x=line.x[at], y=line.y[at], raw=raw, low=low, high=high, n=n)


def _places(lines: Iterable[Line], *, log_y: bool = False) -> tuple[Floats, Floats]:
    """The x and y of all that is drawn of these lines and their bands."""
    parts, places = [np.array([])], [np.array([])]
    for line in lines:
        # A band's lower edge may come near zero, which a log axis would follow for decades.
        low = None if log_y else line.low
        drawn = [values for values in (line.y, low, line.high) if values is not None]
        parts += drawn
        places += [line.x] * len(drawn)
    x, y = np.concatenate(places), np.concatenate(parts)
    known = y > 0 if log_y else np.isfinite(y)
    return x[known], y[known]


def steep_until(lines: Sequence[Line]) -> float | None:
    """The x from which on all values are near those of the second half of training, which take less than half
    of the whole range; None where nothing comes before it. The shortest line says what is half.
    """
    x, y = _places(lines)
    if not len(x):
        return None
    of_end = y[x >= min(float(line.x[-1]) for line in lines) / 2]
    if not len(of_end) or np.ptp(of_end) >= np.ptp(y) / 2:
        return None
    near = _NEAR * np.ptp(of_end)
    far = x[(y < of_end.min() - near) | (y > of_end.max() + near)]
    return float(x[x > far.max()].min()) if len(far) else None


def _y_range(reading: Display, lines: Sequence[Line], start: float | None) -> tuple[float, float] | None:
    """From the lowest to the highest value of x from `start` on; log10 of them on a log axis."""
    x, values = _places(lines, log_y=reading.log_y)
    if start is not None:
        values = values[x >= start]
    if not len(values):
        return None
    ends = np.array([values.min(), values.max()])
    bottom, top = map(float, np.log10(ends) if reading.log_y else ends)
    room = 0.05 * (top - bottom) or 0.05 * abs(top) or 0.5
    return bottom - room, top + room


def _legend(groups: Mapping[str, Sequence[Group]], large: str) -> tuple[Group, ...]:
    shown = {group.configuration: group for group in groups.get(large, ())}
    for group in (group for of_task in groups.values() for group in of_task):
        shown.setdefault(group.configuration, Group(group.configuration))
    return tuple(sorted(shown.values(), key=lambda group: group.configuration.rank))
