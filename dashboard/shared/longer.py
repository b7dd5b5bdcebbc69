"""What pages say of runs that have trained too little to learn a task, and the way to train them longer."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import streamlit as st

from core.wording import all_of, plural
from dashboard.shared.states import show_note, show_warning
from dashboard.text import escape

_LONGER = 4
"""Runs whose heads learned nothing are trained for so many times the epochs."""


def barely_trained(tasks: Collection[str], epochs: int) -> str:
    """The notice on runs of so many epochs that score 0 on these tasks with every seed, as plain text."""
    has = "have" if len(tasks) > 1 else "has"
    return (
        f"After {plural(epochs, 'epoch')} {all_of(list(tasks))} {has} learned nothing (0 with each seed). "
        "Train longer before you conclude."
    )


def train_longer(
    tasks: Collection[str], epochs: int, ids: Sequence[int], *, key: str, small: bool = False
) -> None:
    """Draws the notice on these runs, with a button that leads to Launch with them and more epochs.

    `small`: as a line below a table.
    """
    text = escape(barely_trained(tasks, epochs))
    more = _LONGER * epochs
    label, icon = f"Train again for {more} epochs", ":material/rocket_launch:"
    link = {"clone": ",".join(map(str, sorted(ids))), "epochs": str(more)}
    if small:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            show_note(text, ":material/warning:", width="content")
            st.page_link("launch/page.py", label=label, icon=icon, query_params=link)
        return
    left, right = st.columns([3, 1], vertical_alignment="center", gap="small")
    with left:
        show_warning(text)
    if right.button(label, icon=icon, key=f"longer_{key}", type="primary", width="stretch"):
        st.switch_page("launch/page.py", query_params=link)
