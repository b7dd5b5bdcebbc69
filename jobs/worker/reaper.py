"""Decides which runs are lost: their worker died, fell silent, or hangs. Nothing else marks a run as lost.

Workers and observers need not agree on the time, and a wall clock may be set during a run. So a long-lived
observer does not read the times in the store: a heartbeat is a value that has changed since the last look,
and silence is counted by the observer's own clock from when it first saw the value (after aim,
`sdk/reporter/__init__.py`). Docs: docs/adr/0015-supervised-workers.md.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from core.errors import LossCause, NotOwner, RunNotFound, StoreBusy, WorkerLost
from core.paths import checkpoint_dir
from core.recording.heartbeat import BEAT_S
from core.settings import seconds
from core.store import Owner, Run, RunState, Store
from jobs.worker.process import ProcessStatus, describe_exit, kill, process_status, processor_wait_s
from jobs.worker.timeout import Looks, ProgressFile, without_progress

GRACE_S = 40.0
"""Seconds that a run may take to stop, and save its state, before its worker is killed."""

# A worker on another machine: two missed heartbeats, and what a slow network may take.
_SILENCE_ELSEWHERE_S = 3 * BEAT_S + 30.0
# An observer that looks only once has to trust the clocks of both machines, so it waits much longer.
_SILENCE_BY_WALL_CLOCK_S = 3 * 3600.0
_GRACE_BY_WALL_CLOCK_S = 180.0

_TRAINED = frozenset({RunState.RUNNING, RunState.CANCELLING})

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Observation:
    """Seconds for which a run's worker has sent no heartbeat, made no progress, not obeyed a stop.

    Time that the worker waits for a processor is no lack of progress; `waited_s` is all that it has waited.
    """

    silent_s: float = 0.0
    stuck_s: float = 0.0
    stopping_s: float = 0.0
    waited_s: float = 0.0


class HeartbeatTracker:
    """Keeps the observations of running runs for a long-lived observer."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        waited: Callable[[Owner], float] = processor_wait_s,
    ) -> None:
        self._looks, self._waited = Looks(clock), waited
        self._last: dict[int, tuple[Run, Observation]] = {}

    def observe(self, runs: Iterable[Run]) -> dict[int, Observation]:
        """The observation of each of these runs, and forgets all others."""
        passed = self._looks.passed()
        self._last = {run.id: (run, self._updated(run, passed)) for run in runs}
        return {run_id: observation for run_id, (_, observation) in self._last.items()}

    def _updated(self, run: Run, passed: float) -> Observation:
        last, before = self._last.get(run.id, (None, Observation()))
        waited_s = 0.0 if run.owner is None else self._waited(run.owner)
        if last is None or last.owner != run.owner:
            return Observation(waited_s=waited_s)
        is_stuck = (last.progress_at, last.step) == (run.progress_at, run.step)
        is_stopping = last.state is run.state is RunState.CANCELLING
        stuck_s = before.stuck_s + without_progress(passed, waited_s, before.waited_s)
        return Observation(
            silent_s=before.silent_s + passed if last.heartbeat_at == run.heartbeat_at else 0.0,
            stuck_s=stuck_s if is_stuck else 0.0,
            stopping_s=before.stopping_s + passed if is_stopping else 0.0,
            waited_s=waited_s,
        )


def _observed_once(store: Store, run: Run) -> Observation:
    """An observation from one look: only very long silences and stops, by the wall clock."""
    now = store.now()
    silent_s = 0.0 if run.heartbeat_at is None else now - run.heartbeat_at.timestamp()
    stopping_s = 0.0
    if run.state is RunState.CANCELLING and run.stop_requested_at is not None:
        stopping_s = now - run.stop_requested_at.timestamp()
    return Observation(
        silent_s=silent_s if silent_s > _SILENCE_BY_WALL_CLOCK_S else 0.0,
        stopping_s=stopping_s if stopping_s > _GRACE_BY_WALL_CLOCK_S else 0.0,
    )


def reap(
    store: Store,
    tracker: HeartbeatTracker | None = None,
    *,
    status: Callable[[Owner], ProcessStatus] = process_status,
    end: Callable[[Owner], bool] = kill,
) -> list[int]:
    """Marks runs as lost if their worker is gone, silent or stuck, and returns their ids.

    On this machine a worker is gone when its process is, or the machine was restarted. A worker elsewhere is
    given up after a silence. A worker here without progress is killed after MRNLAB_HANG_S; a worker that
    does not stop within `GRACE_S` is killed too, and its run cancelled. Lost runs with retries wait again.

    A long-lived observer passes its `tracker` and calls this every few seconds. Without it, only what is
    certain at one look is done. Raises StoreError, and MRNLabError where MRNLAB_HANG_S is invalid.
    """
    runs = store.runs(states=_TRAINED)
    observed = tracker.observe(runs) if tracker is not None else None
    hang_s = seconds("MRNLAB_HANG_S")
    lost = []
    for run in runs:
        seen = _observed_once(store, run) if observed is None else observed[run.id]
        assert run.owner is not None  # the schema demands it in these states
        process = status(run.owner)
        if (loss := _loss(store, run, process, seen)) is not None:
            is_lost = record_loss(store, run, loss)
        elif process is ProcessStatus.ELSEWHERE:
            is_lost = False
        elif seen.stopping_s > GRACE_S:
            is_lost = _end_worker(store, run, end)
        else:
            is_lost = seen.stuck_s > hang_s and _end_worker(store, run, end, hang_s)
        if is_lost:
            lost.append(run.id)
    return lost


