"""Relation matrices as heat maps with fixed colours, and the line of one pair over training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from core.mrn.rows import Block
from dashboard.charts.base import axis, figure
from dashboard.queries.relation_numbers import Planted
from dashboard.queries.relations import PairLine, RelationsView
from dashboard.text import plotly_text
from dashboard.theme import BORDER, DIVERGING, MUTED, TEXT

__all__ = ["matrix_chart", "pair_chart", "planted_chart"]

_NUMBERS_UP_TO = 12
# Pixels of a letter in a block's name, and of a matrix on a small screen.
_LETTER = 7
_SMALLEST = 400


def matrix_chart(
    view: RelationsView, colours: Mapping[str, str] | None = None, *, height: int = 640
) -> go.Figure:
    """The matrix: red positive, blue negative, fixed to [−1, 1]; hatched where nothing can be learned.

    Labels are written short, with their task's name in its colour beside each block; hover names both rows.
    """
    size = len(view.matrix)
    places = np.arange(size)
    gap = 2 if size <= _NUMBERS_UP_TO else 0
    chart = figure(height, margin={"l": 8, "r": 8, "t": 8, "b": 48}, barmode="overlay")
    chart.add_heatmap(
        x=places,
        y=places,
        z=view.matrix.astype(np.float32),
        zmin=-1,
        zmax=1,
        colorscale=[list(stop) for stop in DIVERGING],
        xgap=gap,
        ygap=gap,
        colorbar={
            "orientation": "h",
            "thickness": 9,
            "len": 0.45,
            "x": 0,
            "xanchor": "left",
            "y": 0,
            "yanchor": "top",
            "ypad": 14,
            "outlinewidth": 0,
            "tickvals": [-1, -0.5, 0, 0.5, 1],
            "ticktext": ["−1", "−0.5", "0", "0.5", "1"],
            "tickfont": {"size": 11, "color": MUTED},
        },
        hovertemplate="%{y} and %{x}<br>%{z:.3f}<extra></extra>",
    )
    names = [plotly_text(name) for name in view.names]
    shared: dict[str, Any] = {"showgrid": False, "tickmode": "array", "tickvals": places, "ticktext": names}
    if view.mode == "feature":
        shared["showticklabels"] = False
    tickfont = {"size": 14 if size <= _NUMBERS_UP_TO else 8, "color": TEXT}
    upright = 0 if size <= 6 else -90
    chart.update_xaxes(axis(**shared), tickfont=tickfont, side="top", tickangle=upright)
    chart.update_xaxes(range=(-0.5, size - 0.5), constrain="domain", showspikes=False)
    chart.update_yaxes(axis(**shared), tickfont=tickfont, range=(size - 0.5, -0.5))
    chart.update_yaxes(scaleanchor="x", scaleratio=1, constrain="domain", constraintoward="top")
    # Cells near zero are as white as the page; the frame says where the matrix ends.
    frame = {"x0": -0.5, "x1": size - 0.5, "y0": -0.5, "y1": size - 0.5}
    chart.add_shape(type="rect", **frame, line={"color": BORDER, "width": 1})
    if size <= _NUMBERS_UP_TO:
        _numbers(chart, view)
    if view.mode == "label":
        _name_blocks(chart, view, names, colours or {})
    for block in view.impossible:
        _hatch(chart, block)
    return chart


def _name_blocks(
    chart: go.Figure, view: RelationsView, names: Sequence[str], colours: Mapping[str, str]
) -> None:
    """Short tick names, a border and the task's name for each block of labels; full names on hover."""
    chart.data[0].update(
        customdata=[[f"{row} and {column}" for column in names] for row in names],
        hovertemplate="%{customdata}<br>%{z:.3f}<extra></extra>",
    )
    short = [
        name.partition(":")[2] or name if len(owners) == 1 else name
        for name, owners in zip(names, view.owners, strict=True)
    ]
    # The chart component fits the tick names to the cells, which only the browser knows the size of.
    chart.update_layout(meta={"rows": len(names)}, margin={"l": 76, "t": 76})
    chart.update_xaxes(ticktext=short, automargin=False)
    chart.update_yaxes(ticktext=short, automargin=False)
    for top, bottom, owners in view.stretches:
        middle = (top + bottom - 1) / 2
        name = " + ".join(owners) if len(owners) <= 2 else f"{len(owners)} tasks"
        font = {"size": 13, "color": colours.get(owners[0], TEXT) if len(owners) == 1 else TEXT}
        shared = {"text": f"<b>{plotly_text(name)}</b>", "showarrow": False, "font": font}
        if len(name) * _LETTER <= (bottom - top) / len(names) * _SMALLEST:
            chart.add_annotation(x=middle, xref="x", y=1, yref="y domain", yshift=62, **shared)
            chart.add_annotation(
                y=middle, yref="y", x=0, xref="x domain", xshift=-62, textangle=-90, **shared
            )
        if top:
            line = {"color": MUTED, "width": 1}
            chart.add_shape(type="line", x0=top - 0.5, x1=top - 0.5, y0=-0.5, y1=len(names) - 0.5, line=line)
            chart.add_shape(type="line", y0=top - 0.5, y1=top - 0.5, x0=-0.5, x1=len(names) - 0.5, line=line)


def _numbers(chart: go.Figure, view: RelationsView) -> None:
    """Each value in its cell, in black or white as the cell's colour wants it (Plotly's choice)."""
    text = [
        [
            "" if _within(view.impossible, row, column) else f"{value:z.2f}".replace("-", "−")
            for column, value in enumerate(line)
        ]
        for row, line in enumerate(view.matrix)
    ]
    size = 15 if len(view.matrix) <= 6 else 11
    chart.data[0].update(text=text, texttemplate="%{text}", textfont={"size": size})


def _within(blocks: Sequence[Block], row: int, column: int) -> bool:
    return any(b.top <= row < b.bottom and b.left <= column < b.right for b in blocks)


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


def planted_chart(planted: Planted, colours: Mapping[str, str], *, height: int = 300) -> go.Figure:
    """Learned correlation with the real task over planted relatedness: a point in each simulated task's
    colour, named where there is room.
    """
    chart = figure(height, margin={"l": 52, "r": 16, "t": 16, "b": 44})
    chart.add_hline(y=0, line={"color": MUTED, "width": 1})
    pairs = planted.pairs
    names = [plotly_text(pair.task) for pair in pairs]
    chart.add_scatter(
        x=np.array([pair.ami for pair in pairs], dtype=np.float32),
        y=np.array([pair.learned for pair in pairs], dtype=np.float32),
        mode="markers+text" if len(pairs) <= _NUMBERS_UP_TO else "markers",
        text=names,
        textposition="top center",
        textfont={"size": 12, "color": TEXT},
        marker={"size": 10, "color": [colours.get(pair.task, TEXT) for pair in pairs]},
        cliponaxis=False,
        hovertemplate="%{text}: planted %{x:.3f}, learned %{y:.3f}<extra></extra>",
    )
    lowest = min((pair.learned for pair in pairs), default=0.0)
    chart.update_xaxes(axis("Planted: adjusted mutual information", range=[-0.03, 1.03]))
    chart.update_yaxes(axis("Learned correlation", range=[min(-0.12, 1.15 * lowest), 1.08]))
    return chart
