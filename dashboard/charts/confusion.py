"""What is taken for what: a heatmap of mistakes, what is right beside the names of the rows."""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go

from core.evaluation.confusion import NOTHING, OTHER_WORDS
from dashboard.charts.base import axis, figure
from dashboard.queries.compare_errors import Matrix
from dashboard.text import plotly_text, signed_points
from dashboard.theme import BACKGROUND, BORDER, DIVERGING, TEXT

__all__ = ["confusion_chart"]

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
