"""The figures of Compare: forest plots, mistakes, scores by seed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core.evaluation.mistakes import label_name
from core.figures import Chart, Figure, axis, named_axis, plotly_text, wrapped
from core.results.table import ResultTable
from core.tasks.confusion import NOTHING, OTHER_WORDS
from dashboard.compare.mistake_views import Guesses, Matrix
from dashboard.theme import BACKGROUND, BORDER, MUTED, faint
from jobs.reports.parts import number_text

_MOST_NUMBERS, _LONG_NAME = 12, 30
_MISTAKES = ((0.0, BACKGROUND), (0.5, "#DE7A5A"), (1.0, "#A6212B"))
_GREY = [[0, BORDER], [1, BORDER]]


def confusion_chart(view: Matrix) -> Figure:
    """Mistakes only: the diagonal is grey, since right predictions would dominate. Rows are gold labels."""
    rows, columns = len(view.gold), len(view.predicted)
    cell, size = (34, 12) if rows <= _MOST_NUMBERS else (22, 11) if rows <= 24 else (15, 9)
    down = [
        _name(name, is_gold=True) + ("" if math.isnan(share) else f"  {share:.1f}%")
        for name, share in zip(view.gold, view.right, strict=True)
    ]
    # The browser leaves names out by the room that this margin leaves them.
    left = 8 + round(0.55 * size * min(max(map(len, down), default=0), _LONG_NAME))
    chart = Chart(96 + cell * rows, margin={"l": left, "r": 8, "t": 70, "b": 26})
    most = float(np.nanmax(view.shares, initial=0.0)) or 1.0
    shared: dict[str, Any] = {"showscale": False, "hoverongaps": False, "xgap": 1, "ygap": 1}
    diagonal = np.where(np.isnan(view.shares), 0.0, np.nan)
    chart.add("heatmap", z=diagonal, colorscale=_GREY, hoverinfo="skip", **shared)
    chart.add(
        "heatmap",
        z=view.shares,
        zmin=0.0,
        zmax=most,
        colorscale=[list(stop) for stop in _MISTAKES],
        customdata=[[plotly_text(words) for words in line] for line in view.words],
        hovertemplate="%{customdata}<extra></extra>",
        text=[[_number(share) for share in line] for line in view.shares.tolist()],
        texttemplate="%{text}" if rows <= _MOST_NUMBERS else "",
        textfont={"size": 11},
        **shared,
    )
    across = [_name(name, is_gold=False) for name in view.predicted]
    angle = 0 if columns <= 8 else -90 if columns > 24 else -45
    chart.layout["xaxis"] = named_axis(
        across, size, "predicted", range=(-0.5, columns - 0.5), side="top", tickangle=angle
    )
    chart.layout["yaxis"] = named_axis(down, size, range=(rows - 0.5, -0.5))
    return chart.figure()


def _name(label: str, *, is_gold: bool) -> str:
    if label in (NOTHING, OTHER_WORDS):
        return f"<i>{label_name(label, is_gold=is_gold).replace('other ', 'other<br>')}</i>"
    return plotly_text(label)


def _number(share: float) -> str:
    if math.isnan(share) or share < 0.005:
        return ""
    return f"{share:.2f}" if share < 10 else f"{share:.1f}"


def deviation_chart(side: Guesses, name: str, colour: str) -> Figure:
    """Predicted numbers against the annotated ones, with the line where both are the same."""
    chart = Chart(460, margin={"l": 52, "r": 16, "t": 12, "b": 44})
    low, high = (
        float(end([end(side.gold, initial=0.0), end(side.mean, initial=0.0)])) for end in (np.min, np.max)
    )
    room = 0.04 * (high - low or 1.0)
    ends = [low - room, high + room]
    chart.add(
        "scatter",
        x=ends,
        y=ends,
        mode="lines",
        line={"color": MUTED, "width": 1, "dash": "dot"},
        hoverinfo="skip",
    )
    chart.add(
        "scatter",
        x=side.gold,
        y=side.mean.round(4),
        mode="markers",
        marker={"size": 6, "color": faint(colour, 0.65)},
        name=plotly_text(name),
        text=[
            f"annotated {number_text(gold, 'g')}, predicted {number_text(mean, 'z.2f')}"
            for gold, mean in zip(side.gold, side.mean.tolist(), strict=True)
        ],
        hovertemplate="%{text}<extra></extra>",
    )
    chart.layout["xaxis"] = axis("annotated", range=ends, nticks=8)
    chart.layout["yaxis"] = axis("predicted", range=ends, nticks=8)
    return chart.figure()


def seeds_chart(table: ResultTable, task: str, colour: str) -> Figure:
    """One task's scores in percent by configuration: a thin line per seed, the mean a thick one."""
    rows = [row for row in table.rows if task in row.cells]
    chart = Chart(300, margin={"l": 52, "r": 20, "t": 12, "b": 44})
    for seed in sorted({seed for row in rows for seed in row.cells[task].by_seed}):
        scores = [row.cells[task].by_seed.get(seed) for row in rows]
        chart.add(
            "scatter",
            y=[None if score is None else 100 * score for score in scores],
            mode="lines+markers",
            connectgaps=True,
            line={"color": MUTED, "width": 1},
            marker={"size": 5, "color": MUTED},
            text=["" if score is None else number_text(100 * score, "z.2f") for score in scores],
            hovertemplate=f"seed {seed}: %{{text}}<extra></extra>",
        )
    means = [100 * row.cells[task].summary.mean for row in rows]
    chart.add(
        "scatter",
        y=means,
        text=[number_text(mean, "z.2f") for mean in means],
        mode="lines+markers",
        line={"color": colour, "width": 3},
        marker={"size": 9, "color": colour},
        hovertemplate="mean: %{text}<extra></extra>",
    )
    for trace in chart.data:
        trace["x"] = list(range(len(rows)))
    chart.layout["xaxis"] = named_axis(
        [wrapped(row.name) for row in rows], 12, range=(-0.35, len(rows) - 0.65)
    )
    chart.layout["yaxis"] = axis("percent", tickformat=".1f", nticks=6)
    return chart.figure()
