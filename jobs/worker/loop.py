"""The worker claims a run, trains it and claims the next: `python -m jobs.worker.loop`, store in MRNLAB_DB.

One process trains run after run, so that only the first pays for importing torch. A crash costs only the
current run: the others stay queued, and the supervisor (`jobs.worker.supervisor`) starts another process.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import FrameType
from typing import TYPE_CHECKING, Any

from core.checkpoints import Checkpoint, checkpoint_seconds
from core.checkpoints.shared_storage import shared_artefacts
from core.config import RunConfig
from core.corpora.types import Corpus
from core.errors import ConfigError, MRNLabError, NotOwner, RunNotFound
from core.events import Event, Note, RunFacts, Saved, Sink, SplitResult
from core.metrics import DEV_LOSS, DEV_SCORE, TOTAL, EpochMetrics
from core.paths import checkpoint_dir, own_log, set_umask
from core.recording.heartbeat import BEAT_S, Heartbeat, StopReason, StopSignal
from core.recording.owner import hostname, this_process
from core.recording.resolve import resolve_base_run
from core.recording.sink import StoreSink
from core.settings import seconds
from core.store import ErrorInfo, Owner, Run, RunState, Store
from core.tasks.scores import score_text
from jobs.worker.cores import shared_cores, train_at_once
from jobs.worker.idle import preload, release_memory, starts_ahead
from jobs.worker.logs import set_up_logging, to_log_file
from jobs.worker.slots import Slot, free_slot
from jobs.worker.timeout import ProgressFile
from jobs.worker.watchdog import supervisor_watchdog

if TYPE_CHECKING:
    from core.training.trainer import Outcome  # which imports torch

_POLL_S = 0.2

_log = logging.getLogger(__name__)
_run_log = logging.getLogger("mrnlab.run")


def _prepare(config: RunConfig) -> Corpus:
    from core.corpora import prepare

    return prepare(config)


def _train(*args: Any, **options: Any) -> Outcome:
    from core.training.trainer import train

    return train(*args, **options)


class Worker:
    """Trains the store's runs one after another. The functions it calls can be replaced, for tests.

    `engine_job` is the name of this worker's job in the scheduler that placed it. With `cores`, the workers
    of this machine share so many.
    """

    def __init__(
        self,
        store: Store,
        owner: Owner,
        *,
        device: str = "auto",
        engine_job: str | None = None,
        cores: int | None = None,
        prepare: Callable[[RunConfig], Corpus] = _prepare,
        train: Callable[..., Any] = _train,
        log_to: Callable[[str], AbstractContextManager[None]] = to_log_file,
        beat_s: float = BEAT_S,
    ) -> None:
        self._store, self._owner, self._device, self._engine_job = store, owner, device, engine_job
        self._prepare, self._train, self._log_to, self._beat_s = prepare, train, log_to, beat_s
        self._cores = cores
        self._terminating: StopReason | None = None
        self._progress: ProgressFile | None = None

    def terminate(self, *, hand_back: bool = False) -> None:
        """Stops the current run with its state saved, and claims no other. Safe in a signal handler.

        `hand_back`: the run is queued again, to be resumed; else it ends as stopped.
        """
        self._terminating = StopReason.EVICTED if hand_back else StopReason.TERMINATED

    def work(self, linger_s: float | None = None) -> int:
        """Trains until no run has been queued for `linger_s`, or `terminate`.

        `linger_s` is that of MRNLAB_LINGER_S by default. Returns the number of runs it took. Raises
        StoreError, and MRNLabError where the setting is invalid.
        """
        linger_s = seconds("MRNLAB_LINGER_S") if linger_s is None else linger_s
        runs = 0
        idle_since = time.monotonic()
        self._progress = ProgressFile(self._store.url, self._owner)
        while not self._terminating:
            self._progress.touch()
            if self.train_next():
                runs += 1
                idle_since = time.monotonic()
                continue
            if time.monotonic() - idle_since >= linger_s:
                break
            time.sleep(_POLL_S)
        self._progress.remove()
        return runs

    def train_next(self, run_id: int | None = None) -> bool:
        """Claims and trains the first queued run, or the run of that number; False where there is none.

        Raises StoreError only.
        """
        run = self._store.claim(self._owner, run_id=run_id, engine_job=self._engine_job, cores=self._cores)
        if run is None:
            return False
        with self._log_to(str(own_log(run.log) or os.devnull)):
            try:
                self._train_run(run)
            except (NotOwner, RunNotFound) as error:
                _log.warning("%s What this worker still had is dropped.", error)
        release_memory()
        return True

    def _train_run(self, run: Run) -> None:
        fields = "".join(f"\n  {field:<16}  {value}" for field, value in run.description_lines)
        _log.info("Run %d, attempt %d:%s", run.id, run.attempt, fields)
        stop = StopSignal()

        def should_stop() -> bool:
            if self._progress is not None:
                self._progress.touch()
            if self._terminating:
                stop.set(self._terminating)
            return stop()

        try:
            with Heartbeat(self._store, run.id, self._owner, stop, self._beat_s):
                outcome = self._attempt(run, stop, should_stop)
        except (NotOwner, RunNotFound):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a training raises is the run's failure, stored and shown
            # Raises NotOwner where the folders are gone because another worker has them.
            self._store.state(run.id, self._owner)
            _log.error("Failed.", exc_info=error)
            self._store.finish(run.id, RunState.FAILED, error=ErrorInfo.from_error(error), owner=self._owner)
            return
        if outcome is not None and not outcome.stopped:
            self._store.finish(
                run.id,
                RunState.SUCCEEDED,
                best_epoch=outcome.best_epoch,
                checkpoint=str(checkpoint_dir(run.id)),
                owner=self._owner,
            )
            forgotten = Checkpoint(checkpoint_dir(run.id), attempt=run.attempt, shared=shared_artefacts())
            forgotten.forget_states()
            _log.info("Succeeded.")
            return
        if stop.reason is StopReason.DISOWNED:
            _log.warning("Run %d is no longer this worker's.", run.id)
            return
        self._stopped(run.id, stop.reason, None if outcome is None else outcome.best_epoch)

    def _stopped(self, run_id: int, reason: StopReason | None, best_epoch: int | None) -> None:
        """Ends a run that was stopped; a run that had to leave its machine is queued again."""
        store = self._store
        with store.transaction():
            state = store.state(run_id, self._owner)
            error = None
            if reason in _UNASKED and state is RunState.RUNNING:
                message = f"{_UNASKED[reason]} {_goes_on_from(store.run(run_id))}"
                error = ErrorInfo("WorkerTerminated", message, "")
                store.request_stop(run_id)
            store.finish(run_id, RunState.CANCELLED, error=error, best_epoch=best_epoch, owner=self._owner)
            if reason is StopReason.EVICTED and state is RunState.RUNNING:
                store.requeue(run_id, resume=True)
        _log.info("Stopped.")

    def _attempt(self, run: Run, stop: StopSignal, should_stop: Callable[[], bool]) -> Outcome | None:
        """Trains one run; None where it was stopped before training began."""
        if run.config_problem is not None:
            raise ConfigError("configuration", run.config_problem)
        config = resolve_base_run(self._store, run.config)
        # A scheduler that places runs chooses the GPU, whatever number was asked for.
        placed = self._engine_job is not None and config.device.startswith("cuda")
        if (config.device == "auto" or placed) and self._device != "auto":
            config = config.with_(device=self._device)
        corpus = self._prepare(config)
        if should_stop():
            return None
        with StoreSink(self._store, run.id, self._owner, stop) as sink:
            checkpoint = Checkpoint(
                checkpoint_dir(run.id),
                attempt=run.attempt,
                # A saved state is of use only where every step before it is on record.
                recorded=self._store.last_metric_steps([run.id]).get(run.id, 0),
                every_s=checkpoint_seconds(),
                settle=sink.settle,
                shared=shared_artefacts(),
            )
            outcome: Outcome = self._train(
                config,
                corpus,
                sink=_logged(sink),
                should_stop=should_stop,
                checkpoint=checkpoint,
                threads=run.threads,
            )
            return outcome


_UNASKED: dict[StopReason | None, str] = {
    StopReason.TERMINATED: "Its worker was told to end.",
    StopReason.EVICTED: "Its machine is to be left empty.",
}
"""The reasons for a stop that no researcher asked for."""


def _goes_on_from(run: Run) -> str:
    if run.saved_step is None:
        return "No step of it was saved: started again, it begins anew."
    return f"It can be resumed from step {run.saved_step:,}."


def _logged(sink: Sink) -> Sink:
    """A sink that logs the events worth a line, and passes every event on."""
    score_names: dict[str, str] = {}

    def log_and_pass_on(event: Event) -> None:
        if isinstance(event, RunFacts):
            score_names.update({task.name: task.score_name for task in event.tasks})
        for line in _log_lines(event, score_names):
            _run_log.info("%s", line)
        sink(event)

    return log_and_pass_on


def _log_lines(event: Event, score_names: Mapping[str, str]) -> list[str]:
    """The log lines of an event; `score_names` by task."""
    match event:
        case RunFacts():
            tasks = ", ".join(f"{task.name} ({len(task.labels)} labels)" for task in event.tasks)
            lines = [
                f"Training {tasks} on {event.device} in {event.precision}: {event.total_steps:,} steps, "
                f"{event.steps_per_epoch:,} an epoch."
            ]
            if event.alignment is not None:
                lines.append(f"Alignment {event.alignment}: {event.alignment_reason}")
            return [*lines, *event.notes]
        case EpochMetrics():
            scores = {task: value for (task, name), value in event.values.items() if name == DEV_SCORE.name}
            mean = scores.pop(TOTAL, None)
            parts = [f"{task} {score_text(value, score_names[task])}" for task, value in scores.items()]
            if mean is not None:
                parts.append(f"mean {score_text(mean, *(score_names[task] for task in scores))}")
            if parts:
                dev_text = f"dev scores {', '.join(parts)}"
            else:
                dev_text = f"dev loss {event.values[TOTAL, DEV_LOSS.name]:.4f}"
            return [f"Epoch {event.epoch} after {event.seconds:.1f} s (step {event.step:,}): {dev_text}."]
        case SplitResult():
            listed = ", ".join(
                f"{score.task} {score.score_name} "
                + (score_text(score.score, score.score_name) if score.is_defined else "undefined")
                for score in event.scores
            )
            return [f"Best epoch {event.epoch} on {event.split}: {listed}."]
        case Saved():
            cost = f"{event.size / 1e6:,.1f} MB in {event.seconds:.1f} s"
            return [f"Saved the training state of step {event.step:,} ({cost})."]
        case Note():
            return [event.message]
        case _:
            return []


def _worker_in(store: Store, slot: Slot) -> Worker:
    _log.info("Worker in slot %d.", slot.number)
    progress = ProgressFile(store.url, this_process())

    def is_needed() -> bool:
        progress.touch()
        return store.claimable(hostname(), shared_cores()) > 0

    if starts_ahead():
        preload(is_needed)
    return Worker(store, this_process(), device=slot.device, cores=shared_cores())


def main(make: Callable[[Store, Slot], Worker] = _worker_in) -> int:
    """Takes a slot and works in it until no run waits.

    Returns 0, or 1 where the store failed or a new process has to go on. `make` makes the worker (tests pass
    a small one).
    """
    faulthandler.enable()
    set_umask()
    set_up_logging()
    worker: Worker | None = None
    ended = False

    def end(number: int, _frame: FrameType | None) -> None:
        nonlocal ended
        if ended:  # the second signal ends it at once
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        ended = True
        if worker is not None:
            worker.terminate()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    try:
        with contextlib.closing(Store.open()) as store, supervisor_watchdog(store):
            with free_slot(store.url, train_at_once(store)) as slot:
                if slot is None:
                    _log.info("As many workers as may train here do so already.")
                    return 0
                worker = make(store, slot)
                if ended:
                    worker.terminate()
                worker.work()
            # A run queued while this worker released its slot saw the slot taken: a new process trains it.
            return int(not ended and store.claimable(hostname(), shared_cores()) > 0)
    except MRNLabError as error:
        _log.error("%s", error)
        return 1


if __name__ == "__main__":
    sys.exit(main())
