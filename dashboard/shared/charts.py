"""What figures share: quiet axes, tight margins, theme colours as CSS variables; and forest plots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from core.studies.analysis import RARE
from dashboard.text import plotly_text
from dashboard.theme import BORDER, MUTED, TEXT


def figure(height: int, **layout: Any) -> go.Figure:
    """An empty figure in the look of the laboratory."""
    return go.Figure(
        layout={
            "template": "none",
            "height": height,
            "margin": {"l": 52, "r": 16, "t": 12, "b": 40},
            "showlegend": False,
            "hovermode": "closest",
            **layout,
        }
    )


def axis(title: str = "", **settings: Any) -> dict[str, Any]:
    """An axis with its title in words."""
    return {
        "title": {"text": title, "standoff": 6, "font": {"size": 12, "color": MUTED}},
        "showline": False,
        "ticks": "",
        "showgrid": True,
        "gridwidth": 1,
        "gridcolor": BORDER,
        "zeroline": False,
        "automargin": True,
        "tickfont": {"size": 11, "color": MUTED},
        **settings,
    }


def message(chart: go.Figure, text: str) -> go.Figure:
    """The figure with a sentence in its middle, if it has no data. `text` must not come from a user."""
    font = {"color": MUTED, "size": 13}
    chart.add_annotation(text=text, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False, font=font)
    return chart


@dataclass(frozen=True)
class Mark:
    """One difference in a forest plot, in points: the row of its family, its target, its interval, the text
    under the pointer, and whether the corrected p shows a difference.
    """

    row: int
    target: str
    points: float
    low: float | None
    high: float | None
    told: str
    shown: bool


@dataclass(frozen=True)
class Forest:
    """Differences to one reference: `families` are the rows, top first, `targets` the tasks and means."""

    families: tuple[str, ...]
    targets: tuple[str, ...]
    reference: str
    marks: tuple[Mark, ...]


_LEGEND = 30
# Longer names are set on two lines.
_LONG = 32


def forest_chart(view: Forest, colours: Mapping[str, str]) -> go.Figure:
    """Differences with 95% intervals: a row per family, in it a mark per target, filled if shown."""
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
    """A configuration's name; a long one on two lines of similar length."""
    parts = title.split(" · ")
    if len(title) <= _LONG or len(parts) < 2:
        return plotly_text(title)
    halves = [(" · ".join(parts[:place]), " · ".join(parts[place:])) for place in range(1, len(parts))]
    first, second = min(halves, key=lambda pair: abs(len(pair[0]) - len(pair[1])))
    return f"{plotly_text(first)}<br>{plotly_text(second)}"


def _add_target(chart: go.Figure, view: Forest, target: str, offset: float, colour: str) -> None:
    marks = [mark for mark in view.marks if mark.target == target]
    shape = "diamond" if target == RARE else "circle"
    symbols = [shape if mark.shown else f"{shape}-open" for mark in marks]
    chart.add_scatter(
        x=[mark.points for mark in marks],
        y=[mark.row + offset for mark in marks],
        name=plotly_text(target),
        mode="markers",
        marker={"size": 9, "symbol": symbols, "color": colour, "line": {"width": 1.6, "color": colour}},
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
