"""Why a training shall end before its time: one flag, set by whoever learns of it first."""

from __future__ import annotations

import threading
from enum import StrEnum

__all__ = ["StopReason", "StopSignal"]


class StopReason(StrEnum):
    """Who wants the training to end."""

    ASKED = "asked"  # a stop was requested in the store
    TERMINATED = "terminated"  # the worker's process was told to end
    EVICTED = "evicted"  # its machine shall be empty: the run goes on elsewhere, or later
    DISOWNED = "disowned"  # the run is no longer this worker's
    UNRECORDED = "unrecorded"  # what it tells cannot be written any more


class StopSignal:
    """Set once; the first reason stays. Called it says whether to stop: `should_stop` of a training.

    A training asks at every step and between batches, so the count of its questions shows that it moves.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self.reason: StopReason | None = None
        self.asked = 0

    def set(self, reason: StopReason) -> None:
        """Asks the training to end at its next step."""
        if self.reason is None:
            self.reason = reason
        self._event.set()

    def __call__(self) -> bool:
        self.asked += 1
        return self._event.is_set()