def trained_runs(store: Store, job_prefix: str = "") -> list[Run]:
    """The running runs by the prefix of their `engine_job`; all by default."""
    runs = store.runs(states=_TRAINED, archived=None)
    return [run for run in runs if (run.engine_job or "").startswith(job_prefix)]


def abandoned(store: Store) -> list[int]:
    """The ids of the runs that `reap` would mark as lost at one look, and changes nothing."""
    return [
        run.id
        for run in store.runs(states=_TRAINED)
        if run.owner is not None and _loss(store, run, process_status(run.owner), _observed_once(store, run))
    ]


def _loss(store: Store, run: Run, process: ProcessStatus, seen: Observation) -> WorkerLost | None:
    """The cause for which the run's worker is gone; None where it may live."""
    assert run.owner is not None
    if process is ProcessStatus.GONE:
        return _process_ended(store, run, None)
    if process is ProcessStatus.REBOOTED:
        message = f"The worker of run {run.id} is gone: its machine {run.owner.host} was started anew."
        return WorkerLost(LossCause.RESTARTED, message)
    if process is ProcessStatus.ELSEWHERE and seen.silent_s > _SILENCE_ELSEWHERE_S:
        host, silent_s = run.owner.host, seen.silent_s
        message = f"The worker of run {run.id} on {host} stopped answering {silent_s:.0f} s ago."
        return WorkerLost(LossCause.SILENT, message)
    return None


def record_loss(store: Store, run: Run, error: WorkerLost) -> bool:
    """Marks the run as lost; False where it has another worker, or its silent worker has sent a heartbeat."""
    try:
        with store.transaction():
            store.state(run.id, run.owner)
            if error.cause is LossCause.SILENT and store.run(run.id).heartbeat_at != run.heartbeat_at:
                return False
            store.mark_lost(run.id, str(error), exit_code=error.exit_code, cause=error.cause)
            return True
    except (NotOwner, RunNotFound):
        return False


def record_worker_exit(store: Store, owner: Owner, code: int | None, *, forced: bool) -> bool:
    """Marks the run of a worker that has ended as lost, and returns whether it had claimed any run.

    Training states that a run no longer needs are removed.

    `forced`: its supervisor killed it, on a second signal. Raises StoreError.
    """
    claimed = store.runs_owned_by(owner)
    for run in claimed:
        if run.state in _TRAINED:
            error = _process_ended(store, run, code, forced=forced)
            record_loss(store, run, error)
            _log.error("%s", error)
        elif run.state is RunState.SUCCEEDED:
            from core.checkpoints import Checkpoint  # pages and commands import this module, and need no more

            Checkpoint(checkpoint_dir(run.id)).forget_states()  # it may have ended before it did so itself
    return bool(claimed)


def _process_ended(store: Store, run: Run, code: int | None, *, forced: bool = False) -> WorkerLost:
    assert run.owner is not None
    if not forced and (hung_s := ProgressFile(store.url, run.owner).given_up_after()) is not None:
        return _hung(run, hung_s)
    how = "was ended by force, for it was told to end a second time" if forced else describe_exit(code)
    message = f"The worker of run {run.id} is gone: its process {run.owner.pid} {how}."
    return WorkerLost(LossCause.FORCED if forced else LossCause.PROCESS_ENDED, message, code)


def _hung(run: Run, after_s: float) -> WorkerLost:
    message = (
        f"The worker of run {run.id} made no progress for {after_s:.0f} s although its process lived; it was "
        "ended."
    )
    return WorkerLost(LossCause.HUNG, message)


def _end_worker(store: Store, run: Run, end: Callable[[Owner], bool], hang_s: float | None = None) -> bool:
    """Kills a worker that does not stop, or makes no progress (`hang_s`); returns whether the run is lost."""
    assert run.owner is not None
    try:
        # During the transaction the worker cannot end this run and claim another, which would then be killed.
        with store.transaction():
            store.state(run.id)  # locks the run's row on a server
            if not _is_still_stuck(store, run, hang_s) or not end(run.owner):
                return False
            if hang_s is None:
                message = f"It had not stopped {GRACE_S:.0f} s after it was asked to; its worker was killed."
                store.add_event(run.id, "warning", message)
                store.finish(run.id, RunState.CANCELLED, owner=run.owner)
                return False
            error = _hung(run, hang_s)
            store.mark_lost(run.id, str(error), cause=error.cause)
            return True
    except StoreBusy:
        # A worker that was stopped inside a transaction holds the lock. Readers still read.
        if _is_still_stuck(store, run, hang_s):
            ProgressFile(store.url, run.owner).give_up(GRACE_S if hang_s is None else hang_s)
            end(run.owner)  # the next look finds its process gone
        return False


def _is_still_stuck(store: Store, run: Run, hang_s: float | None) -> bool:
    """Whether the run has the observed worker and state, and no progress since."""
    current = store.run(run.id)
    moved = hang_s is not None and current.progress_at != run.progress_at
    return (current.owner, current.state) == (run.owner, run.state) and not moved
