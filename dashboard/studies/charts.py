"""The figures of Studies: differences by setting, and F1 in a grid of simulated tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from core.evaluation.comparison import UNDECIDED
from core.figures import (
    BORDER,
    LEGEND_ON_TOP,
    MUTED,
    TEXT,
    Chart,
    Figure,
    axis,
    interval,
    named_axis,
    plotly_text,
    wrapped,
)
from core.results.figures import Forest
from dashboard.theme import DASHES, PARADIGM_COLOURS, lambda_colour, of_theme

_ENDS = ("low", "high")
_ROW, _ASIDE = 36, 0.16
"""The height of a setting, and how far two methods with intervals are from its middle."""
_OTHERS = ("square", "triangle-up", "diamond", "x")
"""The marks of methods without intervals, and so how many are drawn."""
_ROOM = 0.08
"""The share of an axis beyond the ends of intervals."""
_OF_LINES = ("circle-open", "circle", "square", "diamond", "triangle-up")
_FEW = 8
"""So many values of an axis each have a tick."""
_APART = 0.02
"""The share of an axis between the bars of lines at one value, which would else be one bar."""
GRID_PANELS: Mapping[str, str] = {
    "a": "training words of each task, two artificial tasks",
    "b": "relatedness (AMI) of two artificial tasks",
    "c": "number of artificial tasks, 2,000 words each",
}
"""What the panels of `core.transfer.grid.figure_3` have on their x axes, and what is the same in each."""


def settings_chart(view: Forest, leads: Sequence[str]) -> Figure:
    """Differences by setting and method, hollow where undecided: `leads` with intervals, others grey.

    Others are some of those that are compared in most settings, never in one alone.
    """
    counts = Counter(mark.target for mark in view.marks)
    leads = [method for method in leads if method in counts]
    others = [method for method, count in counts.most_common() if method not in leads and count > 1]
    others = others[: len(_OTHERS)]
    chart = Chart(
        76 + _ROW * len(view.rows),
        margin={"l": 8, "r": 16, "t": 32, "b": 44},
        showlegend=True,
        legend=LEGEND_ON_TOP,
    )
    chart.add_line(x=0, line={"color": MUTED, "width": 1})
    colours = dict(zip(leads, (of_theme(*PARADIGM_COLOURS["mrn"]), TEXT), strict=False))
    symbols = dict(zip(others, _OTHERS, strict=False))
    offsets = dict(zip(leads, (0.0,) if len(leads) == 1 else (-_ASIDE, _ASIDE), strict=False))
    for method in (*others, *leads):
        marks = sorted(
            (mark for mark in view.marks if mark.target == method), key=lambda mark: mark.state == UNDECIDED
        )
        colour, symbol = colours.get(method, MUTED), symbols.get(method, "circle")
        points, low, high = ([getattr(mark, name) for mark in marks] for name in ("points", *_ENDS))
        chart.add(
            "scatter",
            x=points,
            y=[mark.row + offsets.get(method, 0.0) for mark in marks],
            name=plotly_text(method),
            mode="markers",
            marker={
                "size": 10 if method in leads else 8,
                "symbol": [f"{symbol}-open" if mark.state == UNDECIDED else symbol for mark in marks],
                "color": colour,
                "line": {"width": 1.6 if method in leads else 1, "color": colour},
            },
            error_x=interval(points, low, high, colour) if method in leads else None,
            text=[plotly_text(mark.hover) for mark in marks],
            hovertemplate="%{text}<extra></extra>",
            legendrank=1 if method in leads else None,
        )
    hollow = " (hollow: undecided)" * any(mark.state == UNDECIDED for mark in view.marks)
    title = f"Points over {plotly_text(view.reference)}, mean over tasks{hollow}"
    chart.layout["xaxis"] = axis(title, tickformat="~g")
    names = [
        f"<b>{wrapped(row)}</b>" if place in view.heads else wrapped(row)
        for place, row in enumerate(view.rows)
    ]
    chart.layout["yaxis"] = named_axis(names, size=12, range=(len(names) - 0.5, -0.5))
    for line in range(1, len(names)):
        chart.add_line(y=line - 0.5, line={"color": BORDER, "width": 1}, layer="below")
    return chart.figure()


def grid_chart(points: pd.DataFrame, panel: str) -> Figure:
    """One panel of `figure_3`: means over seeds with 95% intervals, a line for each method and value."""
    chart = Chart(360, showlegend=True, legend=LEGEND_ON_TOP)
    lines = list(points.groupby("line", sort=False))
    ordered = [name for name, _ in lines if name != "STL"]  # from the smallest value to the largest
    apart = _APART * (points["x"].max() - points["x"].min())
    for place, (name, line) in enumerate(lines):
        share = ordered.index(name) / max(len(ordered) - 1, 1) if name in ordered else 0.0
        colour = lambda_colour(share) if name in ordered else of_theme(*PARADIGM_COLOURS["stl"])
        has_bars = name not in ordered[1:-1]
        # No F1 is below 0 or above 100, whatever the interval of few seeds.
        low, high = (line[end].clip(0, 100).astype(object).where(line[end].notna(), None) for end in _ENDS)
        chart.add(
            "scatter",
            x=(line["x"] + apart * (place - (len(lines) - 1) / 2)).tolist(),
            y=line["mean"].tolist(),
            name=name,
            mode="lines+markers",
            line={"color": colour, "width": 2, "dash": "solid" if name in ordered else DASHES["stl"]},
            marker={"symbol": _OF_LINES[place % len(_OF_LINES)], "size": 8, "color": colour},
            error_y=interval(line["mean"].tolist(), low.tolist(), high.tolist(), colour)
            if has_bars
            else None,
            customdata=line["seeds"].tolist(),
            hovertemplate=f"{name}: %{{y:.1f}} (%{{customdata}} seeds)<extra></extra>",
        )
    chart.layout["xaxis"] = axis(GRID_PANELS[panel], showgrid=False, **_ticks(points["x"]))
    ends = points[["mean", *_ENDS]].clip(0, 100).stack()
    room = _ROOM * (ends.max() - ends.min())
    chart.layout["yaxis"] = axis("F1 of NER, %", range=(ends.min() - room, ends.max() + room))
    return chart.figure()


def _ticks(values: pd.Series) -> dict[str, Any]:
    """A tick for each value, where these are few."""
    few = sorted(values.unique())
    return (
        {"tickmode": "array", "tickvals": few, "ticktext": [f"{value:,.4g}" for value in few]}
        if len(few) <= _FEW
        else {}
    )
