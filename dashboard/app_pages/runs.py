"""Runs: what runs now, what has run, and one run in full."""

from __future__ import annotations

import streamlit as st

from dashboard import resources
from dashboard.live import live
from dashboard.panels.run_cards import run_cards
from dashboard.panels.run_detail import run_actions, run_detail
from dashboard.panels.run_table import run_table
from dashboard.panels.try_it import try_it
from dashboard.queries.runs import by_configuration, cards, detail, rows
from dashboard.selection import chosen
from dashboard.states import title

title("Runs", "What runs now, what has run, and how it ended.")
store = resources.store()

if not any(store.counts().values()):
    try_it("No run yet. One click trains MRN, MTL and STL on the demo corpus; come back here to watch.")
    st.stop()

by = st.segmented_control(
    "Order",
    ["Newest first", "By configuration"],
    default="Newest first",
    required=True,
    key="order",
    bind="query-params",
    label_visibility="collapsed",
)


def draw() -> None:
    running = cards(store)
    if running:
        run_cards(running)
    runs = store.runs()
    shown = by_configuration(runs) if by == "By configuration" else runs
    run_table(rows(store, shown), resources.task_order())
    known = {run.id: run for run in runs}
    picked = [known[run_id] for run_id in chosen() if run_id in known]
    if picked:
        run_actions(picked)
        run_detail(detail(store, picked[0].id))
    else:
        st.caption(
            "Select rows to see a run in full, to stop, resume, retry or delete runs, and to take them to "
            "the other pages."
        )


live(draw, resources.pace, key="runs")
