"""The charts of the Curves page and the table that is their legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from core.store.records import Run
from core.store.states import RunState
from dashboard import resources
from dashboard.charts import curve_chart, small_multiples
from dashboard.components import chart
from dashboard.panels.run_table import state_text
from dashboard.queries.curves import CurvesView, Metric, curves, legend, metric_keys
from dashboard.states import empty
from dashboard.text import escape
from dashboard.theme import colours

__all__ = ["Settings", "curve_charts"]

_LEGEND = "curves_legend"


@dataclass(frozen=True)
class Settings:
    """What the controls above the charts say."""

    metric: Metric
    axis: str
    log: bool
    smoothing: float


def curve_charts(runs: Sequence[Run], settings: Settings) -> None:
    """One large chart, its legend as a table one can click, a small chart per task."""
    metric = settings.metric
    laboratory = resources.store()
    keys = metric_keys(metric, laboratory.metric_keys([run.id for run in runs]))
    tasks = resources.task_order()
    view = curves(metric, settings.axis, settings.smoothing, runs, resources.curve_series(runs, keys), tasks)
    if view.empty:
        waiting = any(run.state in (RunState.QUEUED, RunState.RUNNING) for run in runs)
        words = (
            "The first points come when a worker has read the data, within seconds of its start."
            if waiting
            else "These runs ended before they had this curve. Choose another curve or other runs."
        )
        empty(f"No {metric.title.lower()} yet", words)
        return
    marked = _marked(runs)
    colour = colours(tasks)
    revision = f"{metric.split} {metric.name} {settings.axis} {settings.log}"
    if view.total:
        st.markdown(
            f"**{metric.title}**, {metric.total.lower() if metric.total != metric.title else 'whole run'}"
        )
        chart(
            curve_chart(view, colour, log=settings.log, marked=marked),
            key="curve_total",
            alt=f"{metric.title} of {len(runs)} runs over training",
            revision=revision,
        )
    _small(view, colour, settings, marked, revision)
    _legend(view, runs)


def _small(
    view: CurvesView, colour: dict[str, str], settings: Settings, marked: int | None, revision: str
) -> None:
    charts = small_multiples(view, colour, log=settings.log, marked=marked)
    if not charts:
        return
    grid = st.grid(min(3, len(charts)), min_column_width=230, gap="small")
    for task, figure in charts.items():
        with grid.cell():
            st.markdown(f':color[●]{{foreground="{colour[task]}"}} **{escape(task)}**')
            chart(figure, key=f"curve_{task}", alt=f"{view.metric.title} of {task}", revision=revision)


def _marked(runs: Sequence[Run]) -> int | None:
    """The run whose row of the legend is selected: its lines stand out."""
    rows = st.session_state.get(_LEGEND, {}).get("selection", {}).get("rows", [])
    return runs[rows[0]].id if rows and rows[0] < len(runs) else None


def _legend(view: CurvesView, runs: Sequence[Run]) -> None:
    entries = {run_id: (name, last) for run_id, name, last in legend(view, runs)}
    lines = {"stl": "┄┄┄ STL", "mtl": "╌╌╌ MTL", "mrn": "─── MRN"}
    st.dataframe(
        pd.DataFrame(
            {
                "Run": run.id,
                "Line": lines[run.config.paradigm],
                "Configuration": entries[run.id][0] if run.id in entries else "",
                "Tasks": ", ".join(run.config.tasks),
                "Seed": run.config.seed,
                "State": state_text(run.state),
                f"Last {view.metric.title.lower()}": entries[run.id][1] if run.id in entries else None,
            }
            for run in runs
        ),
        key=_LEGEND,
        hide_index=True,
        height="content" if len(runs) <= 8 else 320,
        placeholder="",
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "Run": st.column_config.NumberColumn(width=54),
            f"Last {view.metric.title.lower()}": st.column_config.NumberColumn(
                format="%.2f" if view.metric.percent else "%.4g"
            ),
        },
        alt="Legend: a line per run; select one to make its curves stand out",
    )
    st.caption("Select a row to make that run stand out. Dotted: STL, dashed: MTL, solid: MRN.")
