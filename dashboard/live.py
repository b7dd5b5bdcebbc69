"""Parts of a page that refresh themselves, and only while there is something to wait for."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.errors import MRNLabError
from dashboard import resources
from dashboard.states import problem

__all__ = ["live"]


def live(draw: Callable[[], None], pace: Callable[[], float | None], *, key: str) -> None:
    """Draws a part that runs by itself every `pace()` seconds; None is not at all.

    When the pace is no longer the one that the timer was set for, the page runs as a whole, which sets or
    drops the timer. That is asked first, before anything is drawn: a click on a link that comes between the
    start of a part and such a rerun would be lost.
    """
    seconds = pace()

    @st.fragment(run_every=seconds, key=key)
    def part() -> None:
        try:
            if seconds is not None:
                resources.keep_house()
            changed = pace() != seconds
            if not changed:
                draw()
        except MRNLabError as error:
            problem(str(error))
        else:
            if changed:
                st.rerun()

    part()
