"""What is taken for what: a heatmap of mistakes, what is right beside the names of the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from core.evaluation.confusion import NOTHING, OTHER_WORDS
from core.wording import signed_points
from dashboard.compare.closer_views import Matrix
from dashboard.compare.study_views import Overview
from dashboard.compare.views import Delta, Sharing
from dashboard.shared.charts import axis, figure, wrapped
from dashboard.text import plotly_text
from dashboard.theme import BACKGROUND, BORDER, DIVERGING, MUTED, TEXT
from jobs.results import ResultTable

_MOST_NUMBERS = 12
_MISTAKES = ((0.0, BACKGROUND), (0.5, "#DE7A5A"), (1.0, "#A6212B"))


def confusion_chart(view: Matrix) -> go.Figure:
    """Mistakes only: the diagonal is grey, for it would drown them. Rows are what is annotated."""
    rows, columns = len(view.gold), len(view.predicted)
    cell = 34 if rows <= _MOST_NUMBERS else 22 if rows <= 24 else 15
    size = 12 if rows <= _MOST_NUMBERS else 11 if rows <= 24 else 9
    chart = figure(96 + cell * rows, margin={"l": 8, "r": 8, "t": 70, "b": 26})
    most = float(np.nanmax(np.abs(view.shares), initial=0.0)) or 1.0
    numbers = rows <= _MOST_NUMBERS
    chart.add_heatmap(
        z=np.where(np.isnan(view.shares), 0.0, np.nan),
        colorscale=[[0, BORDER], [1, BORDER]],
        showscale=False,
        hoverongaps=False,
        hoverinfo="skip",
        xgap=1,
        ygap=1,
    )
    chart.add_heatmap(
        z=view.shares,
        zmin=-most if view.signed else 0.0,
        zmax=most,
        colorscale=[list(stop) for stop in (DIVERGING if view.signed else _MISTAKES)],
        showscale=False,
        hoverongaps=False,
        customdata=[[plotly_text(text) for text in line] for line in view.told],
        hovertemplate="%{customdata}<extra></extra>",
        text=[[_number(share, view.signed) for share in line] for line in view.shares.tolist()],
        texttemplate="%{text}" if numbers else "",
        textfont={"size": 11},
        xgap=1,
        ygap=1,
    )
    chart.update_xaxes(
        axis(
            "taken for",
            showgrid=False,
            tickmode="array",
            tickvals=list(range(columns)),
            ticktext=[_name(name, missed=True) for name in view.predicted],
            range=(-0.5, columns - 0.5),
        ),
        side="top",
        tickangle=0 if columns <= 8 else -90 if columns > 24 else -45,
        tickfont={"size": size, "color": TEXT},
    )
    chart.update_yaxes(
        axis(
            showgrid=False,
            tickmode="array",
            tickvals=list(range(rows)),
            ticktext=[
                _name(name, missed=False) + _right(share, view.signed)
                for name, share in zip(view.gold, view.right, strict=True)
            ],
            range=(rows - 0.5, -0.5),
        ),
        tickfont={"size": size, "color": TEXT},
    )
    return chart


def _name(label: str, *, missed: bool) -> str:
    special = {NOTHING: "missed" if missed else "nothing there", OTHER_WORDS: "other<br>words"}
    return f"<i>{special[label]}</i>" if label in special else plotly_text(label)


def _right(share: float, signed: bool) -> str:
    if math.isnan(share):
        return ""
    told = signed_points(share / 100) if signed else f"{share:.1f}%"
    return f"  {told}"


def _number(share: float, signed: bool) -> str:
    if math.isnan(share) or abs(share) < 0.005:
        return ""
    return signed_points(share / 100) if signed else f"{share:.2f}" if share < 10 else f"{share:.1f}"


# Configurations side by side, seed by seed: thin lines, the mean a thick one.


def seeds_chart(table: ResultTable, task: str, colour: str) -> go.Figure:
    """One task's scores in percent. Where all thin lines rise together, every seed says the same."""
    rows = [row for row in table.rows if task in row.cells]
    chart = figure(300, margin={"l": 52, "r": 20, "t": 12, "b": 64})
    seeds = sorted({seed for row in rows for seed in row.cells[task].by_seed})
    places = list(range(len(rows)))
    for seed in seeds:
        values = [row.cells[task].by_seed.get(seed) for row in rows]
        chart.add_scatter(
            x=places,
            y=[None if value is None else 100 * value for value in values],
            mode="lines+markers",
            connectgaps=True,
            line={"color": MUTED, "width": 1},
            marker={"size": 5, "color": MUTED},
            hovertemplate=f"seed {seed}: %{{y:.2f}}<extra></extra>",
        )
    chart.add_scatter(
        x=places,
        y=[100 * row.cells[task].summary.mean for row in rows],
        mode="lines+markers",
        line={"color": colour, "width": 3},
        marker={"size": 9, "color": colour},
        hovertemplate="mean: %{y:.2f}<extra></extra>",
    )
    chart.update_xaxes(
        axis(
            showgrid=False,
            tickmode="array",
            tickvals=places,
            ticktext=[wrapped(row.name) for row in rows],
            range=(-0.35, len(rows) - 0.65),
        ),
        tickfont={"size": 12, "color": TEXT},
    )
    chart.update_yaxes(axis("percent", tickformat=".1f", nticks=6))
    return chart


