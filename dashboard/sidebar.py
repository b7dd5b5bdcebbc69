"""The sidebar: what runs now, and the store in use. The product's name and the pages stand above."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.store.records import RunState
from core.wording import plural
from dashboard.shared import actions, resources
from dashboard.shared.live import live, look_out
from dashboard.shared.run_views import fraction_done
from dashboard.text import escape
from dashboard.theme import LOGO


def sidebar() -> None:
    """Draws the sidebar on every page, and the word on what the last button did."""
    st.logo(LOGO, size="large")
    actions.report()
    laboratory = resources.store()
    with st.sidebar:
        live(_running, resources.pace, key="sidebar")
        look_out()
        st.caption(f":material/database: {escape(_short(laboratory.name))}")


def _short(name: str) -> str:
    """The store's address as one says it: a file's path, with ~ for the home folder."""
    path = name.removeprefix("sqlite:///")
    return f"~{path.removeprefix(str(Path.home()))}" if path.startswith(f"{Path.home()}/") else path


def _running() -> None:
    laboratory = resources.store()
    counts = laboratory.counts()
    running = counts[RunState.RUNNING] + counts[RunState.CANCELLING]
    waiting = counts[RunState.QUEUED]
    if laboratory.paused_since() is not None:
        st.markdown(":orange-badge[:material/pause_circle: The queue is paused]")
    if not running and not waiting:
        st.caption("Nothing runs.")
        return
    text = " and ".join(
        part
        for part in (
            plural(running, "run") + " in training" if running else "",
            f"{waiting} waiting" if waiting else "",
        )
        if part
    )
    st.page_link("runs/page.py", label=text, icon="spinner" if running else ":material/schedule:")
    for run in laboratory.runs(states={RunState.RUNNING, RunState.CANCELLING}, limit=3):
        st.progress(fraction_done(run), text=f"Run {run.id}")
