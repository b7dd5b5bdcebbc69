"""The line of a pair over training, and planted beside learned relatedness. Matrices: charts/matrix.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.charts.base import axis, figure
from dashboard.queries.relation_numbers import Planted
from dashboard.queries.relations_pairs import PairLine
from dashboard.text import plotly_text
from dashboard.theme import BORDER, MUTED, TEXT, faint, ramp

__all__ = ["pair_chart", "planted_chart"]

_NAMED_UP_TO = 12
_SEED = "#8A939B"


def pair_chart(
    lines: Sequence[PairLine], at: int, *, by_share: bool = False, mean: bool = False, height: int = 220
) -> go.Figure:
    """The correlation of one pair over training, a line per run, with the moment that is shown.

    `by_share`: over the share of training, for runs of other steps. `mean`: the runs are seeds, thin, with
    their mean, thick, and one SD to either side.
    """
    several = len(lines) > 1
    chart = figure(height, margin={"l": 40, "r": 10, "t": 24 if several else 8, "b": 34})
    xs = [np.round(100 * line.shares, 1) if by_share else line.steps for line in lines]
    chart.add_hline(y=0, line={"color": MUTED, "width": 1})
    chart.add_vline(x=float(xs[0][at]), line={"color": BORDER, "width": 6}, layer="below")
    unit = "%{x}% of training" if by_share else "step %{x:,}"
    if mean and several:
        _band(chart, xs[0], np.stack([line.values for line in lines]), unit)
    for place, (line, x) in enumerate(zip(lines, xs, strict=True)):
        colour = MUTED if mean and several else ramp(place) if several else TEXT
        name = f"run {line.run_id}, seed {line.seed}"
        chart.add_scatter(
            x=x.astype(np.float32),
            y=line.values.astype(np.float32),
            mode="lines" if mean and several else "lines+markers",
            name="each seed" if mean else name,
            showlegend=not mean or place == 0,
            line={"color": colour, "width": 1 if mean and several else 1.8},
            marker={"size": 4, "color": colour},
            hovertemplate=f"{name}, {unit}: %{{y:.3f}}<extra></extra>",
        )
    chart.update_xaxes(
        axis("Share of training, %" if by_share else "Step", showgrid=False, rangemode="tozero")
    )
    chart.update_yaxes(axis("", range=[-1.05, 1.05], tickvals=[-1, -0.5, 0, 0.5, 1]))
    if several:
        legend = {
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "font": {"size": 11, "color": MUTED},
        }
        chart.update_layout(showlegend=True, legend=legend)
    return chart


def _band(chart: go.Figure, x: np.ndarray, values: np.ndarray, unit: str) -> None:
    mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
    there = np.concatenate([x, x[::-1]]).astype(np.float32)
    edges = np.concatenate([mean + spread, (mean - spread)[::-1]]).clip(-1, 1).astype(np.float32)
    chart.add_scatter(
        x=there,
        y=edges,
        fill="toself",
        fillcolor=faint(_SEED, 0.25),
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
        name="± 1 SD",
    )
    chart.add_scatter(
        x=x.astype(np.float32),
        y=mean.astype(np.float32),
        customdata=spread.astype(np.float32),
        mode="lines",
        name=f"mean of {len(values)} seeds",
        line={"color": TEXT, "width": 3},
        hovertemplate=f"mean, {unit}: %{{y:.3f}} ± %{{customdata:.3f}}<extra></extra>",
    )


def planted_chart(planted: Planted, colours: Mapping[str, str], *, height: int = 300) -> go.Figure:
    """Learned correlation with the real task over planted relatedness: a point in each simulated task's
    colour, named where there is room.
    """
    chart = figure(height, margin={"l": 52, "r": 16, "t": 16, "b": 44})
    chart.add_hline(y=0, line={"color": MUTED, "width": 1})
    pairs = planted.pairs
    names = [plotly_text(pair.task) for pair in pairs]
    chart.add_scatter(
        x=np.array([pair.ami for pair in pairs], dtype=np.float32),
        y=np.array([pair.learned for pair in pairs], dtype=np.float32),
        mode="markers+text" if len(pairs) <= _NAMED_UP_TO else "markers",
        text=names,
        textposition="top center",
        textfont={"size": 12, "color": TEXT},
        marker={"size": 10, "color": [colours.get(pair.task, TEXT) for pair in pairs]},
        cliponaxis=False,
        hovertemplate="%{text}: planted %{x:.3f}, learned %{y:.3f}<extra></extra>",
    )
    lowest = min((pair.learned for pair in pairs), default=0.0)
    chart.update_xaxes(axis("Planted: adjusted mutual information", range=[-0.03, 1.03]))
    chart.update_yaxes(axis("Learned correlation", range=[min(-0.12, 1.15 * lowest), 1.08]))
    return chart
