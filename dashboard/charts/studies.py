"""A study's differences: a forest for one setting, families × settings for a part."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from core.studies.analysis import RARE
from dashboard.charts.base import axis, figure
from dashboard.queries.studies import Forest, Overview
from dashboard.text import plotly_text, signed_points
from dashboard.theme import BORDER, DIVERGING, MUTED, TEXT

__all__ = ["forest_chart", "overview_chart"]

_LEGEND = 30
_LETTER, _WIDTH, _SLANT = 6.5, 800, 40
"""Names wider than the cells of a laptop's page, in pixels, are slanted by so many degrees."""
_MOST_NUMBERS = 20
"""Settings beside each other up to which a cell has room for its number."""


def forest_chart(view: Forest, colours: Mapping[str, str]) -> go.Figure:
    """Points to the reference with 95% intervals: a row per family, in it a mark per target, the mean last.

    Marks whose interval leaves zero out are filled.
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
            ticktext=[plotly_text(title) for title in view.families],
            range=(len(view.families) - 0.5, -0.5),
        ),
        tickfont={"size": 13, "color": TEXT},
    )
    for line in range(1, len(view.families)):
        chart.add_hline(y=line - 0.5, line={"color": BORDER, "width": 1}, layer="below")
    return chart


def _add_target(chart: go.Figure, view: Forest, target: str, offset: float, colour: str) -> None:
    marks = [mark for mark in view.marks if mark.target == target]
    shape = "diamond" if target == RARE else "circle"
    shown = [mark.low is not None and mark.high is not None and mark.low * mark.high > 0 for mark in marks]
    chart.add_scatter(
        x=[mark.points for mark in marks],
        y=[mark.row + offset for mark in marks],
        name=plotly_text(target),
        mode="markers",
        marker={
            "size": 9,
            "symbol": [shape if one else f"{shape}-open" for one in shown],
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


def overview_chart(view: Overview) -> go.Figure:
    """Red where a family helps, blue where it hurts, grey where nothing is shown, empty where all is open."""
    rows, columns = len(view.families), len(view.settings)
    longest = max(map(len, view.settings), default=0)
    slanted = _LETTER * longest * columns > _WIDTH
    head = 28 + (round(_LETTER * longest * math.sin(math.radians(_SLANT))) if slanted else 0)
    tail = round(_LETTER * len(view.settings[-1])) if slanted else 8
    chart = figure(28 + head + 34 * rows, margin={"l": 8, "r": tail, "t": head, "b": 8})
    most = max((abs(cell.points) for cell in view.cells.values() if cell.shown), default=1.0)
    places: dict[str, Any] = {
        "x": list(range(columns)),
        "y": list(range(rows)),
        "xgap": 2,
        "ygap": 2,
        "showscale": False,
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    for shown, scale in ((True, [list(stop) for stop in DIVERGING]), (False, [[0, BORDER], [1, BORDER]])):
        cells = {place: cell for place, cell in view.cells.items() if cell.shown is shown}
        grid = [[cells.get((row, column)) for column in range(columns)] for row in range(rows)]
        chart.add_heatmap(
            z=[[None if cell is None else cell.points for cell in line] for line in grid],
            zmin=-most,
            zmax=most,
            colorscale=scale,
            customdata=[["" if cell is None else plotly_text(cell.told) for cell in line] for line in grid],
            text=[
                ["" if cell is None else signed_points(cell.points / 100) for cell in line] for line in grid
            ],
            texttemplate="%{text}" if columns <= _MOST_NUMBERS else "",
            textfont={"size": 12} | ({} if shown else {"color": MUTED}),
            hoverongaps=False,
            **places,
        )
    shared: dict[str, Any] = {"showgrid": False, "tickmode": "array"}
    chart.update_xaxes(
        axis(**shared, tickvals=places["x"], ticktext=[plotly_text(name) for name in view.settings]),
        side="top",
        tickangle=-_SLANT if slanted else 0,
        ticklabeloverflow="allow",
        range=(-0.5, columns - 0.5),
    )
    chart.update_yaxes(
        axis(**shared, tickvals=places["y"], ticktext=[plotly_text(name) for name in view.families]),
        tickfont={"size": 13, "color": TEXT},
        range=(rows - 0.5, -0.5),
    )
    return chart
