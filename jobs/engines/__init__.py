"""Engines: who starts workers, and where. `local` starts processes on this machine."""

from __future__ import annotations

from functools import cache
from typing import Protocol

from core.store import Store

__all__ = ["Engine", "default_engine"]


class Engine(Protocol):
    """Sees to it that queued runs find workers. One too many is harmless: it finds no slot and ends."""

    name: str

    def ensure_workers(self, store: Store) -> int:
        """Starts workers while runs are queued and slots are free; returns how many. Raises MRNLabError."""
        ...

    def live_workers(self, store: Store) -> int:
        """How many workers of this store are alive."""
        ...


@cache
def default_engine() -> Engine:
    """The engine of this process. One object, for it knows the children it has started."""
    from jobs.engines.local import LocalEngine

    return LocalEngine()
