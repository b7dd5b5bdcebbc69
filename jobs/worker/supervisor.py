"""Supervises one worker after another: `python -m jobs.worker.supervisor`, with the store in MRNLAB_DB.

The worker is a child process. When it dies, the supervisor records its exit, which marks its run as lost with
the cause, and starts another worker while runs wait. Every few seconds it also looks for dead workers of
other runs. The worker does not depend on it: if the supervisor is killed, the worker goes on, and its
`supervisor_watchdog` starts another supervisor (docs/adr/0015-supervised-workers.md).
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING

import psutil

from core.errors import MRNLabError
from core.paths import set_umask
from jobs.worker.logs import set_up_logging
from jobs.worker.start import DETACHED, SUPERVISOR, SUPERVISOR_ID

if TYPE_CHECKING:
    from core.store import Store

_LOOK_S = 5.0
# Workers that die one after another before they have claimed a run: torch cannot be imported, say.
_MOST_FAILED_STARTS = 5
_REST_S = 0.5
_PATIENCE_S = 260.0  # with a store that is away when an exit is to be recorded

_log = logging.getLogger(__name__)


class _Signals:
    """Counts signals to end. The first is passed on to the worker, the second kills it."""

    def __init__(self) -> None:
        self.count = 0
        self._worker: psutil.Process | None = None

    def pass_to(self, worker: psutil.Process) -> None:
        """Passes signals on to this worker from now on, also the signals received before."""
        self._worker = worker
        if self.count:
            self._pass_on()

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self._pass_on()

    def _pass_on(self) -> None:
        if self._worker is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended, as wanted
            self._worker.send_signal(signal.SIGTERM) if self.count == 1 else self._worker.kill()


def main(arguments: Sequence[str] | None = None, url: str | None = None) -> int:
    """Supervises workers until no run waits; returns 0, or 1 where no worker could work or the store failed.

    `url` is the store's. Torch is not imported here.
    """
    parser = argparse.ArgumentParser(prog="python -m jobs.worker.supervisor")
    parser.add_argument(
        "module", nargs="?", default="jobs.worker.loop", help="what `python -m` runs as worker"
    )
    parser.add_argument("--adopt", type=int, metavar="PID", help="supervise this worker first")
    options = parser.parse_args(arguments)
    set_umask()
    set_up_logging()
    signals = _Signals()
    signal.signal(signal.SIGTERM, signals)
    signal.signal(signal.SIGINT, signals)
    try:
        worker = _start(options.module, url) if options.adopt is None else psutil.Process(options.adopt)
    except psutil.NoSuchProcess:
        worker = _start(options.module, url)
    signals.pass_to(worker)
    try:
        return _supervise(worker, options.module, url, signals)
    except MRNLabError as error:
        _log.error("%s The worker, if it lives, goes on without being watched.", error)
        return 1


def _start(module: str, url: str | None) -> psutil.Popen:
    environment = {SUPERVISOR_ID: str(os.getpid())} | ({} if url is None else {"MRNLAB_DB": url})
    return psutil.Popen([sys.executable, "-m", module], env=os.environ | environment, **DETACHED)


def _supervise(worker: psutil.Process, module: str, url: str | None, signals: _Signals) -> int:
    # Imported while the worker starts, which takes about as long as its own imports.
    from core.errors import StoreBusy
    from core.paths import database_url
    from core.recording.owner import hostname, process
    from core.settings import seconds
    from core.store import Store
    from core.store.database import retried
    from core.store.engine import parse_url
    from jobs.worker.cores import shared_cores
    from jobs.worker.liveness import LivenessTracker, reap, record_worker_exit
    from jobs.worker.pool import WorkerPool
    from jobs.worker.process import is_alive
    from jobs.worker.standstill import ProgressFile, ended_if_hung

    pool = WorkerPool((*SUPERVISOR, module))
    tracker = LivenessTracker()
    hang_s = seconds("MRNLAB_HANG_S")
    look_s = min(_LOOK_S, hang_s / 4)
    failed_starts, last_problem = 0, ""

    def opened() -> Store:
        """Opens the store while the worker is watched, since a hung worker may lock it."""
        try:
            owner = process(worker.pid)
        except psutil.NoSuchProcess:
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

    def look(store: Store) -> None:
        nonlocal last_problem
        try:
            # Where runs share the cores, one that ends may make room for several.
            if reap(store, tracker) or shared_cores() is not None:
                pool.ensure_workers(store)
            last_problem = ""
        except MRNLabError as error:
            if str(error) != last_problem:  # once, not at every look
                _log.warning("%s", error)
            last_problem = str(error)

    def ended(store: Store, worker: psutil.Process) -> tuple[int | None, bool]:
        """Waits for the worker, records its exit, and returns its exit code and whether it had claimed a run.

        The exit code is None where the worker is no child of this process.
        """
        try:
            owner = process(worker.pid)
        except psutil.NoSuchProcess:
            return None, False
        code: int | None = None
        progress = ProgressFile(store.url, owner)
        with ended_if_hung(owner, progress, hang_s, look_s):  # also while a look waits for the store
            while True:
                try:
                    code = worker.wait(timeout=look_s)
                    break
                except psutil.TimeoutExpired:
                    look(store)
                # A dead orphan stays in the process table where nobody reaps it (process 1 of a container).
                if not is_alive(owner):
                    break
        recorded = retried(
            lambda: record_worker_exit(store, owner, code, forced=signals.count > 1), _PATIENCE_S
        )
        progress.remove()
        return code, recorded

    with contextlib.closing(opened()) as store:
        while True:
            code, claimed = ended(store, worker)
            if signals.count or code == 0 or not retried(lambda: store.claimable(hostname()), _PATIENCE_S):
                return 0
            failed_starts = failed_starts + 1 if code is not None and not claimed else 0
            if failed_starts == _MOST_FAILED_STARTS:
                _log.error(
                    "%d workers ended one after another before they had claimed a run; their output "
                    "is above. The runs stay queued; `mrnlab worker` tries again.",
                    failed_starts,
                )
                return 1
            time.sleep(_REST_S if failed_starts else 0)
            worker = _start(module, url)
            signals.pass_to(worker)


if __name__ == "__main__":
    sys.exit(main())
