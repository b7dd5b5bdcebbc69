"""The figures of Studies: F1 against the varied setting of a grid of simulated tasks."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from core.figures import LEGEND_ON_TOP, Chart, Figure, axis, interval
from dashboard.theme import DASHES, MARKERS, PARADIGM_COLOURS, lambda_colour, of_theme

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
    for name, line in lines:
        paradigm = "mtl" if name in ordered else "stl"
        share = ordered.index(name) / max(len(ordered) - 1, 1) if name in ordered else 0.0
        colour = lambda_colour(share) if name in ordered else of_theme(*PARADIGM_COLOURS["stl"])
        low, high = (line[end].astype(object).where(line[end].notna(), None) for end in ("low", "high"))
        chart.add(
            "scatter",
            x=line["x"].tolist(),
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
    chart.layout["yaxis"] = axis("F1 of NER, %")
    return chart.figure()
