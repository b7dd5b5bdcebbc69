"""What the Curves page shows, as frozen values: the lines of each panel and the rows of the legend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.store.states import RunState
from dashboard.queries.curve_metrics import Metric
from dashboard.queries.curve_numbers import Window

__all__ = ["CurvesView", "Entry", "Line", "Panel", "Reading"]

Floats = NDArray[np.float64]


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
