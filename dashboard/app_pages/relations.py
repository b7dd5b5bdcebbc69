"""Relations: what MRN learned of tasks, labels and features, at any step of training."""

from __future__ import annotations

import streamlit as st

from core.store.states import ACTIVE
from dashboard import resources
from dashboard.charts import matrix_chart
from dashboard.components import chart
from dashboard.live import live
from dashboard.panels.how_to_read import how_to_read
from dashboard.panels.relation_numbers import numbers_panel, planted_panel
from dashboard.panels.relations_parts import (
    alignment_words,
    pairs_panel,
    pick_run,
    player,
    playing,
    setting_line,
    vanished_words,
)
from dashboard.panels.try_it import try_it
from dashboard.queries.relations import gold_view, relations
from dashboard.states import empty, title
from dashboard.theme import colours

MODES = {"task": "Tasks", "label": "Labels", "feature": "Features"}
PLAY_SECONDS = 0.4

title("Relations", "What MRN learned: how tasks, labels and features relate, as correlations, over training.")
store = resources.store()
run = pick_run(store)
if run is None:
    try_it(
        "No MRN run yet. One click trains one beside MTL and STL, and its relations move here while it does."
    )
    st.stop()

run_id = run.id
with st.container(horizontal=True, vertical_alignment="center"):
    mode = st.segmented_control(
        "Relations between",
        list(MODES),
        default="task",
        required=True,
        key="mode",
        bind="query-params",
        format_func=MODES.__getitem__,
        label_visibility="collapsed",
    )
    gold = (
        mode == "label"
        and bool(run.facts.get("cooccurrence"))
        and st.toggle(
            "Gold labels instead",
            key="gold",
            bind="query-params",
            help="How the true labels go together on the training words. What the learned relations "
            "have beyond this was learned, not counted.",
        )
    )


def pace() -> float | None:
    if playing():
        return PLAY_SECONDS
    return resources.LIVE if store.state(run_id) in ACTIVE else None


def draw() -> None:
    now, keys = store.run(run_id), store.snapshots(run_id)
    if not keys:
        empty(
            "No relations yet",
            "The first snapshot comes when training begins."
            if now.state in ACTIVE
            else "This run ended before its first snapshot. Choose another run above.",
        )
        return
    left, right = st.columns([5, 3], gap="large")
    with right:
        key = player(keys)
    view = relations(now, mode, key, resources.learned(now, key))
    with left:
        vanished_words(now)
        alignment_words(now, view)
        drawn = gold_view(now, view) if gold else view
        clicked = chart(
            matrix_chart(drawn, colours(resources.task_order())),
            square=True,
            key=f"matrix_{mode}",
            revision=f"{run_id} {mode}",
            alt=f"Correlations between {MODES[mode].lower()} at step {key.step}",
        )
        numbers_panel(now, view, keys)
    with right:
        pairs_panel(now, view, keys, clicked)
        setting_line(now)
    planted_panel(now, view)


live(draw, pace, key="relations")
how_to_read()