# What sharing did, at a glance: a column per step, a line per task, a dot with its interval.


_ROW, _HEAD, _FOOT = 40, 30, 40
_GAP = 0.06
"""Between the columns, as a share of the width."""


def sharing_chart(found: Sequence[Sharing], tasks: Sequence[str], colours: Mapping[str, str]) -> go.Figure:
    """Dots in the task's colour where a change is shown (by the corrected p), else grey and open. Points."""
    titles = list(dict.fromkeys(step.title for one in found for step in one.steps))
    # Over several encoders, the name of each stands on a line of its own above its tasks.
    heads: tuple[str, ...] = ("",) if len(found) > 1 else ()
    lines = [(one, task) for one in found for task in (*heads, *tasks)]
    chart = figure(
        _HEAD + _FOOT + _ROW * len(lines),
        margin={"l": 8, "r": 8, "t": _HEAD, "b": _FOOT},
        hovermode="closest",
    )
    ends = [end for one in found for step in one.steps for delta in step.deltas for end in _ends(delta)]
    room = 0.12 * (max(ends) - min(ends) or 1.0)
    span = (min(0.0, *ends) - room, max(0.0, *ends) + room)
    width = (1 - _GAP * (len(titles) - 1)) / len(titles)
    for column, title in enumerate(titles):
        number = "" if column == 0 else str(column + 1)
        left = column * (width + _GAP)
        chart.update_layout(
            {
                f"xaxis{number}": axis(
                    "points", domain=(left, left + width), range=span, anchor=f"y{number}", nticks=5
                ),
                f"yaxis{number}": axis(
                    showgrid=False, anchor=f"x{number}", range=(len(lines) - 0.6, -0.75), tickmode="array",
                    tickvals=list(range(len(lines))), showticklabels=column == 0,
                    ticktext=[plotly_text(task) for _, task in lines],
                )
                | {"tickfont": {"size": 13, "color": TEXT}},
            }
        )  # fmt: skip
        chart.add_annotation(
            text=f"<b>{title}</b>", x=left, y=1, xref="paper", yref="paper", xanchor="left", yanchor="bottom",
            showarrow=False, font={"size": 13, "color": TEXT}, yshift=6,
        )  # fmt: skip
        chart.add_vline(x=0, line={"color": MUTED, "width": 1}, xref=f"x{number}", yref=f"y{number}")
        for row, (one, task) in enumerate(lines):
            for step in one.steps:
                for delta in step.deltas:
                    if (step.title, delta.task) == (title, task):
                        _add(chart, delta, row, number, colours.get(task, TEXT), f"{title}, {task}")
    for row, (one, task) in enumerate(lines):
        if not task:
            chart.add_annotation(
                text=plotly_text(one.block), x=0, y=row + 0.1, xref="paper", yref="y", xanchor="left",
                yanchor="middle", showarrow=False, font={"size": 12, "color": MUTED}, bgcolor=BACKGROUND,
            )  # fmt: skip
    return chart


def _ends(delta: Delta) -> tuple[float, float]:
    return (
        delta.points if delta.low is None else delta.low,
        delta.points if delta.high is None else delta.high,
    )


def _add(chart: go.Figure, delta: Delta, row: int, number: str, own: str, name: str) -> None:
    shown = delta.shown
    colour = own if shown else MUTED
    low, high = _ends(delta)
    chart.add_scatter(
        x=[delta.points],
        y=[row],
        xaxis=f"x{number}",
        yaxis=f"y{number}",
        mode="markers+text",
        cliponaxis=False,
        text=[signed_points(delta.points / 100)],
        textposition="top center",
        textfont={"size": 11, "color": TEXT if shown else MUTED},
        marker={
            "size": 9,
            "color": colour,
            "symbol": "circle" if shown else "circle-open",
            "line": {"width": 1.6, "color": colour},
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [high - delta.points],
            "arrayminus": [delta.points - low],
            "color": colour,
            "thickness": 1.6,
            "width": 0,
        },
        hovertext=[plotly_text(f"{name}: {delta.told}")],
        hovertemplate="%{hovertext}<extra></extra>",
    )


# A study's differences: families × settings of a part.


_LETTER, _WIDTH, _SLANT = 6.5, 800, 40
"""Names wider than the cells of a laptop's page, in pixels, are slanted by so many degrees."""
_MOST_STUDY_NUMBERS = 20
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
            texttemplate="%{text}" if columns <= _MOST_STUDY_NUMBERS else "",
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
