"""Parts of a page that refresh themselves, and only while there is something to wait for."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.errors import MRNLabError
from dashboard import resources
from dashboard.states import problem

__all__ = ["live"]

_SECONDS = 2.0


def live(draw: Callable[[], bool], *, active: bool, key: str, seconds: float = _SECONDS) -> None:
    """Draws a part that runs by itself every two seconds (or so many) while `active`.

    `draw` returns whether anything it shows is going on. When that is no longer what the timer was set for,
    the page runs as a whole once more, which sets or drops the timer: `active` must be the same question.
    """

    @st.fragment(run_every=seconds if active else None, key=key)
    def part() -> None:
        try:
            if active:
                resources.keep_house()
            going_on = draw()
        except MRNLabError as error:
            problem(str(error))
        else:
            if going_on != active:
                st.rerun()

    part()
