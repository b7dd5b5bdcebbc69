"""Parts of a page that refresh while runs are active, and the message when the store is away.

Streamlit runs a part when its timer in the browser fires. Where that comes as the script of the whole page
ends, a busy server drops what the script has sent last: the page stays without its end. So the last part of
each page, which draws nothing, reports by its first run that the browser has all before it, and every other
part draws the page again where that report is late.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import RerunException

from core.errors import MRNLabError, StoreError
from dashboard.shared import resources
from dashboard.shared.states import problem
from dashboard.text import escape

_LOOK_S = 1.0
_REPORT_S = 3 * resources.LIVE
"""How long after a script's end its page may be without a report; twice as long after each new drawing."""
_WHOLE_RUN = "whole_run"


@dataclass
class _WholeRun:
    """The last run of a session's whole page.

    ended        when its script ended, in seconds since 1970; None before
    has_arrived  whether the browser has all of it
    redrawn      how often the page was drawn again since a report came
    """

    ended: float | None = None
    has_arrived: bool = False
    redrawn: int = 0

    @property
    def is_late(self) -> bool:
        """Whether there is no report though there should be one."""
        waited = time.time() - self.ended if self.ended is not None else 0.0
        return not self.has_arrived and waited > _REPORT_S * 2**self.redrawn


@contextlib.contextmanager
def whole_run() -> Iterator[None]:
    """Marks the begin and the end of the script of a whole page, and draws its last part."""
    run = _WholeRun(redrawn=_last_run().redrawn)
    st.session_state[_WHOLE_RUN] = run
    is_followed = False
    try:
        yield
    except RerunException:
        is_followed = True
        raise
    finally:
        if not is_followed:
            _look_out()
            run.ended = time.time()


def _last_run() -> _WholeRun:
    run: _WholeRun = st.session_state.get(_WHOLE_RUN, _WholeRun())
    return run


def _redraw_if_lost(times_drawn: int) -> None:
    """Draws the page again where its end is missing. Asked in a part that was drawn so often since the page.

    The first time that a part's timer fires, the timer of the report may be about to.
    """
    run = _last_run()
    if times_drawn and (run.ended is None or (times_drawn > 1 and run.is_late)):
        run.redrawn += 1
        st.rerun()


def live(draw: Callable[[], None], pace: Callable[[], float | None], *, key: str) -> None:
    """Draw a part that reruns every `pace()` seconds; None is never.

    If the pace has changed, the whole page reruns, which resets the timer. This is checked before drawing:
    a click between the start of a part and such a rerun would be lost. If the store goes away, the part
    stays as it is below a warning until the store is back.
    """
    seconds = pace()
    times_drawn = 0

    @st.fragment(run_every=seconds, key=key)
    def part() -> None:
        nonlocal times_drawn
        _redraw_if_lost(times_drawn)
        above = st.empty()
        before, times_drawn = times_drawn, times_drawn + 1
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


def _look_out() -> None:
    """Draws nothing, last on each page. Its first look reports that the browser has the page.

    While nothing runs, it draws the page again when runs or the queue have changed elsewhere.
    """
    try:
        pace = resources.pace()
        known = _queue_state() if pace is None else None
    except StoreError:  # the page says it, and comes back when the store does
        _last_run().has_arrived = True
        return

    def changed() -> bool:
        run = _last_run()
        if run.ended is not None:
            run.has_arrived, run.redrawn = True, 0
        return pace is None and _queue_state() != known

    rerun_when(changed, every=resources.IDLE if pace is None else pace, key="look_out")


def rerun_when(changed: Callable[[], bool], *, every: float = resources.LIVE, key: str | None = None) -> None:
    """Rerun the page as soon as that is so; looks every so many seconds. Draws nothing."""
    looks = 0

    @st.fragment(run_every=every, key=key)
    def look() -> None:
        nonlocal looks
        try:
            is_time = changed()
        except StoreError as error:
            _await_store(st.empty(), error)
            return
        _redraw_if_lost(looks)
        looks += 1
        if is_time:
            st.rerun()

    look()


def _queue_state() -> object:
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
    st.warning(
        f"{escape(error)} This page comes back by itself as soon as the store can be read.",
        icon=":material/database_off:",
    )
    rerun_when(lambda: resources.reachable() is None)
