"""Configurations side by side, seed by seed: thin lines, the mean a thick one."""

from __future__ import annotations

import plotly.graph_objects as go

from dashboard.charts.base import axis, figure
from dashboard.charts.forest import wrapped
from dashboard.theme import MUTED, TEXT
from jobs.results import ResultTable

__all__ = ["seeds_chart"]


def seeds_chart(table: ResultTable, task: str, colour: str) -> go.Figure:
    """One task's scores in percent. Where all thin lines rise together, every seed says the same."""
    rows = [row for row in table.rows if task in row.cells]
    chart = figure(300, margin={"l": 52, "r": 20, "t": 12, "b": 64})
    seeds = sorted({seed for row in rows for seed in row.cells[task].by_seed})
    places = list(range(len(rows)))
    for seed in seeds:
        values = [row.cells[task].by_seed.get(seed) for row in rows]
        chart.add_scatter(
            x=places,
            y=[None if value is None else 100 * value for value in values],
            mode="lines+markers",
            connectgaps=True,
            line={"color": MUTED, "width": 1},
            marker={"size": 5, "color": MUTED},
            hovertemplate=f"seed {seed}: %{{y:.2f}}<extra></extra>",
        )
    chart.add_scatter(
        x=places,
        y=[100 * row.cells[task].summary.mean for row in rows],
        mode="lines+markers",
        line={"color": colour, "width": 3},
        marker={"size": 9, "color": colour},
        hovertemplate="mean: %{y:.2f}<extra></extra>",
    )
    chart.update_xaxes(
        axis(
            showgrid=False,
            tickmode="array",
            tickvals=places,
            ticktext=[wrapped(row.name) for row in rows],
            range=(-0.35, len(rows) - 0.65),
        ),
        tickfont={"size": 12, "color": TEXT},
    )
    chart.update_yaxes(axis("percent", tickformat=".1f", nticks=6))
    return chart
