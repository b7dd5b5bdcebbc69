"""How the numbers of a corpus are spread, as data and as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from core.corpora.types import Split
from core.figures import Chart, Figure, axis
from dashboard.theme import TEXT

_BINS = 10


@dataclass(frozen=True)
class Spread:
    """The numbers of a split: the ends, mean and SD, and the share between each two of the `edges`, which are
    the same for all splits.
    """

    split: str
    count: int
    low: float
    high: float
    mean: float
    sd: float
    edges: tuple[float, ...]
    shares: tuple[float, ...]


def number_spreads(counted: Mapping[Split, Mapping[str, int]]) -> list[Spread]:
    """The spread of each split's numbers, from how often each number stands there."""
    columns = {
        split: (np.array([float(text) for text in counts]), np.array(list(counts.values())))
        for split, counts in counted.items()
        if counts
    }
    every = np.concatenate([values for values, _ in columns.values()])
    edges = np.histogram_bin_edges(every, bins=_BINS)
    spreads = []
    for split, (values, times) in columns.items():
        mean = float(np.average(values, weights=times))
        sd = float(np.sqrt(np.average((values - mean) ** 2, weights=times)))
        shares = np.histogram(values, bins=edges, weights=times)[0] / times.sum()
        ends = float(values.min()), float(values.max())
        spreads.append(
            Spread(split, int(times.sum()), *ends, mean, sd, tuple(edges.tolist()), tuple(shares.tolist()))
        )
    return spreads


def spread_chart(spreads: Sequence[Spread], colour: str) -> Figure:
    """The share of each split's numbers between two edges: bars of training, lines of the others."""
    chart = Chart(200, margin={"l": 44, "r": 8, "t": 8, "b": 36}, bargap=0.08, showlegend=True)
    chart.layout["legend"] = {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.0, "yanchor": "bottom"}
    for spread, dash in zip(spreads, ("solid", "dash", "dot"), strict=False):
        middles = (np.array(spread.edges[1:]) + spread.edges[:-1]) / 2
        ranges = [f"{a:g} to {b:g}" for a, b in pairwise(round(edge, 3) for edge in spread.edges)]
        shared: dict[str, Any] = {
            "x": middles,
            "y": [100 * share for share in spread.shares],
            "name": spread.split.capitalize(),
            "text": ranges,
            "hovertemplate": f"{spread.split}, %{{text}}: %{{y:.1f}}%<extra></extra>",
        }
        if spread.split == "train":
            chart.add("bar", marker={"color": colour}, textposition="none", **shared)
        else:
            chart.add("scatter", mode="lines", line={"color": TEXT, "width": 1.5, "dash": dash}, **shared)
    chart.layout["xaxis"] = axis("", showgrid=False, nticks=12)
    chart.layout["yaxis"] = axis("% of a split", nticks=4, rangemode="tozero")
    return chart.figure()
