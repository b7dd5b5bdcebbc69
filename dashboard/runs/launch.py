"""The newest launch in a line: its progress, its failures, and a link to its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from core.results.samples import by_configuration
from core.store import Store
from core.store.records import ACTIVE, Run, RunState
from dashboard.runs.table import run_link
from dashboard.shared.selection import link_to_runs
from dashboard.text import escape
from dashboard.theme import STATES


def newest_launch(store: Store) -> None:
    """Draws the progress of the newest launch; after its end, links to its answer and its failures."""
    launched = [run for run in store.runs() if not _is_imported(run)]
    # All runs of a launch are added at one time.
    runs = [run for run in launched if run.created_at == launched[0].created_at]
    if not runs:
        return
    states = Counter(run.state for run in runs)
    ended_badly = (RunState.FAILED, RunState.LOST, RunState.CANCELLED)
    parts = [f"{states[RunState.SUCCEEDED]:,} of {len(runs):,} done"]
    parts += [f"{states[state]:,} {STATES[state].word.lower()}" for state in ended_badly if states[state]]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        name = (runs[0].launch or "").rpartition(", ")[0]
        name = "" if name in ("", "Launch") else f" ({escape(name)})"
        st.markdown(f"Newest launch{name}: **{', '.join(parts)}**", width="content")
        failed = [run.id for run in runs if run.state in (RunState.FAILED, RunState.LOST)]
        if failed:
            run_link(failed[:1], f"Run {failed[0]}: what to do", ":material/error:")
        page, label = _answer([run for run in runs if run.state is RunState.SUCCEEDED])
        if not any(run.state in ACTIVE for run in runs) and page:
            link_to_runs((run.id for run in runs[::-1]), f":blue[**{label} →**]", None, page=page)


def _is_imported(run: Run) -> bool:
    """Whether the run was trained elsewhere: no worker of this store has had it."""
    return run.state is RunState.SUCCEEDED and run.owner is None


def _answer(runs: Sequence[Run]) -> tuple[str, str]:
    """The page that answers most about these finished runs, and its answer."""
    paradigms = {run.config.paradigm for run in runs}
    if len({run.config.corpus for run in runs}) == 1 and len(by_configuration(runs)) > 1:
        shares = len(paradigms) > 1 and "stl" in paradigms
        return "compare", "See what sharing did" if shares else "Compare them"
    return ("curves", "See the curves") if runs else ("", "")
