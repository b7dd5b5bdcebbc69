"""Curves as Plotly figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from dashboard.curves.numbers import AXES
from dashboard.curves.views import CurvesView, Line, Panel, Reading
from dashboard.shared.charts import axis, figure, message
from dashboard.text import plotly_text
from dashboard.theme import BACKGROUND, DASHES, MARKERS, faint, ramp

Floats = NDArray[np.float64]

# Lines of few points (one per epoch) show their points; dense lines do not.
_FEW_POINTS = 60
# With more lines than this, all values at one place are a wall of text: the nearest one is shown.
_MOST_UNIFIED = 8
# Of marks beside a line: nothing under the pointer, nothing in a legend.
_SILENT = {"hoverinfo": "skip", "hovertemplate": None, "showlegend": False}


def curve_chart(view: CurvesView, panel: Panel, *, small: bool = False) -> go.Figure:
    """The chart of one panel. A small one has no titles, and tells the nearest line under the pointer."""
    chart = figure(190, margin={"l": 40, "r": 8, "t": 6, "b": 24}) if small else figure(400)
    unified = not small and len(panel.lines) <= _MOST_UNIFIED
    chart.update_layout(hovermode="x unified" if unified else "closest", template=_defaults(view, unified))
    look = {line.key: ramp(line.rank) for line in panel.lines}
    for line in panel.lines:
        if line.low is not None and line.high is not None and np.isfinite(line.low).any():
            chart.add_scatter(**_band(line, look[line.key], panel.y_range, view.reading))
    for line in panel.lines:
        if line.raw is not None:
            chart.add_scatter(
                x=_typed(line.x),
                y=line.raw.astype(np.float32),
                line={"color": faint(look[line.key], 0.22), "width": 1, "simplify": False},
                **_SILENT,
            )
        chart.add_scatter(**_line(line, look[line.key], view, unified))
        if line.kept is not None:
            chart.add_scatter(**_checkpoint(line.kept, look[line.key]))
    _axes(chart, view, panel, small)
    if not panel.lines and not small:
        message(chart, "Every line is hidden; tick one below.")
    return chart


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


def _line(line: Line, colour: str, view: CurvesView, unified: bool) -> dict[str, Any]:
    mean = line.n is not None
    trace: dict[str, Any] = {
        "x": _typed(line.x),
        "y": line.y.astype(np.float32),
        "name": plotly_text(line.name),
        "line": {
            "color": colour,
            "width": 2.6 if mean else 1.1 if line.thin else 1.7,
            "dash": DASHES[line.paradigm],
            "simplify": False,
        },
    }
    if len(line.x) <= _FEW_POINTS:
        trace["mode"] = "lines+markers"
        trace["marker"] = {"symbol": MARKERS[line.paradigm], "size": 5, "color": colour}
    if mean:
        trace |= _hover_of_mean(line, view, unified)
    return trace


def _hover_of_mean(line: Line, view: CurvesView, unified: bool) -> dict[str, Any]:
    """The mean with its spread and the number of seeds; where one seed is left there is no spread."""
    assert line.n is not None
    assert line.low is not None
    assert line.high is not None
    digits = ".2f" if view.metric.percent else ".4g"
    sd = view.reading.seeds == "sd"
    texts = []
    for y, low, high, n in zip(line.y, line.low, line.high, line.n, strict=True):
        spread = f" ± {y - low:{digits}}" if sd else f", 95% from {low:{digits}} to {high:{digits}}"
        texts.append(f"{spread if np.isfinite(low) else ''} (n = {n:.0f})".replace("-", "−"))
    name, tail = ("", "") if unified else ("%{fullData.name}<br>", "<extra></extra>")
    hover = f"{name}%{{y:{_number_format(view)}}}%{{customdata}}{tail}"
    return {"customdata": texts, "hovertemplate": hover}


def _band(line: Line, colour: str, y_range: tuple[float, float] | None, reading: Reading) -> dict[str, Any]:
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
        "fillcolor": faint(colour, 0.18),
        "line": {"width": 0},
        **_SILENT,
    }


def _checkpoint(point: tuple[float, float], colour: str) -> dict[str, Any]:
    x, y = point
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


def _axes(chart: go.Figure, view: CurvesView, panel: Panel, small: bool) -> None:
    reading = view.reading
    chart.update_xaxes(
        axis(
            "" if small else AXES[reading.axis],
            showgrid=False,
            type="log" if reading.log_x else "linear",
            unifiedhovertitle={"text": f"{AXES[reading.axis]} %{{x:,.4~f}}"},
        )
    )
    if not reading.log_x:
        chart.update_xaxes(range=(0, 1.01 * view.x_end))  # room for the last point's mark
    chart.update_yaxes(
        axis(
            "" if small else plotly_text(view.metric.shown_title(panel.task)),
            type="log" if reading.log_y else "linear",
            range=panel.y_range,
            nticks=4 if small else 8,
        )
    )
