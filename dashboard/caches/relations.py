"""Matrices made ready for the player: computed once per runs, snapshots and view, for all sessions."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.paths import database_url
from dashboard.queries.relations_rows import Places

__all__ = ["Pictures", "Ready", "pictures"]

_MOST_BYTES = 200_000_000


@dataclass(frozen=True)
class Ready:
    """What the player gets, and which of the shared rows stands where in the order drawn."""

    frame: dict[str, Any]
    numbers: bytes
    places: Places


class Pictures:
    """The pictures made last, as many as fit into the memory set aside for them."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._kept: OrderedDict[Hashable, Ready] = OrderedDict()
        self._most = most_bytes
        self._lock = threading.Lock()

    def has(self, signature: Hashable) -> bool:
        """Whether that picture is there without being made."""
        return signature in self._kept

    def get(self, signature: Hashable, make: Callable[[], Ready]) -> Ready:
        """The picture of that signature, which says all that it depends on; made where it is not there."""
        with self._lock:
            found = self._kept.get(signature)
        if found is None:
            found = make()
        with self._lock:
            self._kept[signature] = found
            self._kept.move_to_end(signature)
            while len(self._kept) > 1 and sum(len(one.numbers) for one in self._kept.values()) > self._most:
                self._kept.popitem(last=False)
        return found


@st.cache_resource(max_entries=4, show_spinner=False)
def _pictures(url: str) -> Pictures:
    return Pictures()


def pictures() -> Pictures:
    """Those of the store in use."""
    return _pictures(database_url())
