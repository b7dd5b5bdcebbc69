"""The arithmetic of curves, on all their points: smoothing, seeds side by side, thinning for the screen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["Window", "kept", "positions", "side_by_side", "smooth"]

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Window = tuple[float, float]

# Cells of the widest table of seeds by points: 16 MB of doubles.
_MOST_CELLS = 2_000_000
# How much of the points a zoomed chart gives to what it shows; the rest stays coarse, for zooming out.
_INSIDE = 0.8


def smooth(values: Floats, weight: float) -> Floats:
    """Exponential moving average, corrected for its start, over all points; `weight` is that of the past.

    A point that is no number stays none, and counts for nothing after it.
    """
    if not weight:
        return values
    known = np.where(np.isfinite(values), values, np.nan)
    running = np.array(pd.Series(known).ewm(alpha=1 - weight, adjust=True).mean(), dtype=float)
    running[np.isnan(known)] = np.nan
    return running


def side_by_side(xs: Sequence[Floats], ys: Sequence[Floats]) -> tuple[Floats, Floats, bool]:
    """Seeds on one x: x (X,), values (S, X) with NaN where a seed has none, and whether any was interpolated.

    Seeds that logged at the same places, as far as each has come, keep their own values. Others are
    interpolated linearly between their points, never beyond their ends or into a gap, at the places of all
    of them; where those are more than two million cells, at as many of them, evenly.
    """
    first = xs[0]
    if all(x is first or np.array_equal(x, first) for x in xs[1:]):
        return first, np.stack(ys), False
    union = np.unique(np.concatenate(xs))
    spans = [np.searchsorted(union, (x[0], x[-1])) if len(x) else (0, -1) for x in xs]
    same = all(end - start + 1 == len(x) for x, (start, end) in zip(xs, spans, strict=True))
    if not same and len(union) * len(xs) > _MOST_CELLS:
        union = union[np.unique(np.linspace(0, len(union) - 1, _MOST_CELLS // len(xs)).astype(int))]
    values = np.full((len(xs), len(union)), np.nan)
    for row, x, y in zip(values, xs, ys, strict=True):
        if not same and len(x):
            row[:] = np.interp(union, x, y, left=np.nan, right=np.nan)
        # Its own points exactly: interpolation loses one beside a gap.
        places = np.minimum(np.searchsorted(union, x), len(union) - 1)
        own = union[places] == x
        row[places[own]] = y[own]
    return union, values, not same


def kept(
    x: Floats, ys: Sequence[Floats], most: int, window: Window | None = None, *, log: bool = False
) -> Places:
    """The points, about `most`, that draw the same lines over the same x (rising): first, last, each
    stretch's lowest and highest of every line, and one of each stretch's gaps.

    Within a window it keeps nearly all of its points for that. `log`: stretches are even on a log axis.
    """
    if len(x) <= most:
        return np.arange(len(x))
    places = [np.array([0, len(x) - 1])]
    for start, end, share in _regions(x, window):
        stretches = max(2, int(share * (most - 2)) // (2 * len(ys)))
        starts = _starts(x, start, end, stretches, log)
        if len(starts):
            places += [_extremes(y[start:end], starts - start) + start for y in ys]
    return np.unique(np.concatenate(places))


def _regions(x: Floats, window: Window | None) -> list[tuple[int, int, float]]:
    """Start, end and share of the points of what lies before, in and after the window."""
    if window is None:
        return [(0, len(x), 1.0)]
    # One point more on either side, whose lines cross the edge.
    a = max(0, int(np.searchsorted(x, window[0])) - 1)
    b = min(len(x), int(np.searchsorted(x, window[1], "right")) + 1)
    rest = (1 - _INSIDE) / 2
    return [(0, a, rest), (a, max(a, b), _INSIDE), (max(a, b), len(x), rest)]


def _starts(x: Floats, start: int, end: int, stretches: int, log: bool) -> Places:
    """Where each stretch begins, strictly rising."""
    if end - start <= 2 * stretches or not log or x[end - 1] <= 0:
        return np.unique(np.linspace(start, end, min(stretches, end - start), endpoint=False).astype(int))
    positive = start + int(np.searchsorted(x[start:end], 0, "right"))
    edges = np.geomspace(x[positive], x[end - 1], stretches)
    return np.unique(np.append(start, np.minimum(np.searchsorted(x, edges), end - 1)))


def _extremes(y: Floats, starts: Places) -> Places:
    """The first lowest, the first highest and the first missing point of each stretch."""
    missing = np.isnan(y)
    stretch = np.zeros(len(y), dtype=int)
    stretch[starts[1:]] = 1
    stretch = np.cumsum(stretch)
    low, high = np.where(missing, np.inf, y), np.where(missing, -np.inf, y)
    marks = [
        low == np.minimum.reduceat(low, starts)[stretch],
        high == np.maximum.reduceat(high, starts)[stretch],
    ]
    if missing.any():
        marks.append(missing)
    firsts = []
    for mark in marks:
        places = np.flatnonzero(mark)
        firsts.append(places[np.diff(stretch[places], prepend=-1) > 0])
    return np.concatenate(firsts)


def positions(axis: str, step: NDArray[np.int64], epoch: Floats, seconds: Floats) -> Floats:
    """Where the points of a curve lie on that axis, never falling: a resumed run's clock may have gone
    back.
    """
    x = {"step": step.astype(float), "epoch": epoch, "minutes": seconds / 60}[axis]
    return np.maximum.accumulate(x) if len(x) else x
