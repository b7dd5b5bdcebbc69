"""What Launch asks again and again while one types: looked up once per sweep."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.config import RunConfig
from core.paths import database_url
from core.store import RunState
from dashboard import resources
from jobs.cost import Cost, cost
from jobs.disk import Disk, disk
from jobs.submit import Preflight, check, placed

__all__ = ["as_queued", "checked", "costs"]

_HASHED = {RunConfig: hash}


@st.cache_data(max_entries=64, ttl=300, show_spinner=False, hash_funcs=_HASHED)
def checked(configs: tuple[RunConfig, ...]) -> Preflight:
    """Whether these runs can be trained here, and what to know before. Raises MRNLabError."""
    return check(configs)


@st.cache_data(max_entries=64, ttl=300, show_spinner=False, hash_funcs=_HASHED)
def as_queued(configs: tuple[RunConfig, ...]) -> tuple[RunConfig, ...]:
    """The same runs as they would be queued. Raises MRNLabError where one's data is not there."""
    return tuple(map(placed, configs))


def costs(configs: Sequence[RunConfig]) -> tuple[Cost, Disk]:
    """What these runs take in time and on disk; told anew when another run has ended. Raises MRNLabError."""
    newest = resources.store().runs(states={RunState.SUCCEEDED}, limit=1)
    return _costs(database_url(), newest[0].id if newest else 0, tuple(configs))


@st.cache_data(max_entries=64, ttl=300, show_spinner=False, hash_funcs=_HASHED)
def _costs(url: str, newest: int, configs: tuple[RunConfig, ...]) -> tuple[Cost, Disk]:
    store = resources.store()
    return cost(store, configs), disk(store, configs)
