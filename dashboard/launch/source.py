"""Beside the form's first question: where its values came from, and ways to fill it in from past runs."""

from __future__ import annotations

import streamlit as st

from dashboard import resources
from dashboard.launch.fill import filled_from, fresh
from dashboard.launch.url import clone
from dashboard.queries.naming import run_name
from dashboard.selection import chosen
from dashboard.text import escape, plural

__all__ = ["other_sources", "show_source"]

_MOST_OFFERED = 200
_PICKED = "launch_clone_runs"


def other_sources() -> None:
    """Two buttons: *From a run…* and *Start over*."""
    popover = st.popover("From a run…", icon=":material/content_copy:", on_change="rerun", key="launch_clone")
    with popover:
        if popover.open:
            _choose()
    st.button(
        "Start over", icon=":material/restart_alt:", type="tertiary", on_click=fresh, key="launch_fresh"
    )


def show_source() -> None:
    """What the form was filled in from, with the way back, and what could not be taken over."""
    runs, sentences = filled_from()
    if not runs and not sentences:
        return
    with st.container(gap="xsmall"):
        if runs:
            few = ", ".join(map(str, runs[:6])) + (f" and {len(runs) - 6} more" if runs[6:] else "")
            st.page_link(
                "app_pages/runs.py",
                label=f"Filled in from run{'s' if runs[1:] else ''} {few}",
                icon=":material/content_copy:",
                query_params={"run": ",".join(map(str, runs))},
            )
        for sentence in sentences:
            st.caption(f":material/info: {escape(sentence)}")


def _choose() -> None:
    """The newest runs by name, any other by its number."""
    names = [run_name(run) for run in resources.store().runs(limit=_MOST_OFFERED)]
    picked = st.multiselect(
        "Runs",
        names,
        accept_new_options=True,
        placeholder="Choose, or type a number",
        help="Of several runs, the values in which they differ become lists.",
        key=_PICKED,
    )
    numbers = ",".join(name.partition(" ")[0] for name in picked)
    st.button(
        "Fill in the form",
        type="primary",
        disabled=not numbers,
        on_click=clone,
        args=(resources.store(), numbers),
        key="launch_clone_fill",
    )
    if runs := chosen():
        st.button(
            f"From the {plural(len(runs), 'chosen run')}",
            on_click=clone,
            args=(resources.store(), ",".join(map(str, runs))),
            key="launch_clone_chosen",
        )
