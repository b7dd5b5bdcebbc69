"""Curves: the large chart as a Plotly figure, the small ones as what our own component draws."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from core.records import TOTAL
from dashboard.curves.numbers import AXES
from dashboard.curves.views import CurvesView, Entry, Line, Reading
from dashboard.shared.charts import axis, figure, message
from dashboard.text import plotly_text
from dashboard.theme import BACKGROUND, DASHES, MARKERS, faint, ramp

Floats = NDArray[np.float64]

# Lines of few points (one per epoch) show their points; dense lines do not.
_FEW_POINTS = 60
# With more lines than this, all values at one place are a wall of text: the nearest one is shown.
_MOST_UNIFIED = 8
_DIMMED = 0.25
# Of marks beside a line: nothing under the pointer, nothing in a legend.
_SILENT = {"hoverinfo": "skip", "hovertemplate": None, "showlegend": False}


def line_colour(line: Line | Entry, colours: Mapping[str, str]) -> str:
    """A line of one task has the task's colour where dashes tell all configurations apart; else lines have
    their configuration's, the same in all panels.
    """
    return colours[line.task] if line.apart and line.task in colours else ramp(line.rank)


def curve_chart(
    view: CurvesView, colours: Mapping[str, str], *, marked: str | None = None, height: int = 400
) -> go.Figure:
    """The large chart. Where a line is marked, the others are dimmed and it lies on top."""
    panel, reading = view.large, view.reading
    chart = figure(height)
    unified = len(panel.lines) <= _MOST_UNIFIED
    chart.update_layout(hovermode="x unified" if unified else "closest", template=_defaults(view, unified))
    look = {line.key: line_colour(line, colours) for line in panel.lines}
    ordered = sorted(panel.lines, key=lambda line: line.key == marked)
    for line in ordered:
        dimmed = _dimmed(line, marked)
        if line.low is not None and line.high is not None and np.isfinite(line.low).any():
            chart.add_scatter(**_band(line, look[line.key], dimmed, view.large.y_range, reading))
    for line in ordered:
        dimmed = _dimmed(line, marked)
        if line.raw_x is not None and line.raw is not None and not dimmed:
            chart.add_scatter(
                x=_typed(line.raw_x),
                y=line.raw.astype(np.float32),
                line={"color": faint(look[line.key], 0.22), "width": 1, "simplify": False},
                **_SILENT,
            )
        for place, piece in enumerate(_pieces(line)):
            trace = _line(piece, look[line.key], dimmed, line.key == marked, view, unified)
            chart.add_scatter(**trace, showlegend=None if place == 0 else False)
        if line.chosen is not None and not dimmed:
            chart.add_scatter(**_checkpoint(line, look[line.key]))
    _axes(chart, view)
    if not panel.lines:
        message(chart, "Every line is hidden; tick one below.")
    return chart


def small_charts(
    view: CurvesView, colours: Mapping[str, str], *, marked: str | None = None, same: bool = True
) -> dict[str, Any]:
    """What `components.small_charts` draws: the panels that are not large, over the same x, and by their keys
    the looks of their lines, which travel once.

    `same`: the tasks share their y, so that they can be compared; the whole, often their sum, has its own.
    """
    ranges = [panel.y_range for panel in view.small if panel.task != TOTAL and panel.y_range]
    shared = (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else None
    lines = {line.key: line for panel in view.small for line in panel.lines}
    return {
        "looks": {key: _small_look(line, marked) for key, line in lines.items()},
        "panels": [
            {
                "task": panel.task,
                "title": panel.task or view.metric.total.capitalize(),
                "colour": colours.get(panel.task, ""),
                "y": shared if same and panel.task != TOTAL else panel.y_range,
                "lines": [_small_line(line, line_colour(line, colours), marked) for line in panel.lines],
            }
            for panel in view.small
        ],
    }


def _small_look(line: Line, marked: str | None) -> dict[str, Any]:
    return {
        "name": line.name,
        "dash": DASHES[line.paradigm],
        "width": 2.2 if line.key == marked or line.n is not None else 1.0 if line.thin else 1.5,
        "opacity": _DIMMED if _dimmed(line, marked) else 1,
    }


def _small_line(line: Line, colour: str, marked: str | None) -> dict[str, Any]:
    drawn: dict[str, Any] = {"key": line.key, "colour": colour, "x": _packed(line.x), "y": _packed(line.y)}
    if _dimmed(line, marked):
        return drawn
    if line.raw_x is not None and line.raw is not None:
        drawn["raw"] = [_packed(line.raw_x), _packed(line.raw)]
    if line.low is not None and line.high is not None:
        drawn["band"] = [_packed(line.low), _packed(line.high)]
    if line.chosen is not None:
        drawn["chosen"] = line.chosen
    return drawn


def _dimmed(line: Line, marked: str | None) -> bool:
    return marked is not None and line.key != marked


def _packed(values: Floats) -> list[Any]:
    """Lowest, highest, and 65,535 even steps between, finer than a small chart's pixels; 65535 is a gap."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    scaled = (values - low) * (65534 / (high - low)) if high > low else values - low
    steps = np.where(np.isfinite(values), np.nan_to_num(scaled).round(), 65535).astype("<u2")
    return [low, high, base64.b64encode(steps.tobytes()).decode()]


def _typed(x: Floats) -> NDArray[Any]:
    """The smallest array that holds these places exactly, or to a float's precision."""
    if len(x) and np.array_equal(x, x.astype(np.int64)):
        return x.astype(np.uint16 if x[0] >= 0 and x[-1] < 65536 else np.int32)
    return x.astype(np.float32)


