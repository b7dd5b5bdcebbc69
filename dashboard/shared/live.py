"""Parts of a page that refresh themselves, and only while there is something to wait for; and what becomes of
a page while its store cannot be reached.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import MRNLabError, StoreError
from dashboard.shared import resources
from dashboard.shared.states import problem
from dashboard.text import escape

_LOOK_S = 1.0


def live(draw: Callable[[], None], pace: Callable[[], float | None], *, key: str) -> None:
    """Draws a part that runs by itself every `pace()` seconds; None is not at all.

    When the pace is no longer the one that the timer was set for, the page runs as a whole, which sets or
    drops the timer. That is asked first, before anything is drawn: a click on a link that comes between the
    start of a part and such a rerun would be lost.

    Where the store goes away meanwhile, what the part shows stays, and it says so above until the store is
    back.
    """
    seconds = pace()
    is_drawn = False

    @st.fragment(run_every=seconds, key=key)
    def part() -> None:
        nonlocal is_drawn
        above = st.empty()
        before, is_drawn = is_drawn, True
        try:
            if seconds is not None:
                resources.keep_house()
            changed = pace() != seconds
            if not changed:
                draw()
        except StoreError as error:
            if before:
                _await_store(above, error)
            else:
                store_away(error)
            return
        except MRNLabError as error:
            problem(str(error))
            return
        if changed:
            st.rerun()

    part()


def look_out() -> None:
    """While nothing runs: draws the page anew when runs or the queue have changed elsewhere.

    It draws nothing, so that a look sends little. While something runs, live parts look more often.
    """
    if resources.pace() is not None:
        return
    known = _known()

    @st.fragment(run_every=resources.IDLE, key="look_out")
    def look() -> None:
        try:
            changed = _known() != known
        except StoreError as error:
            _await_store(st.empty(), error)
            return
        if changed:
            st.rerun()

    look()


def _known() -> object:
    """What an idle page compares: the number of runs in each state, and since when the queue is paused."""
    store = resources.store()
    return store.counts(), store.paused_since()


def _await_store(above: DeltaGenerator, error: StoreError | None) -> None:
    """Says above the part why it stands still, and runs the page as a whole once the store can be read.

    As long as this lasts the browser keeps what was drawn before: only a part that has ended loses it.
    """
    while error is not None:
        above.warning(
            f"{escape(error)} What is shown is what was known before; the page goes on by itself as soon as "
            "the store can be read.",
            icon=":material/database_off:",
        )
        time.sleep(_LOOK_S)
        error = resources.reachable()
    st.rerun()


def store_away(error: StoreError) -> None:
    """A page, or a part of one, that could not be drawn at all: says why, and is drawn when the store is
    back.
    """
    st.warning(
        f"{escape(error)} This page comes back by itself as soon as the store can be read.",
        icon=":material/database_off:",
    )

    @st.fragment(run_every=resources.LIVE)
    def look() -> None:
        if resources.reachable() is None:
            st.rerun()

    look()
