"""From a training's events to the store, twice a second, without holding up the training."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType

from core.errors import NotOwner, RunNotFound
from core.events import Event, Note, RunFacts, Saved, Snapshot, SplitResult, Usage
from core.metrics import EpochMetrics, StepMetrics
from core.recording.heartbeat import StopReason, StopSignal
from core.store import Owner, RunState, Store
from core.store.database import retried

_FLUSH_S = 0.5
_PATIENCE_S = 60.0  # a server restarts, a disk is tidied


class StoreSink:
    """A sink that buffers events and writes them in one transaction about every half second.

    The first step is written at once.

    Used as a context: leaving it writes what is left. Where a batch cannot be written after bounded
    retries, the next event (or leaving) raises StoreError, so that the run fails instead of going on
    unrecorded. The training never waits for the store, and the buffer holds at most the events of that time:
    60 s, and the last try (30 s where the store is locked). Each flush also reads whether to stop.
    """

    def __init__(
        self,
        store: Store,
        run_id: int,
        owner: Owner,
        stop: StopSignal,
        *,
        flush_s: float = _FLUSH_S,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._run_id, self._owner, self._stop = store, run_id, owner, stop
        self._flush_s = flush_s
        self._buffer: list[tuple[float, Event]] = []
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._ended = threading.Event()
        self._hurry = threading.Event()
        self._has_steps = False
        self._sleep, self._clock = sleep, clock
        self._failure: Exception | None = None
        self._facts: RunFacts | None = None
        self._thread = threading.Thread(target=self._work, name=f"sink-{run_id}", daemon=True)

    def __call__(self, event: Event) -> None:
        """Take an event from the training. Raises the error that made writing impossible, if any."""
        if self._failure is not None:
            raise self._failure
        with self._lock:
            self._buffer.append((self._store.now(), event))
        if not self._has_steps and isinstance(event, StepMetrics):
            self._has_steps = True
            self._hurry.set()  # somebody waits for the first loss

    def settle(self) -> None:
        """Return once all events are on record. Raises the error that makes that impossible."""
        self._flush()
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> StoreSink:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._hurry.set()
        self._thread.join()
        if self._failure is None:
            self._flush()
        if self._failure is not None and error is None:
            raise self._failure

    def _work(self) -> None:
        while not self._ended.is_set():
            self._hurry.wait(self._flush_s)
            self._hurry.clear()
            self._flush()
            if self._failure is not None:
                return

    def _flush(self) -> None:
        """Writes the buffered events, with bounded retries. Sets `_failure` where all of them fail."""
        with self._writing:  # events are recorded in order
            if self._failure is not None:
                return
            with self._lock:
                batch, self._buffer = self._buffer, []
            try:
                state = retried(lambda: self._write(batch), _PATIENCE_S, sleep=self._sleep, clock=self._clock)
                if state is RunState.CANCELLING:
                    self._stop.set(StopReason.ASKED)
            except Exception as error:  # noqa: BLE001 - raised again in the training's own thread
                self._failure = error
                disowned = isinstance(error, (NotOwner, RunNotFound))
                self._stop.set(StopReason.DISOWNED if disowned else StopReason.UNRECORDED)

    def _write(self, batch: Sequence[tuple[float, Event]]) -> RunState:
        """Writes the whole batch in one transaction, all of it or none. Returns the run's state."""
        store, run_id, owner = self._store, self._run_id, self._owner
        if not batch:
            return store.state(run_id, owner)
        with store.transaction():
            state = store.state(run_id, owner)
            metrics: list[StepMetrics | EpochMetrics] = []
            for moment, event in batch:
                match event:
                    case StepMetrics() | EpochMetrics():
                        metrics.append(event)
                    case RunFacts():
                        self._facts = event
                        store.set_facts(run_id, event, owner)
                    case Usage() if self._facts is not None:
                        store.set_facts(run_id, replace(self._facts, usage=event), owner)
                    case Snapshot():
                        store.add_snapshot(run_id, event, owner)
                    case SplitResult():
                        store.add_result(run_id, event, owner)
                    case Note() if event.step is None or not self._is_recorded(event):
                        store.add_event(run_id, "note", event.message, at=moment)
                    case Saved():
                        store.set_saved_step(run_id, event.step, owner)
            if not metrics:
                return state
            store.add_metrics(run_id, metrics, owner)
            last = metrics[-1]
            return store.set_progress(run_id, last.step, float(last.epoch), owner=owner)

    def _is_recorded(self, note: Note) -> bool:
        """Whether the attempt that is resumed has recorded this note."""
        return any(event.message == note.message for event in self._store.events(self._run_id))
