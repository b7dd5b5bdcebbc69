"""What sharing did, at a glance: a column per step, a line per task, a dot with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from dashboard.charts.base import axis, figure
from dashboard.queries.compare_sharing import Delta, Sharing
from dashboard.text import plotly_text, signed_points
from dashboard.theme import BACKGROUND, MUTED, TEXT

__all__ = ["sharing_chart"]

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
