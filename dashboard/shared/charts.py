"""Figures as Plotly's script reads them, and what they share: quiet axes, tight margins, theme colours as CSS
variables.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from dashboard.theme import BORDER, MUTED


class Figure:
    """Traces and a layout, of plain values and arrays.

    Plotly's Python package would check each value, which took most of the server's time for a page with
    charts (docs/adr/0010-what-pages-cost.md). The tests check these figures with it.
    """

    def __init__(self, **layout: Any) -> None:
        self.data: list[dict[str, Any]] = []
        self.layout: dict[str, Any] = {"xaxis": {}, "yaxis": {}, **layout}

    def add(self, kind: str, **trace: Any) -> None:
        """Add a trace of that kind: scatter, bar, heatmap."""
        self.data.append({"type": kind, **trace})

    def add_annotation(self, **settings: Any) -> None:
        """Add a text."""
        self.layout.setdefault("annotations", []).append(settings)

    def add_line(
        self, *, x: float | None = None, y: float | None = None, line: dict[str, Any], **settings: Any
    ) -> None:
        """Add a line through the whole chart, upright at x or level at y."""
        ends = (
            {"x0": 0, "x1": 1, "xref": "x domain", "y0": y, "y1": y, "yref": "y"}
            if x is None
            else {"x0": x, "x1": x, "xref": "x", "y0": 0, "y1": 1, "yref": "y domain"}
        )
        self.layout.setdefault("shapes", []).append({"type": "line", **ends, "line": line, **settings})

    def as_json(self) -> dict[str, Any]:
        """What JSON can hold; an array of numbers as its bytes, as Plotly's script reads them."""
        return {"data": _plain(self.data), "layout": _plain(self.layout)}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        numbers = value.astype(np.float64) if value.dtype in (np.int64, np.uint64) else value
        encoded = {
            "dtype": numbers.dtype.newbyteorder("<").str[1:],
            "bdata": base64.b64encode(numbers.astype(numbers.dtype.newbyteorder("<")).tobytes()).decode(),
        }
        return encoded | ({"shape": ", ".join(map(str, value.shape))} if value.ndim > 1 else {})
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items() if part is not None}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def figure(height: int, **layout: Any) -> Figure:
    """An empty figure in the look of the laboratory."""
    return Figure(
        **{
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


def message(chart: Figure, text: str) -> Figure:
    """The figure with a sentence in its middle, if it has no data. `text` must not come from a user."""
    font = {"color": MUTED, "size": 13}
    chart.add_annotation(text=text, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False, font=font)
    return chart
