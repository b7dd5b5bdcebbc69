"""The heartbeat of a training, and the signal that ends it early."""

from __future__ import annotations

import logging
import threading
from enum import StrEnum
from types import TracebackType

from core.errors import NotOwner, RunNotFound, StoreError
from core.store import Owner, RunState, Store

BEAT_S = 5.0

_log = logging.getLogger(__name__)


class StopReason(StrEnum):
    """Why a training has to end."""

    ASKED = "asked"  # a stop was requested in the store
    TERMINATED = "terminated"  # the worker's process received a signal
    EVICTED = "evicted"  # its machine is drained: the run goes on elsewhere, or later
    DISOWNED = "disowned"  # the run is no longer this worker's
    UNRECORDED = "unrecorded"  # the store cannot be written any more


class StopSignal:
    """`should_stop` of a training. The first reason stays.

    A training calls it at every step and between batches, so the number of calls shows that it moves.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self.reason: StopReason | None = None
        self.calls = 0

    def set(self, reason: StopReason) -> None:
        """Ask the training to end at its next step."""
        if self.reason is None:
            self.reason = reason
        self._event.set()

    def __call__(self) -> bool:
        self.calls += 1
        return self._event.is_set()


class Heartbeat:
    """Beats while the block runs, and sets the stop signal where the store asks the run to end.

    It has its own thread, so that a long step is not taken for a death. A beat says whether the training has
    moved since the last one: a process can live and be stuck.
    """

    def __init__(
        self, store: Store, run_id: int, owner: Owner, stop: StopSignal, beat_s: float = BEAT_S
    ) -> None:
        self._store, self._run_id, self._owner, self._stop, self._beat_s = store, run_id, owner, stop, beat_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"heartbeat-{run_id}", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _beat(self) -> None:
        calls_before = 0
        while not self._ended.wait(self._beat_s):
            calls = self._stop.calls
            try:
                state = self._store.heartbeat(self._run_id, self._owner, moved=calls != calls_before)
                calls_before = calls
                is_evicted = self._store.is_evicted(self._owner.host)
            except (NotOwner, RunNotFound) as error:
                _log.warning("%s Training ends here.", error)
                self._stop.set(StopReason.DISOWNED)
                return
            except StoreError as error:
                # The sink decides when an unreachable store ends the run; a missed beat alone does not.
                _log.warning("The heartbeat could not be written: %s", error)
                continue
            if state is RunState.CANCELLING:
                self._stop.set(StopReason.ASKED)
            elif is_evicted:
                self._stop.set(StopReason.EVICTED)
