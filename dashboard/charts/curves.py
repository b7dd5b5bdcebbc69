"""Curves: one large chart, and one small chart per task under it over the same axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from core.training.events import TOTAL
from dashboard.charts.base import axis, figure, message
from dashboard.queries.curves import AXES, Curve, CurvesView, Metric
from dashboard.text import plotly_text
from dashboard.theme import DASHES, MARKERS, faint, ramp

__all__ = ["curve_chart", "small_multiples"]

# Lines of few points (one per epoch) show their points; dense lines do not.
_FEW_POINTS = 60


def curve_chart(
    view: CurvesView,
    colours: Mapping[str, str],
    *,
    log: bool = False,
    marked: int | None = None,
    height: int = 380,
) -> go.Figure:
    """The large chart: the whole run's curve. A line of one task has the task's colour, others their
    configuration's.
    """
    chart = figure(height)
    for curve in view.total:
        colour = colours.get(curve.task) if curve.task != TOTAL else None
        _add(chart, curve, colour or ramp(curve.configuration), marked, view)
    _axes(chart, view, log)
    if not view.total:
        message(chart, "No run has this curve for the whole; see the tasks below.")
    return chart


def small_multiples(
    view: CurvesView,
    colours: Mapping[str, str],
    *,
    log: bool = False,
    marked: int | None = None,
    height: int = 230,
) -> dict[str, go.Figure]:
    """A small chart per task, all with the same x and the same y range, so that they can be compared."""
    charts = {}
    limits = _shared_range([curve for lines in view.by_task.values() for curve in lines], log)
    for task, lines in view.by_task.items():
        chart = figure(height, margin={"l": 34, "r": 10, "t": 8, "b": 34})
        for curve in lines:
            _add(chart, curve, colours.get(task, ramp(0)), marked, view)
        _axes(chart, view, log)
        chart.update_yaxes(title_text="")
        if limits:
            chart.update_yaxes(range=limits)
        charts[task] = chart
    return charts


def _add(chart: go.Figure, curve: Curve, colour: str, marked: int | None, view: CurvesView) -> None:
    dimmed = marked is not None and curve.run_id != marked
    opacity = 0.18 if dimmed else 1.0
    number = _number_format(view.metric)
    if curve.raw_x is not None and curve.raw_y is not None and not dimmed:
        chart.add_scatter(
            x=curve.raw_x.astype(np.float32),
            y=curve.raw_y.astype(np.float32),
            mode="lines",
            line={"color": faint(colour, 0.22), "width": 1},
            hoverinfo="skip",
        )
    few = len(curve.x) <= _FEW_POINTS
    chart.add_scatter(
        x=curve.x.astype(np.float32),
        y=curve.y.astype(np.float32),
        name=plotly_text(curve.name),
        mode="lines+markers" if few else "lines",
        opacity=opacity,
        line={
            "color": colour,
            "width": 2.4 if curve.run_id == marked else 1.7,
            "dash": DASHES[curve.paradigm],
        },
        marker={
            "symbol": MARKERS[curve.paradigm],
            "size": 5,
            "color": colour,
            "line": {"width": 1.4, "color": colour},
        },
        hovertemplate=f"{plotly_text(curve.name)}<br>{AXES[view.axis].lower()} %{{x:,.3~f}}: "
        f"%{{y:{number}}}<extra></extra>",
    )


def _number_format(metric: Metric) -> str:
    return ".2f" if metric.percent else ".4~g"


def _axes(chart: go.Figure, view: CurvesView, log: bool) -> None:
    unit = ", %" if view.metric.percent else ""
    chart.update_xaxes(axis(AXES[view.axis], showgrid=False, rangemode="tozero"))
    chart.update_yaxes(axis(f"{view.metric.title}{unit}", type="log" if log else "linear"))


def _shared_range(curves: Sequence[Curve], log: bool) -> tuple[float, float] | None:
    """The range of all lines with a little room; None where there is nothing finite to show."""
    values = np.concatenate([curve.y for curve in curves]) if curves else np.array([])
    values = values[np.isfinite(values) & (values > 0 if log else np.ones(len(values), dtype=bool))]
    if not len(values):
        return None
    low, high = float(values.min()), float(values.max())
    if log:
        low, high = float(np.log10(low)), float(np.log10(high))
    room = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    return low - room, high + room
