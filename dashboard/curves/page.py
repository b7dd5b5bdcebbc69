"""Curves: losses, penalty, dev scores and every other number of the chosen runs, live."""

from __future__ import annotations

import streamlit as st

from core.store.types import ACTIVE
from dashboard.curves.controls import curve_controls, offered
from dashboard.curves.panels import curve_charts
from dashboard.shared import resources
from dashboard.shared.live import live
from dashboard.shared.newcomers import try_it
from dashboard.shared.run_picker import pick_runs
from dashboard.shared.states import empty, end_page, title

title("Curves", "Training over time, live: one large chart, and a small one for each other task.")
store = resources.store()
runs = pick_runs(key="curves_runs")

if runs is None:
    try_it("No runs yet. One click trains STL, MTL and MRN; their curves appear here.")
    end_page()
if not runs:
    empty(
        "No run chosen",
        "Choose runs in the field above, or select rows on Runs.",
        page="runs/page.py",
        label="Go to Runs",
        icon=":material/list_alt:",
    )
    end_page()

ids = [run.id for run in runs]
keys = store.metric_keys(ids)
chosen = curve_controls(keys, resources.task_order(), runs)


def pace() -> float | None:
    going_on = any(run.state in ACTIVE for run in store.runs(ids))
    return resources.LIVE if going_on else None


def draw() -> None:
    if offered(store.metric_keys(ids)) != offered(keys):
        st.rerun()  # a curve that was not there when the controls above were drawn
    now = store.runs(ids)
    curve_charts(sorted(now, key=lambda run: ids.index(run.id)), chosen)


live(draw, pace, key="curves")
