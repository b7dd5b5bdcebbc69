"""Charts as Plotly figures, for notebooks and pages alike. Imported where a chart is drawn.

Figures are built from plain values without Plotly's checks, which cost more than all else; tests check them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

Figure: TypeAlias = go.Figure

TEXT, MUTED, BORDER, BACKGROUND = "#31333e", "#7d858f", "#dfe2e7", "#fffffe"
"""The colours of text, of lesser text, of lines and of the page. Pages put their theme's in place."""
DIVERGING = ((0.0, "#0B4F8A"), (0.25, "#4A94C8"), (0.5, BACKGROUND), (0.75, "#DE7A5A"), (1.0, "#A6212B"))
"""Negative blue, positive red, neutral at zero."""
SERIES = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442"),
    *("#884422", "#AACC77", "#5500FF", "#AA55FF", "#5F6B73"),
)
"""Okabe and Ito's palette and five more colours that colour-blind readers tell from it and each other."""

LEGEND_ON_TOP: dict[str, Any] = {
    "orientation": "h",
    "x": 0,
    "y": 1,
    "yanchor": "bottom",
    "font": {"size": 12},
}


class Chart:
    """The traces and the layout of a figure that is being made."""

    def __init__(self, height: int, **layout: Any) -> None:
        self.data: list[dict[str, Any]] = []
        self.layout: dict[str, Any] = {
            "xaxis": {},
            "yaxis": {},
            "height": height,
            "margin": {"l": 52, "r": 16, "t": 12, "b": 40},
            "showlegend": False,
            "hovermode": "closest",
            "template": {},
            **layout,
        }

    def add(self, kind: str, **trace: Any) -> None:
        """Add a trace of that kind: scatter, bar, heatmap."""
        self.data.append({"type": kind, **trace})

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

    def add_message(self, text: str) -> None:
        """Add a sentence in the middle, where there is no data. `text` must not come from a user."""
        font = {"color": MUTED, "size": 13}
        centre = {"x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper"}
        self.layout["annotations"] = [{"text": text, **centre, "showarrow": False, "font": font}]

    def figure(self) -> Figure:
        """The figure."""
        return go.Figure(data=_known(self.data), layout=_known(self.layout), _validate=False)


def _known(value: Any) -> Any:
    """The value without the entries of its dictionaries that are None."""
    if isinstance(value, dict):
        return {name: _known(part) for name, part in value.items() if part is not None}
    return [_known(part) for part in value] if isinstance(value, list | tuple) else value


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
        "ticklabelstandoff": 4,  # the zeros of both axes stay apart
        "tickfont": {"size": 11, "color": MUTED},
        **settings,
    }


def named_axis(names: Sequence[str], size: int = 13, title: str = "", **settings: Any) -> dict[str, Any]:
    """An axis with a name at each whole number."""
    values = list(range(len(names)))
    look = {"tickmode": "array", "tickvals": values, "ticktext": list(names), "showgrid": False}
    return axis(title, **look, **settings) | {"tickfont": {"size": size, "color": TEXT}}


def interval(
    values: Sequence[float], low: Sequence[float | None], high: Sequence[float | None], colour: str
) -> dict[str, Any]:
    """Error bars from these ends; none where an end is not known."""
    ends = (
        [0.0 if end is None else abs(end - value) for value, end in zip(values, side, strict=True)]
        for side in (high, low)
    )
    arrays = dict(zip(("array", "arrayminus"), ends, strict=True))
    return {"type": "data", "symmetric": False, **arrays, "color": colour, "thickness": 1.6, "width": 0}


def band(
    x: NDArray[Any], low: NDArray[Any], high: NDArray[Any], colour: str, **settings: Any
) -> dict[str, Any]:
    """A trace from low to high without a tooltip: one filled shape per stretch without a gap."""
    known = np.isfinite(low) & np.isfinite(high)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], known.astype(np.int8), [0]])))
    xs, ys = [np.empty(0)], [np.empty(0)]
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        xs += [x[start:end], x[start:end][::-1], np.array([np.nan])]
        ys += [high[start:end], low[start:end][::-1], np.array([np.nan])]
    return {
        "x": np.concatenate(xs).astype(np.float32),
        "y": np.concatenate(ys).astype(np.float32),
        "fill": "toself",
        "fillcolor": colour,
        "mode": "lines",
        "line": {"width": 0},
        "hoverinfo": "skip",
        **settings,
    }


def kept_mark(x: float, y: float, colour: str, size: int) -> dict[str, Any]:
    """The diamond at the epoch of the kept checkpoint."""
    marker = {"symbol": "diamond", "size": size, "color": colour, "line": {"color": BACKGROUND, "width": 1.5}}
    return {"x": [x], "y": [y], "mode": "markers", "marker": marker, "hoverinfo": "skip"}


def plotly_text(text: object) -> str:
    """User text inside a figure: Plotly reads a few HTML tags and `%{…}`, so neither may survive."""
    return " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace("%{", "%\u2060{")


def curves(metrics: pd.DataFrame, title: str) -> Figure:
    """One metric over the steps (columns run, task, step, value), a line for each run and task."""
    chart = Chart(400, showlegend=True, plot_bgcolor=BACKGROUND)
    for index, ((run, task), line) in enumerate(metrics.groupby(["run", "task"], sort=False)):
        chart.add(
            "scatter",
            x=line["step"].to_numpy(),
            y=line["value"].to_numpy(dtype=np.float32),
            mode="lines" if len(line) > 30 else "lines+markers",
            name=plotly_text(f"run {run}, {task}" if task else f"run {run}"),
            line={"color": SERIES[index % len(SERIES)], "width": 1.7},
        )
    chart.layout["xaxis"] = axis("step", showgrid=False)
    chart.layout["yaxis"] = axis(plotly_text(title))
    return chart.figure()


def matrix(correlations: pd.DataFrame) -> Figure:
    """A matrix of correlations as a heatmap from −1 to 1, with its rows and columns by name."""
    names = [plotly_text(name) for name in correlations.columns]
    chart = Chart(max(260, 120 + 26 * len(names)), margin={"l": 8, "r": 8, "t": 16, "b": 8})
    chart.add(
        "heatmap",
        z=correlations.to_numpy(dtype=np.float32),
        x=names,
        y=[plotly_text(name) for name in correlations.index],
        zmin=-1,
        zmax=1,
        colorscale=[list(stop) for stop in DIVERGING],
        hovertemplate="%{y}, %{x}: %{z:.2f}<extra></extra>",
    )
    chart.layout["xaxis"] = axis(showgrid=False)
    chart.layout["yaxis"] = axis(showgrid=False, autorange="reversed")
    return chart.figure()


_LONG = 22
"""Longer names are set on two lines."""


def wrapped(title: str) -> str:
    """A name; a long one on two lines of similar length."""
    breaks = [match.start() for match in re.finditer(" [·−] ", title)]
    breaks = breaks or [match.end() for match in re.finditer("[-_./ ]", title)]
    if len(title) <= _LONG or not breaks:
        return plotly_text(title)
    middle = min(breaks, key=lambda position: abs(2 * position + 3 - len(title)))
    second = title[middle:].removeprefix(" · ").strip()
    return f"{plotly_text(title[:middle])}<br>{plotly_text(second)}"
