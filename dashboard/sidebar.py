"""The sidebar: the runs in progress, and the store in use, below the product's name and the pages."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import streamlit as st

from core.store.types import RunState
from dashboard.shared import resources
from dashboard.shared.live import live, look_out
from dashboard.shared.queue import counts_text
from dashboard.shared.selection import address_of
from dashboard.shared.sweeps import sweep_bars, sweeps_of
from dashboard.text import escape

_MOST_SWEEPS = 3
_HAS_BARS = "Runs"
"""The page that has the bars of the sweeps itself."""
_LEADS_ON = ("Launch", "Runs", "Compare")
"""The pages that lead to the answer of a sweep that has ended, or are it."""
_IN_PROGRESS = "sweep_in_progress"


def sidebar(page: str, known: object) -> None:
    """Draws the sidebar beside the page of that title, which showed the queue in the state that is known."""
    path = resources.store().name.removeprefix("sqlite:///")
    home = f"{Path.home()}/"
    with st.sidebar:
        live(partial(_running, page), resources.pace, key="sidebar")
        look_out(known)
        short = f"~/{path.removeprefix(home)}" if path.startswith(home) else path
        st.caption(f":material/database: {escape(short)}")


def _running(page: str) -> None:
    store = resources.store()
    counts = store.counts()
    running = counts[RunState.RUNNING] + counts[RunState.CANCELLING]
    waiting = counts[RunState.QUEUED]
    if store.paused_since() is not None:
        st.markdown(":orange-badge[:material/pause_circle: The queue is paused]")
    if not running and not waiting:
        st.caption("Idle")
        _ended(page)
        return
    icon = "spinner" if running else ":material/schedule:"
    st.page_link("runs/page.py", label=counts_text(running, waiting), icon=icon)
    if page != _HAS_BARS and (sweeps := sweep_bars(store, _MOST_SWEEPS)):
        st.session_state[_IN_PROGRESS] = [run.id for run in sweeps[0].runs]


def _ended(page: str) -> None:
    """Draws the newest sweep that the reader has seen in progress, now that it has ended, and its answer."""
    ids = st.session_state.get(_IN_PROGRESS)
    if page == "Compare":
        st.session_state.pop(_IN_PROGRESS, None)
    if not ids or page in _LEADS_ON:
        return
    for sweep in sweeps_of(resources.store().runs(ids)):
        st.markdown(f"**{escape(sweep.name or 'Sweep')}**: {sweep.progress}")
        if sweep.states[RunState.SUCCEEDED] and st.button(
            "Compare", type="primary", icon=":material/compare_arrows:", key="ended_compare"
        ):
            st.switch_page("compare/page.py", query_params=address_of(ids))
