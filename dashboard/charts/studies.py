"""A study's differences: families × settings of a part."""

from __future__ import annotations

import math
from typing import Any

import plotly.graph_objects as go

from dashboard.charts.base import axis, figure
from dashboard.queries.studies import Overview
from dashboard.text import plotly_text, signed_points
from dashboard.theme import BORDER, DIVERGING, MUTED, TEXT

__all__ = ["overview_chart"]

_LETTER, _WIDTH, _SLANT = 6.5, 800, 40
"""Names wider than the cells of a laptop's page, in pixels, are slanted by so many degrees."""
_MOST_NUMBERS = 20
"""Settings beside each other up to which a cell has room for its number."""


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
