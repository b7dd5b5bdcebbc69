"""Curves as Plotly figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.figures import BACKGROUND, MUTED, TEXT, Chart, Figure, axis, band, kept_mark, plotly_text
from core.metrics import DEV_SCORE, Metric
from dashboard.curves.numbers import AXES, kept, place_text
from dashboard.curves.views import CurvesView, Display, Line, Panel
from dashboard.theme import DASHES, MARKERS, faint

Floats = NDArray[np.float64]

# Lines of few points (one per epoch) show their points; dense lines do not.
_FEW_POINTS = 30
_BAND_POINTS, _SMALL_BAND_POINTS = 160, 60
_HEIGHT, _MARGIN = 400, {"l": 52, "r": 16, "t": 12, "b": 46}
_SMALL_MARGIN = {"l": 52, "r": 8, "t": 6, "b": 44}
"""Room for what stands beside the axes: where it lacks, Plotly draws a chart twice."""
_MOST_ENDS = 12
_END_GAP = 15
_BAND, _MOST_BANDS = 0.16, 3
"""The opacity of a band, and of how many lines a chart has them: more are a fog."""
_LENGTHS = (40, 60)
"""Of a name beside a line; the second where the first would make two names the same."""
# Of marks beside a line: nothing in the tooltip, nothing in a legend.
_SILENT = {"hoverinfo": "skip", "showlegend": False}
_SIGNS = {"solid": "━━", "dash": "━ ━", "dot": "<b>·····</b>"}
_MOST_TICKS = 20
"""Epochs up to which each has a tick."""
_SPREADS = {"sd": "± SD", "interval": "± 95% interval"}


def curve_chart(view: CurvesView, panel: Panel, *, small: bool = False) -> Figure:
    """The chart of one panel. Its tooltip is that of `chart.js`."""
    chart = Chart(200, margin=_SMALL_MARGIN) if small else Chart(_HEIGHT, margin=_MARGIN)
    means = any(line.n is not None for line in panel.lines)
    tooltip = {
        "x": AXES[view.reading.axis].removesuffix("s"),
        "spread": _SPREADS[view.reading.seeds] if means else "",
        "decimals": 2 if view.metric.percent else None,
    }
    chart.layout |= {
        "hovermode": False,
        "meta": {"tooltip": tooltip, "picture": plotly_text(view.metric.shown_title(panel.task))},
        "template": {"data": {"scatter": [{"mode": "lines", "line": {"simplify": False}}]}},
    }
    banded = [line for line in panel.lines if line.low is not None and np.isfinite(line.low).any()]
    for line in banded if len(banded) <= _MOST_BANDS else ():  # of more the tooltip has the spread
        chart.add("scatter", **_band(line, panel.y_range, view.reading, small=small))
    for line in panel.lines:
        colour = line.configuration.colour
        if line.raw is not None:
            chart.add(
                "scatter",
                x=_typed(line.x),
                y=line.raw.astype(np.float32),
                line={"color": faint(colour, 0.22), "width": 1},
                **_SILENT,
            )
        # Names are in the legend of a picture, which is of the large chart.
        chart.add("scatter", **_line(line, colour), name=None if small else plotly_text(line.name))
        if line.kept is not None:
            mark = kept_mark(*line.kept, colour, 6 if line.thin else 9)
            chart.add("scatter", **mark, showlegend=False)
    _axes(chart, view, panel, small)
    if not small:
        _add_ends(chart, view, panel)
        _say_start(chart, view)
    if not panel.lines and not small:
        chart.add_message("All lines are hidden. Tick one below.")
    return chart.figure()


def _say_start(chart: Chart, view: CurvesView) -> None:
    """Says in the chart that the start of training is not in it: scores rise, so left on top is room."""
    if view.start is None:
        return
    left_out = {
        "name": "start",
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": 1,
        "yref": "paper",
        "yanchor": "top",
        "yshift": -4,
        "bgcolor": BACKGROUND,
        "borderpad": 0,
        "showarrow": False,
        "font": {"size": 12, "color": MUTED},
        "text": f"← before {place_text(view.reading.axis, view.start)}: not drawn",
    }
    chart.layout["annotations"] = [*chart.layout.get("annotations", ()), left_out]


def _add_ends(chart: Chart, view: CurvesView, panel: Panel) -> None:
    """The name and last value of each line, right of all lines and apart from each other.

    None where lines are many. Narrow charts leave them out (`chart.js`).
    """
    is_log = view.reading.log_y
    ends = []
    for line in panel.lines:
        known = np.flatnonzero(line.y > 0 if is_log else np.isfinite(line.y))
        if len(known):
            ends.append((line, float(line.x[known[-1]]), float(line.y[known[-1]])))
    if panel.y_range is None or not 0 < len(ends) <= _MOST_ENDS:
        return
    bottom, top = panel.y_range
    height = _HEIGHT - _MARGIN["t"] - _MARGIN["b"]
    places = np.array([np.log10(y) if is_log else y for _, _, y in ends])
    pixels = (places - bottom) / (top - bottom) * height
    names = _shortened([line.name for line, _, _ in ends])
    texts = [f"<b>{view.metric.text(y)}</b>{_of_fewer(line, x)}" for line, x, y in ends]
    longest = max(len(name) + len(text) for name, text in zip(names, texts, strict=True))
    chart.layout["margin"] = _MARGIN | {"r": round(5.8 * longest)}
    shifts = spread_out(pixels, _END_GAP, height) - pixels
    last = max(x for _, x, _ in ends)
    chart.layout["annotations"] = [
        {
            "name": "end",
            "x": last,
            "y": float(place),
            "xanchor": "left",
            "xshift": 6,
            "yshift": round(float(shift), 1),
            "showarrow": False,
            "font": {"size": 11, "color": TEXT},
            "text": f"{_sign(line)} {plotly_text(name)}  {text}",
            "hovertext": plotly_text(line.name) if name != line.name else None,
        }
        for (line, _, _), place, shift, name, text in zip(ends, places, shifts, names, texts, strict=True)
    ]


def _sign(line: Line) -> str:
    sign = _SIGNS.get(DASHES[line.configuration.paradigm], "━ ━")
    return f'<span style="color:{line.configuration.colour}">{sign}</span>'


def _of_fewer(line: Line, x: float) -> str:
    """` (2 of 3)`: how many of a mean's seeds have a value at its end, where not all have."""
    if line.n is None:
        return ""
    most, left = int(np.nanmax(line.n)), int(line.n[line.x == x][-1])
    return f" ({left} of {most})" if left < most else ""


