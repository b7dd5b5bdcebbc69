"""Watches one worker after another for a supervisor.

This module imports the store. `jobs.worker.supervisor` starts the first worker before it imports this one,
which takes about as long as the worker's own imports.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable

import psutil

from core.errors import MRNLabError, StoreBusy
from core.paths import database_url
from core.recording.owner import hostname, process
from core.settings import seconds
from core.store import Store
from core.store.database import retried
from core.store.engine import parse_url
from core.store.types import Owner
from jobs.worker.cores import shared_cores
from jobs.worker.pool import WorkerPool
from jobs.worker.process import is_alive
from jobs.worker.reaper import HeartbeatTracker, reap, record_worker_exit
from jobs.worker.signals import Signals
from jobs.worker.start import SUPERVISOR
from jobs.worker.timeout import ProgressFile, ended_if_hung

_LOOK_S = 5.0
# Workers that die one after another before they have claimed a run: torch cannot be imported, say.
_MOST_FAILED_STARTS = 5
_REST_S = 0.5
_PATIENCE_S = 260.0  # with a store that is away when an exit is to be recorded

_log = logging.getLogger(__name__)


def supervise(
    worker: psutil.Process,
    module: str,
    url: str | None,
    start: Callable[[], psutil.Process],
    signals: Signals,
) -> int:
    """Supervises this worker, then those that it starts, until no run waits or a signal has come.

    `module` is what `python -m` runs as worker. Returns 0, or 1 where no worker could work. Raises
    MRNLabError where the store fails.
    """
    hang_s = seconds("MRNLAB_HANG_S")
    look_s = min(_LOOK_S, hang_s / 4)
    with contextlib.closing(_open_watching(worker, url, hang_s, look_s)) as store:
        watch = _Watch(store, WorkerPool((*SUPERVISOR, module)), signals, hang_s, look_s)
        failed_starts = 0
        while True:
            exit_code, has_claimed = watch.until_ended(worker)
            if signals.count or exit_code == 0:
                return 0
            if not retried(lambda: store.claimable(hostname()), _PATIENCE_S):
                return 0
            failed_starts = failed_starts + 1 if exit_code is not None and not has_claimed else 0
            if failed_starts == _MOST_FAILED_STARTS:
                _log.error(
                    "%d workers ended one after another before they had claimed a run; their output "
                    "is above. The runs stay queued; `mrnlab worker` tries again.",
                    failed_starts,
                )
                return 1
            time.sleep(_REST_S if failed_starts else 0)
            worker = start()


def _open_watching(worker: psutil.Process, url: str | None, hang_s: float, look_s: float) -> Store:
    """Opens the store while the worker is watched, since a hung worker may lock it."""
    owner = _owner(worker)
    if owner is None:
        return Store.open(url, shared=True)
    progress = ProgressFile(parse_url(url or database_url()).render_as_string(hide_password=False), owner)
    with ended_if_hung(owner, progress, hang_s, look_s):
        while True:
            lives = is_alive(owner)
            try:
                return Store.open(url, shared=True)
            except StoreBusy:
                if not lives:
                    raise


def _owner(worker: psutil.Process) -> Owner | None:
    """The worker as the store names it, None where it has ended."""
    try:
        return process(worker.pid)
    except psutil.NoSuchProcess:
        return None


class _Watch:
    """Waits for workers to end, and looks for dead workers of other runs meanwhile."""

    def __init__(
        self, store: Store, pool: WorkerPool, signals: Signals, hang_s: float, look_s: float
    ) -> None:
        self._store, self._pool, self._signals = store, pool, signals
        self._hang_s, self._look_s = hang_s, look_s
        self._tracker = HeartbeatTracker()
        self._last_problem = ""

    def until_ended(self, worker: psutil.Process) -> tuple[int | None, bool]:
        """Waits for the worker, records its exit, and returns its exit code and whether it had claimed a run.

        The exit code is None where the worker is no child of this process.
        """
        owner = _owner(worker)
        if owner is None:
            return None, False
        exit_code: int | None = None
        progress = ProgressFile(self._store.url, owner)
        # Also while a look waits for the store.
        with ended_if_hung(owner, progress, self._hang_s, self._look_s):
            while True:
                try:
                    exit_code = worker.wait(timeout=self._look_s)
                    break
                except psutil.TimeoutExpired:
                    self._look()
                # A dead orphan stays in the process table where nobody reaps it (process 1 of a container).
                if not is_alive(owner):
                    break
        has_claimed = retried(
            lambda: record_worker_exit(self._store, owner, exit_code, forced=self._signals.count > 1),
            _PATIENCE_S,
        )
        progress.remove()
        return exit_code, has_claimed

    def _look(self) -> None:
        """Marks the runs of dead workers, and starts workers where they make room. Logs a problem once."""
        try:
            # Where runs share the cores, one that ends may make room for several.
            if reap(self._store, self._tracker) or shared_cores() is not None:
                self._pool.ensure_workers(self._store)
            self._last_problem = ""
        except MRNLabError as error:
            if str(error) != self._last_problem:
                _log.warning("%s", error)
            self._last_problem = str(error)
