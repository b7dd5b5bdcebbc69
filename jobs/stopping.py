"""Why a training shall end before its time: one flag, set by whoever learns of it first."""

from __future__ import annotations

import threading
from enum import StrEnum

__all__ = ["StopReason", "StopSignal"]


class StopReason(StrEnum):
    """Who wants the training to end."""

    ASKED = "asked"  # a stop was requested in the store
    TERMINATED = "terminated"  # the worker's process was told to end
    DISOWNED = "disowned"  # the run is no longer this worker's
    UNRECORDED = "unrecorded"  # what it tells cannot be written any more


class StopSignal:
    """Set once; the first reason stays. Called it says whether to stop: `should_stop` of a training."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.reason: StopReason | None = None

    def set(self, reason: StopReason) -> None:
        """Asks the training to end at its next step."""
        if self.reason is None:
            self.reason = reason
        self._event.set()

    def __call__(self) -> bool:
        return self._event.is_set()
