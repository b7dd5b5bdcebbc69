"""Runs: what runs now, what has run, and how it ended."""

from __future__ import annotations

import streamlit as st

from core.store.records import RunState
from core.wording import plural
from dashboard.runs.chosen import focus_picker, run_actions, run_detail, run_differences
from dashboard.runs.table import (
    WANTED_SIDE,
    found_line,
    nothing_found,
    opened,
    page_number,
    run_search,
    run_table,
)
from dashboard.runs.views import page_of
from dashboard.shared import actions, resources
from dashboard.shared.live import live
from dashboard.shared.newcomers import try_it
from dashboard.shared.queue import held_banner, queue_panel
from dashboard.shared.run_picker import say_gone
from dashboard.shared.run_views import detail, fraction_done, progress_text
from dashboard.shared.selection import chosen
from dashboard.shared.states import title
from dashboard.text import escape
from jobs.naming import run_name

_MOST_SHOWN = 5

title("Runs", "What runs now, what has run, and how it ended.")
store = resources.store()

if not any(store.counts().values()):
    held_banner(store)
    try_it("No run yet. One click trains MRN, MTL and STL on the demo corpus; come back here to watch.")
    st.stop()


def now() -> None:
    """The queue, and the progress of the runs in training: the oldest first."""
    queue_panel(store)
    training = store.runs(states={RunState.RUNNING, RunState.CANCELLING}, with_facts=False)[::-1]
    for run in training[:_MOST_SHOWN]:
        text = f"**Run {escape(run_name(run))}**: {escape(progress_text(store, run))}"
        st.progress(fraction_done(run), text=text)
    if more := len(training[_MOST_SHOWN:]):
        st.caption(f"{plural(more, 'more run')} in training.")


live(now, resources.pace, key="runs_now")
tasks = resources.task_order()
search = run_search(tasks)


def draw() -> None:
    actions.report()
    seen: set[int] = set()
    if search.wanted is not None:
        runs = [run for run in store.runs(archived=search.wanted.archived) if search.wanted.matches(run)]
        page = page_of(
            store, runs, grouped=search.grouped, sort=search.sort, number=page_number(), opened=opened()
        )
        if page.lines:
            found_line(page)
            run_table(page, tasks, grouped=search.grouped)
        else:
            nothing_found(is_filtered=search.is_filtered)
        seen = {run_id for line in page.lines for run_id in line.run_ids}
    picked = store.runs(chosen(), with_facts=False)
    stored = {run.id for run in picked}
    say_gone(set(chosen()) - stored)
    if picked:
        run_actions(picked, len(stored - seen))
        look([run_id for run_id in chosen() if run_id in stored])
    else:
        st.caption(
            "Tick lines to choose runs: for the other pages, to see how they differ, to stop, resume, retry, "
            "give keywords, archive or delete them. The eye shows one in full."
        )


def look(ids: list[int]) -> None:
    """Several chosen runs side by side, or the first of them in full."""
    wanted = st.session_state.pop(WANTED_SIDE, None)
    if len(ids) > 1:
        if wanted is not None:
            st.session_state["side"] = wanted
        part = st.segmented_control(
            "Chosen",
            ["Differences", "One run"],
            default=None if wanted is not None else "Differences",
            required=True,
            key="side",
            bind="query-params",
            label_visibility="collapsed",
        )
        if part == "Differences":
            run_differences(store, ids)
            return
        focus_picker(store.runs(ids, with_facts=False))
    run_detail(detail(store, ids[0]))


live(draw, resources.pace, key="runs")
