"""How long the queue still takes: asked at every look, told anew twice a minute."""

from __future__ import annotations

import streamlit as st

from core.paths import database_url
from dashboard import resources
from jobs.estimate import queue_left

__all__ = ["time_left"]


def time_left(training: int, waiting: int) -> float | None:
    """Seconds until so many runs have ended; None where it cannot be told. Raises MRNLabError."""
    return _time_left(database_url(), training, waiting)


@st.cache_data(ttl=30, max_entries=16, show_spinner=False)
def _time_left(url: str, training: int, waiting: int) -> float | None:
    return queue_left(resources.store())
