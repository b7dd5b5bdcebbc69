"""The workers of this machine: counts them, and starts more."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

import psutil

from core.recording.owner import hostname
from core.settings import seconds
from core.store import Owner, Store
from jobs.worker.cores import shared_cores, train_at_once
from jobs.worker.idle import starts_ahead
from jobs.worker.process import processor_wait_s
from jobs.worker.reaper import reap, trained_runs
from jobs.worker.slots import end_hung, taken_slots
from jobs.worker.start import SUPERVISOR, start
from jobs.worker.timeout import START_S, ProgressFile, ProgressTimeout


class WorkerPool:
    """Starts supervised workers; two dashboards at once start at worst one worker too many."""

    def __init__(
        self,
        command: Sequence[str] = SUPERVISOR,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command = command
        self._clock = clock
        self._waiting_since: float | None = None
        self._children: list[subprocess.Popen[bytes]] = []
        self._timeouts: dict[Owner, ProgressTimeout] = {}
        self._lock = threading.Lock()

    def ensure_workers(self, store: Store) -> int:
        """Starts workers while runs may be claimed here and slots are free; returns how many it started.

        A worker that hangs in a slot without a run is ended: its own supervisor may have died.
        Raises MRNLabError where no process can be started or a setting is wrong; the runs stay queued then.
        """
        with self._lock:
            for setting in ("MRNLAB_HANG_S", "MRNLAB_LINGER_S"):
                seconds(setting)  # a worker would end at once where one is wrong
            holders = taken_slots(store.url).values()
            # Read before the queue: a run that is claimed in between is counted nowhere.
            busy = {run.owner for run in trained_runs(store)} if holders else set()
            self._end_hung(store, [owner for owner in holders if owner not in busy])
            if not store.claimable(hostname()):
                self._waiting_since = None
                return 0
            # A child that has not taken its slot yet counts too; one that has is counted once.
            live = len(self._live(store))
            idle = live - sum(owner in busy for owner in taken_slots(store.url).values())
            waiting = store.claimable(hostname(), shared_cores())
            if not (waiting or live) and reap(store):  # runs of dead workers held the cores
                waiting = store.claimable(hostname(), shared_cores())
            if self._waiting_since is None:
                self._waiting_since = self._clock()
            elif self._clock() - self._waiting_since > START_S:
                idle = 0  # those that could have taken a run by now are not relied on
            if waiting <= idle:
                return 0  # asked every few seconds; the memory of earlier runs need not be read then
            started = max(0, min(waiting - idle, train_at_once(store) - live))
            for _ in range(started):
                self._children.append(start(self._command, store.url))
            return started

    def expect_run(self, store: Store) -> None:
        """Starts a worker ahead of a run where none is alive and workers linger long enough."""
        with self._lock:
            if starts_ahead() and not self._live(store):
                self._children.append(start(self._command, store.url))

    def live_workers(self, store: Store) -> int:
        """How many workers of this store are alive on this machine."""
        with self._lock:
            return len(self._live(store))

    def _end_hung(self, store: Store, idle: Sequence[Owner]) -> None:
        self._timeouts = {
            owner: self._timeouts.get(owner)
            or ProgressTimeout(ProgressFile(store.url, owner), self._clock, partial(processor_wait_s, owner))
            for owner in idle
        }
        hang_s = seconds("MRNLAB_HANG_S")
        for owner, timeout in self._timeouts.items():
            if timeout.is_hung(hang_s):
                end_hung(store, owner, hang_s)

    def _live(self, store: Store) -> set[int]:
        # Polling also reaps: a finished child that nobody asks for stays a zombie.
        self._children = [child for child in self._children if child.poll() is None]
        live = {child.pid for child in self._children}
        for owner in taken_slots(store.url).values():
            with contextlib.suppress(psutil.NoSuchProcess):
                parent = psutil.Process(owner.pid).ppid()
                live.add(parent if parent in live else owner.pid)  # a supervisor counts for its worker
        return live
