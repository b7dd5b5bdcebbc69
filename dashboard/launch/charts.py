"""How the numbers of a corpus are spread."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.corpora.types import Split
from core.figures import Chart, Figure, axis
from dashboard.theme import TEXT

_BINS = 10


def numbers_by_split(counted: Mapping[Split, Mapping[str, int]]) -> dict[str, NDArray[np.float64]]:
    """The numbers of each split, repeated by their counts; splits without any are left out."""
    return {
        split: np.repeat(np.array(list(counts), dtype=float), list(counts.values()))
        for split, counts in counted.items()
        if counts
    }


def spread_chart(numbers: Mapping[str, NDArray[np.float64]], colour: str) -> Figure:
    """The share of a split's numbers in each tenth of their range: bars of training, lines of the others."""
    chart = Chart(200, margin={"l": 44, "r": 8, "t": 8, "b": 36}, bargap=0.08, showlegend=True)
    chart.layout["legend"] = {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.0, "yanchor": "bottom"}
    edges = np.histogram_bin_edges(np.concatenate(list(numbers.values())), bins=_BINS)
    ranges = [f"{a:g} to {b:g}" for a, b in pairwise(edges.round(3).tolist())]
    for (split, values), dash in zip(numbers.items(), ("solid", "dash", "dot"), strict=False):
        shared: dict[str, Any] = {
            "x": (edges[1:] + edges[:-1]) / 2,
            "y": 100 * np.histogram(values, bins=edges)[0] / len(values),
            "name": split.capitalize(),
            "text": ranges,
            "hovertemplate": f"{split}, %{{text}}: %{{y:.1f}}%<extra></extra>",
        }
        if split == "train":
            chart.add("bar", marker={"color": colour}, textposition="none", **shared)
        else:
            chart.add("scatter", mode="lines", line={"color": TEXT, "width": 1.5, "dash": dash}, **shared)
    chart.layout["xaxis"] = axis("", showgrid=False, nticks=12)
    chart.layout["yaxis"] = axis("% of a split", nticks=4, rangemode="tozero")
    return chart.figure()
