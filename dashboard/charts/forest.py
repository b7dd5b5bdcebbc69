"""A forest plot: differences to a reference with their intervals."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from core.studies.analysis import RARE
from dashboard.charts.base import axis, figure
from dashboard.queries.forest import Forest
from dashboard.text import plotly_text
from dashboard.theme import BORDER, MUTED, TEXT

__all__ = ["forest_chart", "wrapped"]

_LEGEND = 30
_LONG = 32
"""Letters up to which a name stands on one line."""


def forest_chart(view: Forest, colours: Mapping[str, str]) -> go.Figure:
    """Points to the reference with 95% intervals: a row per family, in it a mark per target, the mean last.

    Marks of differences that are shown (by the corrected p) are filled.
    """
    per_family = len(view.targets)
    height = 76 + _LEGEND + round(len(view.families) * max(34, 15 * per_family + 10))
    chart = figure(
        height,
        margin={"l": 8, "r": 16, "t": _LEGEND, "b": 44},
        showlegend=per_family > 1,
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": 12}},
    )
    chart.add_vline(x=0, line={"color": MUTED, "width": 1})
    for place, target in enumerate(view.targets):
        offset = 0.7 * ((place + 0.5) / per_family - 0.5)
        _add_target(chart, view, target, offset, colours.get(target, MUTED if target == RARE else TEXT))
    chart.update_xaxes(axis(f"Difference to {plotly_text(view.reference)}, points", tickformat="~g"))
    chart.update_yaxes(
        axis(
            showgrid=False,
            tickmode="array",
            tickvals=list(range(len(view.families))),
            ticktext=[wrapped(title) for title in view.families],
            range=(len(view.families) - 0.5, -0.5),
        ),
        tickfont={"size": 13, "color": TEXT},
    )
    for line in range(1, len(view.families)):
        chart.add_hline(y=line - 0.5, line={"color": BORDER, "width": 1}, layer="below")
    return chart


def wrapped(title: str) -> str:
    """Long names of configurations on two lines, parted where their middle is nearest."""
    parts = title.split(" · ")
    if len(title) <= _LONG or len(parts) < 2:
        return plotly_text(title)
    halves = [(" · ".join(parts[:place]), " · ".join(parts[place:])) for place in range(1, len(parts))]
    return "<br>".join(map(plotly_text, min(halves, key=lambda pair: abs(len(pair[0]) - len(pair[1])))))


def _add_target(chart: go.Figure, view: Forest, target: str, offset: float, colour: str) -> None:
    marks = [mark for mark in view.marks if mark.target == target]
    shape = "diamond" if target == RARE else "circle"
    chart.add_scatter(
        x=[mark.points for mark in marks],
        y=[mark.row + offset for mark in marks],
        name=plotly_text(target),
        mode="markers",
        marker={
            "size": 9,
            "symbol": [shape if mark.shown else f"{shape}-open" for mark in marks],
            "color": colour,
            "line": {"width": 1.6, "color": colour},
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [0.0 if mark.high is None else mark.high - mark.points for mark in marks],
            "arrayminus": [0.0 if mark.low is None else mark.points - mark.low for mark in marks],
            "color": colour,
            "thickness": 1.6,
            "width": 0,
        },
        text=[plotly_text(mark.told) for mark in marks],
        hovertemplate="%{text}<extra></extra>",
    )
