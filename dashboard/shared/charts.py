"""What figures share: quiet axes, tight margins, theme colours as CSS variables."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from dashboard.theme import BORDER, MUTED


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