def _defaults(view: CurvesView, unified: bool) -> dict[str, Any]:
    """What all lines share travels once."""
    hover = f"%{{y:{_number_format(view)}}}"
    if not unified:
        axis_name = AXES[view.reading.axis].lower()
        hover = f"%{{fullData.name}}<br>{axis_name} %{{x:,.3~f}}: {hover}<extra></extra>"
    return {"data": {"scatter": [{"mode": "lines", "hovertemplate": hover}]}}


def _number_format(view: CurvesView) -> str:
    return ".2f" if view.metric.percent else ".4~g"


def _line(
    line: Line, colour: str, dimmed: bool, marked: bool, view: CurvesView, unified: bool
) -> dict[str, Any]:
    mean = line.n is not None
    trace: dict[str, Any] = {
        "x": _typed(line.x),
        "y": line.y.astype(np.float32),
        "name": plotly_text(line.name),
        "line": {
            "color": colour,
            "width": 2.6 if marked or mean else 1.1 if line.thin else 1.7,
            "dash": DASHES[line.paradigm],
            "simplify": False,
        },
    }
    if dimmed:
        trace["opacity"] = _DIMMED
    if len(line.x) <= _FEW_POINTS:
        trace["mode"] = "lines+markers"
        trace["marker"] = {"symbol": MARKERS[line.paradigm], "size": 5, "color": colour}
    if mean:
        trace |= _hover_of_mean(line, view, unified)
    return trace


def _pieces(line: Line) -> list[Line]:
    """A mean where it has a spread, and where it is of one seed: they tell different things on hover."""
    single = np.zeros(0) if line.n is None or line.low is None else ~np.isfinite(line.low)
    if line.n is None or not single.any():
        return [line]
    alone = dataclasses.replace(line, low=None, high=None)
    if single.all():
        return [alone]
    # The places of one seed, and their neighbours, which join the pieces.
    joined = single | np.append(single[1:], False) | np.append(False, single[:-1])
    first, last = np.flatnonzero(joined)[[0, -1]]
    cut = slice(first, last + 1)
    y = np.where(joined, line.y, np.nan)
    return [
        dataclasses.replace(line, y=np.where(single, np.nan, line.y)),
        dataclasses.replace(alone, x=line.x[cut], y=y[cut], n=line.n[cut]),
    ]


def _hover_of_mean(line: Line, view: CurvesView, unified: bool) -> dict[str, Any]:
    assert line.n is not None
    number = _number_format(view)
    numbers: list[Floats] = []
    words = ""
    if line.low is not None and line.high is not None and view.reading.seeds == "sd":
        numbers, words = [line.y - line.low], f" ± %{{customdata[1]:{number}}}"
    elif line.low is not None and line.high is not None:
        numbers = [line.low, line.high]
        words = f", 95% from %{{customdata[1]:{number}}} to %{{customdata[2]:{number}}}"
    name = "" if unified else "%{fullData.name}<br>"
    tail = "" if unified else "<extra></extra>"
    return {
        "customdata": np.column_stack([line.n, *numbers]).astype(np.float32),
        "hovertemplate": f"{name}%{{y:{number}}}{words} (n = %{{customdata[0]:d}}){tail}",
    }


def _band(
    line: Line, colour: str, dimmed: bool, y_range: tuple[float, float] | None, reading: Reading
) -> dict[str, Any]:
    """The band as one filled shape per stretch without a gap."""
    assert line.low is not None
    assert line.high is not None
    low = line.low
    if reading.log_y and y_range is not None:
        low = np.maximum(low, 10 ** (y_range[0] - 1))  # below zero there is no logarithm: to under the frame
    known = np.isfinite(low) & np.isfinite(line.high)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], known.astype(np.int8), [0]])))
    xs: list[ArrayLike] = []
    ys: list[ArrayLike] = []
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        x = line.x[start:end]
        xs += [x, x[::-1], [np.nan]]
        ys += [line.high[start:end], low[start:end][::-1], [np.nan]]
    return {
        "x": np.concatenate(xs).astype(np.float32),
        "y": np.concatenate(ys).astype(np.float32),
        "fill": "toself",
        "fillcolor": faint(colour, 0.05 if dimmed else 0.18),
        "line": {"width": 0},
        **_SILENT,
    }


def _checkpoint(line: Line, colour: str) -> dict[str, Any]:
    assert line.chosen is not None
    x, y = line.chosen
    return {
        "x": [x],
        "y": [y],
        "mode": "markers",
        "marker": {
            "symbol": "diamond",
            "size": 9,
            "color": colour,
            "line": {"color": BACKGROUND, "width": 1.5},
        },
        **_SILENT,
    }


def _axes(chart: go.Figure, view: CurvesView) -> None:
    reading = view.reading
    chart.update_xaxes(
        axis(
            AXES[reading.axis],
            showgrid=False,
            type="log" if reading.log_x else "linear",
            unifiedhovertitle={"text": f"{AXES[reading.axis]} %{{x:,.4~f}}"},
        )
    )
    if not reading.log_x:
        chart.update_xaxes(range=(0, 1.01 * view.x_end))  # room for the last point's mark
    chart.update_yaxes(
        axis(
            plotly_text(view.metric.shown_title(view.large.task)),
            type="log" if reading.log_y else "linear",
            range=view.large.y_range,
            nticks=8,
        )
    )
