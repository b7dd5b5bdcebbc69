"""Runs: what is in progress, what has run, and how it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from core.store.records import ACTIVE, Run, RunState
from core.wording import plural
from dashboard.runs.bar import chosen_bar
from dashboard.runs.table import (
    follow,
    found_line,
    nothing_found,
    page_number,
    run_link,
    run_search,
    run_tables,
)
from dashboard.runs.views import by_configuration, difference_sentence, differences, page_of
from dashboard.shared import actions, resources
from dashboard.shared.live import live
from dashboard.shared.newcomers import try_it
from dashboard.shared.queue import held_banner, queue_panel
from dashboard.shared.run_picker import say_gone
from dashboard.shared.run_views import fraction_done, progress_text
from dashboard.shared.selection import chosen
from dashboard.shared.states import title
from dashboard.text import escape
from dashboard.theme import STATES
from jobs.naming import run_name
from jobs.run_filter import FilterError, parse_filter

_MOST_SHOWN = 5
_MOST_COMPARED = 8

store = resources.store()


def now() -> None:
    """The queue, the newest launch, and the progress of the runs in training: the oldest first."""
    queue_panel(store)
    _launch_line()
    training = store.runs(states={RunState.RUNNING, RunState.CANCELLING}, with_facts=False)[::-1]
    for run in training[:_MOST_SHOWN]:
        text = f"**Run {escape(run_name(run))}**: {escape(progress_text(store, run))}"
        st.progress(fraction_done(run), text=text)
    if more := len(training[_MOST_SHOWN:]):
        st.caption(f"{plural(more, 'more run')} in progress.")


def _launch_line() -> None:
    """How far the newest launch is; once it has ended, the way to its answer and to what failed."""
    newest = store.runs(limit=1, with_facts=False)
    # All runs of a launch are added at one time.
    runs = [run for run in store.runs() if run.created_at == newest[0].created_at] if newest else []
    if not runs:
        return
    states = Counter(run.state for run in runs)
    ended_badly = (RunState.FAILED, RunState.LOST, RunState.CANCELLED)
    parts = [f"{states[RunState.SUCCEEDED]:,} of {len(runs):,} done"]
    parts += [f"{states[state]:,} {STATES[state].word.lower()}" for state in ended_badly if states[state]]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        name = (runs[0].sweep or "").rpartition(", ")[0]
        name = "" if name in ("", "Launch") else f" ({escape(name)})"
        st.markdown(f"Newest launch{name}: **{', '.join(parts)}**", width="content")
        failed = [run.id for run in runs if run.state in (RunState.FAILED, RunState.LOST)]
        if failed:
            run_link(failed[:1], f"Run {failed[0]}: what to do", ":material/error:")
        page, label = _answer([run for run in runs if run.state is RunState.SUCCEEDED])
        if not any(run.state in ACTIVE for run in runs) and page:
            ids = ",".join(str(run.id) for run in runs[::-1])
            st.page_link(f"{page}/page.py", label=f":blue[**{label} →**]", query_params={"run": ids})


def _answer(runs: Sequence[Run]) -> tuple[str, str]:
    """The page on which these finished runs say most, and what it says."""
    paradigms = {run.config.paradigm for run in runs}
    if len({run.config.corpus for run in runs}) == 1 and len(by_configuration(runs)) > 1:
        shares = len(paradigms) > 1 and "stl" in paradigms
        return "compare", "See what sharing did" if shares else "Compare them"
    return ("curves", "See the curves") if runs else ("", "")


def draw() -> None:
    follow()
    actions.report()
    seen = _tables()
    picked = store.runs(chosen(), with_facts=False)
    stored = {run.id for run in picked}
    say_gone(set(chosen()) - stored)
    chosen_bar(picked, len(stored - seen))
    if len(picked) > 1:
        _differences([run_id for run_id in chosen() if run_id in stored])


def _tables() -> set[int]:
    """Draw the runs that the filter finds; the ids of all that are shown."""
    try:
        wanted = parse_filter(search.text, store=store)
    except FilterError as error:
        st.markdown(f":orange[:material/error: {escape(error)}]")
        return set()
    runs = [run for run in store.runs(archived=wanted.archived) if wanted.matches(run)]
    page = page_of(store, runs, grouped=search.grouped, sort=search.sort, page=page_number(), tasks=tasks)
    if page.tables:
        found_line(page)
        run_tables(page, search.split)
    else:
        nothing_found(is_filtered=bool(search.text.strip()))
    return {run_id for line in page.lines for run_id in line.run_ids}


def _differences(ids: Sequence[int]) -> None:
    """A sentence on how the chosen runs differ, and a table: a row per field, a column per run."""
    st.subheader("Differences", anchor=False)
    st.markdown(escape(difference_sentence(store.runs(ids, with_facts=False))))
    shown = ids[:_MOST_COMPARED]
    frame = differences(store, shown)
    if frame.empty:
        return
    st.dataframe(
        frame,
        height="content" if len(frame) <= 14 else 520,
        column_config={"Field": st.column_config.TextColumn(pinned=True, width=140)},
        alt="The fields in which the chosen runs differ, a column for each",
    )
    more = f" {plural(len(ids) - len(shown), 'more run')} not shown." if len(ids) > len(shown) else ""
    st.caption(f"≠ marks what is not as in the first run. All other fields are the same.{more}")


title("Runs", "What is in progress, what has run, and how it ended.")
if not any(store.counts().values()):
    held_banner(store)
    try_it("No run yet. One click trains MRN, MTL and STL on the demo corpus; come back here to watch.")
    st.stop()
live(now, resources.pace, key="runs_now")
tasks = resources.task_order()
search = run_search(tasks)
live(draw, resources.pace, key="runs")
