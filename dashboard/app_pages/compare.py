"""Compare: which configuration is better, by how much, and whether the difference holds."""

from __future__ import annotations

import streamlit as st

from dashboard import resources
from dashboard.panels.compare_parts import answer, scope, seeds_table, summary_table
from dashboard.panels.study_parts import studies
from dashboard.panels.try_it import try_it
from dashboard.queries.compare import compare
from dashboard.states import empty, title

title("Compare", "Which configuration is better, by how much, and whether more than chance speaks for it.")
store = resources.store()

shown = st.segmented_control(
    "Compare",
    ["runs", "studies"],
    default="runs",
    required=True,
    key="what",
    bind="query-params",
    format_func=str.capitalize,
    label_visibility="collapsed",
)
if shown == "studies":
    studies()
    st.stop()

if not store.scores(split="dev"):
    try_it("No run has finished yet. One click trains MRN, MTL and STL to compare.")
    st.stop()

with st.container(horizontal=True, vertical_alignment="bottom"):
    runs = scope(store)
    split = st.segmented_control(
        "Scores on",
        ["test", "dev"],
        default="test",
        required=True,
        key="on",
        bind="query-params",
        format_func=lambda name: f"{name.capitalize()} sentences",
    )
    beside = st.toggle(
        "Published figures beside",
        key="published",
        bind="query-params",
        help="Those of the dissertation's tables 1 to 3, where corpus and encoder are the same.",
    )

view = compare(runs, store.scores([run.id for run in runs]), split, resources.task_order())
if not view.rows:
    empty(
        "No score yet",
        "None of the chosen runs has finished. Choose others above, or wait: scores come when training ends.",
        page="app_pages/runs.py",
        label="See how far they are",
        icon=":material/list_alt:",
    )
    st.stop()

answer(view)
summary_table(view, published=beside)
seeds_table(view)
