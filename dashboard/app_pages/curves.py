"""Curves: losses, penalty and dev scores of the chosen runs, live."""

from __future__ import annotations

import streamlit as st

from core.store.states import ACTIVE
from dashboard import resources
from dashboard.live import live
from dashboard.panels.curve_charts import Settings, curve_charts
from dashboard.panels.try_it import try_it
from dashboard.queries.curves import AXES, METRICS, RELATION_METRICS, choices
from dashboard.queries.naming import run_name
from dashboard.selection import choose_runs, newest_launch
from dashboard.states import empty, title

_RELATIONS = "relations"

title("Curves", "How training goes: one large chart for the run as a whole, one small chart per task.")
store = resources.store()
known = store.runs(limit=500)

if not known:
    try_it("No run yet, so no curve. One click trains five, and their curves move here while they do.")
    st.stop()

names = {run.id: run_name(run) for run in known}
runs = choose_runs(known, names, key="curves_runs", instead=newest_launch(known))
if not runs:
    empty(
        "No run chosen",
        "Choose runs in the field above, or select rows on Runs.",
        page="app_pages/runs.py",
        label="Go to Runs",
        icon=":material/list_alt:",
    )
    st.stop()

ids = [run.id for run in runs]
keys = store.metric_keys(ids)
found = choices(keys) or ["loss"]
numbers = choices(keys, RELATION_METRICS)
with st.container(horizontal=True, vertical_alignment="bottom"):
    metric = st.segmented_control(
        "Curve",
        [*found, _RELATIONS] if numbers else found,
        default="loss" if "loss" in found else found[0],
        required=True,
        key="metric",
        bind="query-params",
        format_func=lambda name: "Relations" if name == _RELATIONS else METRICS[name].title,
    )
    axis = st.segmented_control(
        "Over",
        list(AXES),
        default="step",
        required=True,
        key="over",
        bind="query-params",
        format_func=AXES.__getitem__,
    )
    with st.popover("Display", icon=":material/tune:"):
        log = st.toggle("Log scale", key="log", bind="query-params")
        smoothing = st.slider(
            "Smoothing",
            0.0,
            0.99,
            0.0,
            0.01,
            key="smooth",
            bind="query-params",
            help="Weight of the past in a running mean over all points. The raw line stays, faint.",
        )
if metric == _RELATIONS:
    # What the covariances of MRN runs hold, a value at each snapshot.
    metric = st.selectbox(
        "Number",
        numbers,
        key="number",
        bind="query-params",
        format_func=lambda name: RELATION_METRICS[name].title,
        width=300,
    )

settings = Settings((METRICS | RELATION_METRICS)[metric], axis, log, smoothing)


def pace() -> float | None:
    going_on = any(run.state in ACTIVE for run in store.runs(ids, with_facts=False))
    return resources.LIVE if going_on else None


def draw() -> None:
    there = store.metric_keys(ids)
    if choices(there) not in ([], found) or choices(there, RELATION_METRICS) != numbers:
        st.rerun()  # a curve that was not there when the controls above were drawn
    now = store.runs(ids, with_facts=False)
    curve_charts(sorted(now, key=lambda run: ids.index(run.id)), settings)


live(draw, pace, key="curves")
