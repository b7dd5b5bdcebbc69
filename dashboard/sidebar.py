"""The sidebar: the runs in progress, and the store in use, below the product's name and the pages."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import streamlit as st

from core.store.types import RunState
from dashboard.shared import actions, resources
from dashboard.shared.live import live, look_out
from dashboard.shared.queue import counts_text
from dashboard.shared.sweeps import sweep_bars
from dashboard.text import escape
from dashboard.theme import LOGO

_MOST_SWEEPS = 3
_HAS_BARS = "Runs"
"""The page that has the bars of the sweeps itself."""


def sidebar(page: str) -> None:
    """Draws the sidebar beside the page of that title, and a toast on the last action."""
    st.logo(LOGO, size="large")
    actions.show()
    path = resources.store().name.removeprefix("sqlite:///")
    home = f"{Path.home()}/"
    with st.sidebar:
        live(partial(_running, page), resources.pace, key="sidebar")
        look_out()
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
        return
    icon = "spinner" if running else ":material/schedule:"
    st.page_link("runs/page.py", label=counts_text(running, waiting), icon=icon)
    if page != _HAS_BARS:
        sweep_bars(store, _MOST_SWEEPS)