def _shortened(names: Sequence[str]) -> list[str]:
    """The names, long ones cut in the middle, never so that two are the same."""
    for most in _LENGTHS:
        cut = [_cut(name, most) for name in names]
        if len(set(cut)) == len(set(names)):
            return cut
    return list(names)


def _cut(name: str, most: int) -> str:
    start = most // 2
    return (
        name if len(name) <= most else f"{name[:start].rstrip(' ·')}…{name[start + 1 - most :].lstrip(' ·')}"
    )


def spread_out(places: Floats, gap: float, most: float) -> Floats:
    """The places moved so that neighbours are `gap` apart, in order, between 0 and `most` if they fit."""
    order = np.argsort(places, kind="stable")
    clusters: list[list[float]] = []

    def start(cluster: list[float]) -> float:
        length = gap * (len(cluster) - 1)
        return max(0.0, min(float(np.mean(cluster)) - length / 2, most - length))

    for place in places[order]:
        clusters.append([float(place)])
        # Clusters that touch become one, around the mean of its places.
        while len(clusters) > 1 and start(clusters[-1]) < start(clusters[-2]) + gap * len(clusters[-2]):
            clusters[-2:] = [clusters[-2] + clusters[-1]]
    spread = np.empty_like(places)
    spread[order] = [start(of) + gap * index for of in clusters for index in range(len(of))]
    return spread


def _typed(x: Floats) -> NDArray[Any]:
    """The smallest array that holds these places exactly, or to a float's precision."""
    if len(x) and np.array_equal(x, x.astype(np.int64)):
        return x.astype(np.uint16 if x[0] >= 0 and x[-1] < 65536 else np.int32)
    return x.astype(np.float32)


def _line(line: Line, colour: str) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": line.name}
    dash = DASHES[line.configuration.paradigm]
    trace: dict[str, Any] = {
        "x": _typed(line.x),
        "y": line.y.astype(np.float32),
        "meta": meta,
        "line": {
            "color": colour,
            "width": 2.6 if line.n is not None else _thin(dash) if line.thin else 1.7,
            "dash": dash,
        },
    }
    if len(line.x) <= _FEW_POINTS:
        trace["mode"] = "lines+markers"
        marker = MARKERS[line.configuration.paradigm]
        trace["marker"] = {"symbol": marker, "size": 3 if line.thin else 5, "color": colour}
    if line.n is not None and line.high is not None:
        trace["customdata"] = (line.high - line.y).astype(np.float32)
        # How many seeds there are, from which x on.
        starts = np.flatnonzero(np.diff(line.n, prepend=-1))
        meta["seeds"] = [[float(line.x[start]), int(line.n[start])] for start in starts]
    return trace


def _thin(dash: str) -> float:
    """The width of a seed's line; dots of one pixel would be half as strong as their colour."""
    return 1.7 if dash == "dot" else 1.1


def _band(
    line: Line, y_range: tuple[float, float] | None, reading: Display, *, small: bool
) -> dict[str, Any]:
    """The band of a line, of fewer points than the line."""
    assert line.low is not None
    assert line.high is not None
    at = kept(line.x, [line.low, line.high], _SMALL_BAND_POINTS if small else _BAND_POINTS)
    all_x, low, high = line.x[at], line.low[at], line.high[at]
    if reading.log_y and y_range is not None:
        low = np.maximum(low, 10 ** (y_range[0] - 1))  # below zero there is no logarithm: to under the frame
    return band(all_x, low, high, faint(line.configuration.colour, _BAND), showlegend=False)


def _unit(metric: Metric, task: str) -> str:
    """What the numbers are in: the title over the chart has their name, a picture's axis both."""
    return "Percent" if metric == DEV_SCORE else metric.unit.capitalize() or metric.shown_title(task)


def _axes(chart: Chart, view: CurvesView, panel: Panel, small: bool) -> None:
    reading = view.reading
    start = view.start or (panel.x_start if reading.axis == "epoch" else 0.0)
    room = 0.01 * (panel.x_end - start)  # for the mark of an end point
    whole = float(start).is_integer() and panel.x_end.is_integer() and panel.x_end <= _MOST_TICKS
    ticks = (
        {"tickvals": list(range(int(start), int(panel.x_end) + 1))}
        if reading.axis == "epoch" and whole
        else {}
    )
    chart.layout["xaxis"] = axis(
        AXES[reading.axis], showgrid=False, range=(start - room * (start > 0), panel.x_end + room), **ticks
    )
    chart.layout["yaxis"] = axis(
        plotly_text(_unit(view.metric, panel.task)),
        type="log" if reading.log_y else "linear",
        range=panel.y_range,
        nticks=4 if small else 8,
    )
