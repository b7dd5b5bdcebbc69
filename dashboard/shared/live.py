"""Parts of a page that refresh while runs are active, and the message when the store is away."""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import MRNLabError, StoreError
from dashboard.shared import resources
from dashboard.shared.delivery import fragment
from dashboard.shared.states import problem, show_warning
from dashboard.text import escape

_LOOK_S = 1.0


def live(draw: Callable[[], None], pace: Callable[[], float | None], *, key: str) -> None:
    """Draw a part that reruns every `pace()` seconds; None is never.

    If the pace has changed, the whole page reruns, which resets the timer. This is checked before drawing:
    a click between the start of a part and such a rerun would be lost. If the store goes away, the part
    stays as it is below a warning until the store is back.
    """
    seconds = pace()
    is_drawn = False

    @fragment(every=seconds, key=key)
    def part() -> None:
        nonlocal is_drawn
        above = st.empty()
        before, is_drawn = is_drawn, True
        try:
            if seconds is not None:
                resources.maintain_queue()
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


def look_out(known: object) -> None:
    """While nothing runs: rerun the page when the queue is no longer in the state that is known. Draws
    nothing.
    """
    if resources.pace() is None:
        rerun_when(lambda: queue_state() != known, every=resources.IDLE, key="look_out")


def rerun_when(changed: Callable[[], bool], *, every: float = resources.LIVE, key: str | None = None) -> None:
    """Rerun the page as soon as that is so; looks every so many seconds. Draws nothing."""

    @fragment(every=every, key=key)
    def look() -> None:
        try:
            is_time = changed()
        except StoreError as error:
            _await_store(st.empty(), error)
            return
        if is_time:
            st.rerun()

    look()


def queue_state() -> object:
    """How many runs are in each state, and since when the queue is paused."""
    store = resources.store()
    return store.counts(), store.paused_since()


def _await_store(above: DeltaGenerator, error: StoreError | None) -> None:
    """Warn above the part, and rerun the page once the store can be read.

    While this part runs, the browser keeps what it drew before; a part that has ended would lose it.
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
    """In place of a page or part that could not be drawn: why, and a rerun when the store is back."""
    show_warning(
        f"{escape(error)} This page comes back by itself as soon as the store can be read.",
        ":material/database_off:",
    )
    rerun_when(lambda: resources.reachable() is None)
