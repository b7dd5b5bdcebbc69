"""Holds the end of a script until the server has taken what it drew.

A script passes what it draws to the server's event loop. Where the timer of a part comes as a script ends,
Streamlit 1.67 (`AppSession.request_rerun`) starts the part in a new thread, and drops what the loop has not
taken yet from the ended one: on a busy machine the page stays without its end. A script that waits has not
ended yet, and Streamlit runs the part after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable, Iterator

import streamlit as st

_LOOK_S = 1.0
Draw = Callable[[], None]
_loop: asyncio.AbstractEventLoop | None = None


def serve(loop: asyncio.AbstractEventLoop) -> None:
    """Names the event loop of the server. An `AppTest` has none, and waits for nothing."""
    global _loop
    _loop = loop


@contextlib.contextmanager
def delivered() -> Iterator[None]:
    """Ends once the server has all that was drawn within, however the script ended."""
    try:
        yield
    finally:
        until_taken()


def fragment(*, every: float | None = None, key: str | None = None) -> Callable[[Draw], Draw]:
    """`st.fragment` of which each run is delivered; its first is within the run of its page."""

    def decorated(draw: Draw) -> Draw:
        is_within_page = True

        @st.fragment(run_every=every, key=key)
        @functools.wraps(draw)
        def part() -> None:
            nonlocal is_within_page
            ending = contextlib.nullcontext() if is_within_page else delivered()
            is_within_page = False
            with ending:
                draw()

        return part

    return decorated


def until_taken() -> None:
    """Waits until the server has taken what this script has drawn so far, or has stopped."""
    if _loop is None or not _loop.is_running():
        return
    taken = threading.Event()
    _loop.call_soon_threadsafe(taken.set)
    while not taken.wait(_LOOK_S) and _loop.is_running():
        pass
