"""What an observer that stays remembers of the workers, by its own clock.

Workers and observers need not agree about the time, and a wall clock may be set while a run is trained. So
nothing here reads the times in the store: a heartbeat is a value that has changed since the last look, and
silence is counted from when the observer itself first saw the value (after aim, `sdk/reporter/__init__.py`).
Time that the observer spent away (asleep with its machine, held up) is not held against anybody.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from core.errors import NotOwner, RunNotFound
from core.recording.heartbeat import DUE_IN_S
from core.settings import seconds
from core.store import Owner, Run, RunState, Store
from jobs.worker.process import Fate, fate_of, kill

# What one look adds to a silence at most.
_LONGEST_GAP_S = 15.0


def hang_limit() -> float:
    """`MRNLAB_HANG_S`: after how long without progress a living worker is taken for hung; 900 s.

    Raises MRNLabError where the setting is no such number.
    """
    return seconds("MRNLAB_HANG_S")


@dataclass
class Seen:
    """What was last seen of a run being trained, and for how many seconds it has been so.

    `silent_s`: no sign of life; `stuck_s`: no progress; `stopping_s`: it was asked to stop and has not.
    """

    owner: Owner | None
    sign: datetime | None
    progress: tuple[datetime | None, int]
    stopping: bool
    silent_s: float = 0.0
    stuck_s: float = 0.0
    stopping_s: float = 0.0


class Watch:
    """Looked through again and again, with all runs that are being trained; `reap` does so."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looked: float | None = None
        self._seen: dict[int, Seen] = {}

    def look(self, runs: Iterable[Run]) -> dict[int, Seen]:
        """What is known of each of these runs; of others all is forgotten."""
        now = self._clock()
        passed = 0.0 if self._looked is None else min(now - self._looked, _LONGEST_GAP_S)
        self._looked = now
        self._seen = {run.id: self._one(run, passed) for run in runs}
        return self._seen

    def _one(self, run: Run, passed: float) -> Seen:
        progress = (run.progress_at, run.step)
        stopping = run.state is RunState.CANCELLING
        new = Seen(run.owner, run.heartbeat_at, progress, stopping)
        last = self._seen.get(run.id)
        if last is None or last.owner != run.owner:
            return new
        if last.sign == new.sign:
            new.silent_s = last.silent_s + passed
        if last.progress == new.progress:
            new.stuck_s = last.stuck_s + passed
        if last.stopping and new.stopping:
            new.stopping_s = last.stopping_s + passed
        return new


# Finds runs whose worker has died or hangs, and workers that do not stop when asked.


GRACE_S = 40.0
"""How long a run that was asked to stop may take (it saves its state) before its worker is ended by force."""

# A worker on another machine cannot be looked at: its promise of a beat, and what a slow line may take.
_SILENCE_ELSEWHERE_S = DUE_IN_S + 30.0
# One who looks but once must believe the clocks of both machines, so it is content with very late.
_SILENCE_BY_WALL_CLOCK_S = 3 * 3600.0
_GRACE_BY_WALL_CLOCK_S = 180.0


