"""Runs: the runs in progress, the past ones, and their ends."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.results.filter import FilterError, parse_filter
from core.results.samples import readable
from core.store.types import RunWithFacts
from core.wording import plural
from dashboard.runs import table
from dashboard.runs.controls import chosen_bar
from dashboard.runs.differences import difference_sentence, differences
from dashboard.runs.exchange import import_menu
from dashboard.runs.progress import in_progress
from dashboard.runs.views import page_of
from dashboard.shared import actions, resources
from dashboard.shared.downloads import copy_link, data_table
from dashboard.shared.live import live
from dashboard.shared.newcomers import try_it
from dashboard.shared.queue import held_banner
from dashboard.shared.run_picker import warn_missing_runs
from dashboard.shared.selection import chosen
from dashboard.shared.states import end_page, field_problem, show_note, title
from dashboard.text import escape

_MOST_COMPARED = 30

store = resources.store()


def draw() -> None:
    table.follow()
    actions.show()
    seen = _tables()
    picked = store.runs(chosen())
    stored = {run.id for run in picked}
    warn_missing_runs(set(chosen()) - stored)
    runs, note = _chosen_in_full([run_id for run_id in chosen() if run_id in stored])
    chosen_bar(picked, len(stored - seen), difference_sentence(runs) if len(runs) > 1 else "")
    if note:
        show_note(escape(note))
    if len(runs) > 1:
        _differences(runs)


def _tables() -> set[int]:
    """Draw the runs that the filter finds; the ids of all that are shown."""
    try:
        wanted = parse_filter(search.text, store=store)
    except FilterError as error:
        field_problem(str(error))
        return set()
    shown = table.shown_choice()
    runs = table.listed_runs(store, wanted, only_chosen=shown.only_chosen)
    page = page_of(store, runs, grouped=shown.grouped, sort=search.sort, page=table.page_asked(), tasks=tasks)
    if page.tables:
        with shown.counts:
            table.counts_and_pages(page)
        table.run_tables(page, shown.split, shown.menu, shown.note)
    else:
        table.nothing_found(is_filtered=bool(search.text.strip()))
    return {run_id for line in page.lines for run_id in line.run_ids}


def _chosen_in_full(ids: Sequence[int]) -> tuple[Sequence[RunWithFacts], str]:
    """The chosen runs that can be read, with their facts, in their order; and a note on the others."""
    by_id = {run.id: run for run in store.runs_with_facts(ids)} if len(ids) > 1 else {}
    return readable([by_id[run_id] for run_id in ids if run_id in by_id])


def _differences(runs: Sequence[RunWithFacts]) -> None:
    """A table of what the chosen runs have apart: a row per field, a column per configuration."""
    frame = differences(runs)
    if frame.empty:
        return
    st.subheader("Differences", anchor=False)
    data_table(
        frame.iloc[:, :_MOST_COMPARED],
        hide_index=False,
        most=14,
        tall=520,
        column_config={"Field": st.column_config.TextColumn(pinned=True, width=140)},
        alt="The fields in which the chosen runs differ, a column for each configuration",
    )
    hidden = len(frame.columns) - _MOST_COMPARED
    more = f" {plural(hidden, 'more configuration')} not shown." * (hidden > 0)
    st.caption(f"≠ marks what differs from the first configuration. All other fields are the same.{more}")


with st.container(horizontal=True, vertical_alignment="bottom"):
    with st.container():
        title("Runs", "What is in progress, what has run, and how it ended.")
    import_menu()
    copy_link()
if not any(store.counts().values()):
    held_banner(store)
    try_it("No run yet. One click trains MRN, MTL and STL on the demo corpus; come back here to watch.")
    end_page()
live(lambda: in_progress(store), resources.pace, key="runs_now")
tasks = resources.task_order()
search = table.run_search(tasks)
live(draw, resources.pace, key="runs")
