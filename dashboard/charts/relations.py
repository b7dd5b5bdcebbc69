"""Relation matrices as heat maps with fixed colours, and the line of one pair over training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.charts.base import axis, figure
from dashboard.queries.relations import Block, PairLine, RelationsView
from dashboard.text import plotly_text
from dashboard.theme import BORDER, DIVERGING, MUTED, TEXT

__all__ = ["matrix_chart", "pair_chart"]

_NUMBERS_UP_TO = 12
_NAMES_UP_TO = 90


def matrix_chart(view: RelationsView, *, height: int = 620, colour_bar: bool = True) -> go.Figure:
    """The matrix: red positive, blue negative, fixed to [−1, 1]; hatched where nothing could be learned."""
    size = len(view.matrix)
    named = size <= _NAMES_UP_TO and view.mode != "feature"
    names = [plotly_text(name) for name in view.names]
    places = np.arange(size)
    chart = figure(height, margin={"l": 8, "r": 8, "t": 8, "b": 8})
    chart.add_heatmap(
        x=places,
        y=places,
        z=view.matrix.astype(np.float32),
        customdata=None,
        zmin=-1,
        zmax=1,
        colorscale=[list(stop) for stop in DIVERGING],
        xgap=2 if size <= _NUMBERS_UP_TO else 0,
        ygap=2 if size <= _NUMBERS_UP_TO else 0,
        showscale=colour_bar,
        colorbar={
            "thickness": 10,
            "len": 0.55,
            "outlinewidth": 0,
            "tickvals": [-1, -0.5, 0, 0.5, 1],
            "ticktext": ["−1", "−0.5", "0", "0.5", "1"],
            "tickfont": {"size": 11, "color": MUTED},
        },
        hovertemplate="%{y} and %{x}<br>%{z:.3f}<extra></extra>",
        hoverongaps=False,
    )
    ticks = (
        {"tickmode": "array", "tickvals": places, "ticktext": names} if named else {"showticklabels": False}
    )
    font = {"size": 13 if size <= _NUMBERS_UP_TO else max(6, min(11, int(560 / size))), "color": TEXT}
    square = {"scaleanchor": "x", "scaleratio": 1, "constrain": "domain"}
    chart.update_xaxes(
        axis(showgrid=False, **ticks),
        tickfont=font,
        side="top",
        tickangle=0 if size <= 6 else -90,
        constrain="domain",
    )
    chart.update_yaxes(axis(showgrid=False, **ticks), tickfont=font, autorange="reversed", **square)
    if not named:
        # Hover must still say which rows meet here.
        chart.data[0].update(x=names, y=names, hovertemplate="%{y}, %{x}<br>%{z:.3f}<extra></extra>")
    if size <= _NUMBERS_UP_TO:
        _numbers(chart, view)
    if view.mode == "label":
        _task_borders(chart, view.owners)
    for block in view.impossible:
        _hatch(chart, block)
    return chart


def _numbers(chart: go.Figure, view: RelationsView) -> None:
    for row, line in enumerate(view.matrix):
        for column, value in enumerate(line):
            if _within(view.impossible, row, column):
                continue
            strong = abs(float(value)) > 0.55
            chart.add_annotation(
                x=column,
                y=row,
                text=f"{value:.2f}".replace("-", "−"),
                showarrow=False,
                font={"size": 15 if len(view.matrix) <= 6 else 11, "color": "#FFFFFF" if strong else TEXT},
            )


def _within(blocks: Sequence[Block], row: int, column: int) -> bool:
    return any(b.top <= row < b.bottom and b.left <= column < b.right for b in blocks)


def _task_borders(chart: go.Figure, owners: Sequence[tuple[str, ...]]) -> None:
    """Thin lines where the labels of one task end and those of the next begin."""
    for edge in range(1, len(owners)):
        if owners[edge] != owners[edge - 1]:
            at, line = edge - 0.5, {"color": MUTED, "width": 1}
            chart.add_shape(type="line", x0=at, x1=at, y0=-0.5, y1=len(owners) - 0.5, line=line)
            chart.add_shape(type="line", y0=at, y1=at, x0=-0.5, x1=len(owners) - 0.5, line=line)


def _hatch(chart: go.Figure, block: Block) -> None:
    """A hatched rectangle over the cells that the alignment forces to zero."""
    width, height = block.right - block.left, block.bottom - block.top
    chart.add_bar(
        x=[block.left + width / 2 - 0.5],
        y=[height],
        base=[block.top - 0.5],
        width=[width],
        marker={
            "color": "rgba(0,0,0,0)",
            "line": {"width": 0},
            "pattern": {
                "shape": "/",
                "size": 7,
                "solidity": 0.16,
                "fgcolor": MUTED,
                "bgcolor": "rgba(0,0,0,0)",
            },
        },
        hovertemplate="The alignment lets no relation arise here<extra></extra>",
    )


def pair_chart(line: PairLine, at_step: int, *, height: int = 210) -> go.Figure:
    """The correlation of one pair over training, with the step that is shown."""
    chart = figure(height, margin={"l": 40, "r": 10, "t": 8, "b": 34})
    chart.add_hline(y=0, line={"color": MUTED, "width": 1})
    chart.add_vline(x=at_step, line={"color": BORDER, "width": 6}, layer="below")
    chart.add_scatter(
        x=line.steps.astype(np.int32),
        y=line.values.astype(np.float32),
        mode="lines+markers",
        line={"color": TEXT, "width": 1.8},
        marker={"size": 4, "color": TEXT},
        hovertemplate="step %{x:,}: %{y:.3f}<extra></extra>",
    )
    chart.update_xaxes(axis("Step", showgrid=False, rangemode="tozero"))
    chart.update_yaxes(axis("", range=[-1.05, 1.05], tickvals=[-1, -0.5, 0, 0.5, 1]))
    return chart