def reap(
    store: Store,
    watch: Watch | None = None,
    *,
    fate: Callable[[Owner], Fate] = fate_of,
    end: Callable[[Owner], bool] = kill,
    grace_s: float = GRACE_S,
) -> list[int]:
    """Marks runs as lost whose worker is gone, silent or stuck; their ids. Those with retries wait again.

    On this machine a worker is gone when its process is, or the machine was started anew. One that cannot
    be looked at is given up after a silence, one that lives here without progress is ended after
    `MRNLAB_HANG_S`, one that does not stop `grace_s` after it was asked to is killed and its run cancelled.
    Whoever stays counts these times with a `watch` and calls this every few seconds; without, only what is
    certain at one look is done.

    Raises StoreError, and MRNLabError where MRNLAB_HANG_S is no number of seconds.
    """
    runs = store.runs(states={RunState.RUNNING, RunState.CANCELLING}, with_facts=False)
    seen = watch.look(runs) if watch is not None else _at_one_look(store, runs)
    hang_s = hang_limit()
    lost = []
    for run in runs:
        owner, known = run.owner, seen[run.id]
        if owner is None:
            continue  # cannot be: the table demands an owner of a run in these states
        where = fate(owner)
        if where is Fate.GONE:
            message = f"The worker of run {run.id} is gone: its process {owner.pid} ended without a word."
            given_up = give_up(store, run, message)
        elif where is Fate.REBOOTED:
            message = f"The worker of run {run.id} is gone: its machine {owner.host} was started anew."
            given_up = give_up(store, run, message)
        elif where is Fate.ELSEWHERE:
            message = (
                f"The worker of run {run.id} on {owner.host} stopped answering {known.silent_s:.0f} s ago."
            )
            given_up = known.silent_s > _SILENCE_ELSEWHERE_S and give_up(store, run, message, silent=True)
        elif known.stopping_s > grace_s:
            _end_by_force(store, run, end, grace_s)
            given_up = False
        else:
            given_up = known.stuck_s > hang_s and _end_hung(store, run, end, hang_s)
        if given_up:
            lost.append(run.id)
    return lost


def give_up(
    store: Store, run: Run, message: str, *, exit_code: int | None = None, silent: bool = False
) -> bool:
    """Marks the run as lost, unless it is no longer that worker's; whether it did.

    `silent`: also unless the worker has spoken since `run` was read.
    """
    try:
        with store.transaction():
            store.state(run.id, run.owner)
            if silent and store.run(run.id).heartbeat_at != run.heartbeat_at:
                return False
            return store.mark_lost(run.id, message, exit_code=exit_code)
    except (NotOwner, RunNotFound):
        return False


def _at_one_look(store: Store, runs: list[Run]) -> dict[int, Seen]:
    """What can be told without memory: very long silences and stops, by the wall clock."""
    now = store.now()
    told = {}
    for run in runs:
        told[run.id] = one = Seen(run.owner, run.heartbeat_at, (run.progress_at, run.step), False)
        if run.heartbeat_at is not None:
            silent_s = now - run.heartbeat_at.timestamp()
            one.silent_s = silent_s if silent_s > _SILENCE_BY_WALL_CLOCK_S else 0.0
        if run.state is RunState.CANCELLING and run.stop_requested_at is not None:
            stopping_s = now - run.stop_requested_at.timestamp()
            one.stopping_s = stopping_s if stopping_s > _GRACE_BY_WALL_CLOCK_S else 0.0
    return told


def _end_by_force(store: Store, run: Run, end: Callable[[Owner], bool], grace_s: float) -> None:
    assert run.owner is not None  # checked by the caller
    # While this lasts the worker cannot finish the run and claim another, which we would then kill.
    with store.transaction():
        store.state(run.id)  # a server holds this run alone, from here on
        current = store.run(run.id)
        if current.state is not RunState.CANCELLING or current.owner != run.owner:
            return
        if not end(run.owner):
            return
        store.add_event(
            run.id,
            "warning",
            f"It had not stopped {grace_s:.0f} s after it was asked to; its worker was killed.",
        )
        store.finish(run.id, RunState.CANCELLED, owner=run.owner)


def _end_hung(store: Store, run: Run, end: Callable[[Owner], bool], hang_s: float) -> bool:
    assert run.owner is not None  # checked by the caller
    with store.transaction():  # for the same reason
        store.state(run.id)
        current = store.run(run.id)
        ended_or_moved = (current.owner, current.progress_at) != (run.owner, run.progress_at)
        if ended_or_moved or current.state is not run.state or not end(run.owner):
            return False
        return store.mark_lost(
            run.id,
            f"The worker of run {run.id} made no progress for {hang_s:.0f} s although its process lived; it "
            "was ended.",
        )
