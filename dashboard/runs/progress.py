"""What is in progress, or how the newest sweep has ended, with the way to its answer."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.results.naming import run_name
from core.results.samples import by_configuration
from core.store import Store
from core.store.types import Run, RunState
from core.wording import all_of, plural
from dashboard.components.progress_rows import ProgressRow, progress_rows
from dashboard.runs import table
from dashboard.shared import actions
from dashboard.shared.queue import queue_panel
from dashboard.shared.run_views import fraction_done, progress_text
from dashboard.shared.selection import address_of, link_to_runs
from dashboard.shared.sweeps import progress_left, sweeps_in_progress, sweeps_of
from dashboard.text import escape
from jobs.queue import control

_MOST_SHOWN = 5
_NEWEST = 100
"""So many runs are read first: only after a long import is the newest sweep older."""


def in_progress(store: Store) -> None:
    """Draws the queue, a bar a sweep or the end of the newest, and the runs in training: the oldest first."""
    table.follow()
    queue_panel(store, lambda: _newest_sweep(store))
    training = store.runs(states={RunState.RUNNING, RunState.CANCELLING})[::-1]
    alone = {(run.id,) for run in training[:_MOST_SHOWN]}  # what trains by itself needs no second bar
    sweeps = [
        sweep for sweep in sweeps_in_progress(store) if sweep.active not in alone or len(sweep.runs) > 1
    ]
    rows = [
        ProgressRow(sweep.name or "Sweep", progress_left(store, sweep), sweep.done)
        for sweep in sweeps[:_MOST_SHOWN]
    ]
    rows += [
        ProgressRow(
            f"Run {run_name(run)}",
            progress_text(store, run),
            fraction_done(run),
            run.id,
            stops=run.state is RunState.RUNNING,
        )
        for run in training[:_MOST_SHOWN]
    ]
    if rows:
        progress_rows(rows, key="runs_in_progress", opened=lambda run: table.open_runs([run]), stopped=_stop)
    more = (sweeps, "sweep", "sweeps"), (training, "run", "runs")
    more_texts = [
        plural(len(every) - _MOST_SHOWN, f"more {singular}", f"more {plural_word}")
        for every, singular, plural_word in more
        if len(every) > _MOST_SHOWN
    ]
    if more_texts:
        st.caption(f"{all_of(more_texts)} in progress.")


def _stop(run_id: int) -> None:
    actions.perform(control.stop_all, [run_id])


def _newest_sweep(store: Store) -> None:
    """Draws how the newest sweep has ended, with links to its answer and its failures.

    Nothing while one of its runs is active: it has a bar.
    """
    newest = (run for limit in (_NEWEST, None) for run in store.runs(limit=limit))
    launched = next((run for run in newest if not _is_imported(run)), None)
    if launched is None:
        return
    (sweep,) = sweeps_of(store.added_together([launched.id]))
    if sweep.active:
        return
    name = f" ({escape(sweep.name)})" if sweep.name else ""
    st.markdown(f"Newest sweep{name}: **{sweep.progress}**", width="content")
    failed = [run.id for run in sweep.runs if run.state in (RunState.FAILED, RunState.LOST)]
    if failed:
        table.run_link(failed[:1], f"Run {failed[0]}: what to do", ":material/error:")
    page, label = _answer([run for run in sweep.runs if run.state is RunState.SUCCEEDED])
    ids = [run.id for run in sweep.runs]
    if page == "curves":
        link_to_runs(ids, label, ":material/show_chart:", page=page)
    # A link has no look of the one thing to do next.
    elif page and st.button(label, type="primary", icon=":material/arrow_forward:", key="to_answer"):
        st.switch_page(f"{page}/page.py", query_params=address_of(ids))


def _is_imported(run: Run) -> bool:
    """Whether the run was trained elsewhere: no worker of this store has had it."""
    return run.state is RunState.SUCCEEDED and run.owner is None


def _answer(runs: Sequence[Run]) -> tuple[str, str]:
    """The page that answers most about these finished runs, and its answer."""
    paradigms = {run.config.paradigm for run in runs}
    if len({run.config.corpus for run in runs}) == 1 and len(by_configuration(runs)) > 1:
        shares = len(paradigms) > 1 and "stl" in paradigms
        return "compare", "Compare: does sharing help?" if shares else "Compare"
    return ("curves", "See the curves") if runs else ("", "")
