"""The figures of Studies: F1 against the varied setting of a grid of simulated tasks."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from core.figures import LEGEND_ON_TOP, Chart, Figure, axis, interval
from dashboard.theme import DASHES, MARKERS, PARADIGM_COLOURS, lambda_colour, of_theme

_ENDS = ("low", "high")
_ROOM = 0.04
"""The share of an axis beyond the ends of intervals."""
_APART = 0.008
"""The share of an axis between the bars of lines at one value, which would else be one bar."""
GRID_PANELS: Mapping[str, str] = {
    "a": "words of each task, T = 2",
    "b": "AMI, T = 2",
    "c": "T, 2,000 words of each task",
}
"""What the panels of `core.transfer.grid.figure_3` have on their x axes, and what is the same in each."""


def grid_chart(points: pd.DataFrame, panel: str) -> Figure:
    """One panel of `figure_3`: means over seeds with 95% intervals, a line for each method and value."""
    chart = Chart(360, showlegend=True, legend=LEGEND_ON_TOP)
    lines = list(points.groupby("line", sort=False))
    ordered = [name for name, _ in lines if name != "STL"]  # from the smallest value to the largest
    apart = _APART * (points["x"].max() - points["x"].min())
    for place, (name, line) in enumerate(lines):
        paradigm = "mtl" if name in ordered else "stl"
        share = ordered.index(name) / max(len(ordered) - 1, 1) if name in ordered else 0.0
        colour = lambda_colour(share) if name in ordered else of_theme(*PARADIGM_COLOURS["stl"])
        # No F1 is below 0 or above 100, whatever the interval of few seeds.
        low, high = (line[end].clip(0, 100).astype(object).where(line[end].notna(), None) for end in _ENDS)
        chart.add(
            "scatter",
            x=(line["x"] + apart * (place - (len(lines) - 1) / 2)).tolist(),
            y=line["mean"].tolist(),
            name=name,
            mode="lines+markers",
            line={"color": colour, "width": 1.7, "dash": DASHES[paradigm]},
            marker={"symbol": MARKERS[paradigm], "size": 6, "color": colour},
            error_y=interval(line["mean"].tolist(), low.tolist(), high.tolist(), colour),
            customdata=line["seeds"].tolist(),
            hovertemplate=f"{name}: %{{y:.1f}} (%{{customdata}} seeds)<extra></extra>",
        )
    chart.layout["xaxis"] = axis(f"({panel}) {GRID_PANELS[panel]}", showgrid=False)
    ends = points[["mean", *_ENDS]].clip(0, 100).stack()
    room = _ROOM * (ends.max() - ends.min())
    chart.layout["yaxis"] = axis("F1 of NER, %", range=(ends.min() - room, ends.max() + room))
    return chart.figure()
