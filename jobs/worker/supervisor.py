"""Supervises one worker after another: `python -m jobs.worker.supervisor`, with the store in MRNLAB_DB.

The worker is a process of its own, for which this one waits. When it dies, the supervisor records its exit,
which marks its run as lost with the cause, and starts another worker while runs wait. Every few seconds it
also looks for dead workers of other runs. The worker does not depend on it: where the supervisor is killed,
the worker goes on and its `supervisor_watchdog` starts another (docs/adr/0015-supervised-workers.md).
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import psutil

from core.errors import MRNLabError
from core.paths import keep_private
from jobs.worker.logs import set_up_logging

if TYPE_CHECKING:
    from core.store import Store

DETACHED: dict[str, Any] = {"stdin": subprocess.DEVNULL, "start_new_session": True}
"""Options of Popen: a session of its own, so that neither a terminal's Ctrl-C nor its end reaches it."""

if sys.platform == "win32":  # start_new_session means nothing there
    DETACHED["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW

_SUPERVISOR = "MRNLAB_SUPERVISOR"  # tells a worker the process id of its supervisor

_LOOK_S = 5.0
# Workers that die one after another before they have claimed a run: torch cannot be imported, say.
_MOST_FAILED_STARTS = 5
_REST_S = 0.5
# A worker looks so often whether its supervisor lives, and replaces it so often.
_WATCH_S = 1.0
_MOST_REPLACEMENTS = 5
_PATIENCE_S = 260.0  # with a store that is away when an exit is to be recorded

_log = logging.getLogger(__name__)


class _Signals:
    """Counts signals to end. The first is passed on to the worker, the second kills it."""

    def __init__(self) -> None:
        self.count = 0
        self._worker: psutil.Process | None = None

    def pass_to(self, worker: psutil.Process) -> None:
        """From now on to this worker; signals that came before it existed reach it at once."""
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
    """Supervise workers until no run waits. 0, or 1 where no worker could work or the store failed.

    `url` is the store's. Torch is not imported here.
    """
    parser = argparse.ArgumentParser(prog="python -m jobs.worker.supervisor")
    parser.add_argument(
        "module", nargs="?", default="jobs.worker.loop", help="what `python -m` runs as worker"
    )
    parser.add_argument("--adopt", type=int, metavar="PID", help="supervise this worker first")
    options = parser.parse_args(arguments)
    keep_private()
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
    environment = {_SUPERVISOR: str(os.getpid())} | ({} if url is None else {"MRNLAB_DB": url})
    return psutil.Popen([sys.executable, "-m", module], env=os.environ | environment, **DETACHED)


def _supervise(worker: psutil.Process, module: str, url: str | None, signals: _Signals) -> int:
    # Imported while the worker starts, which takes about as long as its own imports.
    from core.errors import StoreBusy
    from core.paths import database_url
    from core.recording.owner import hostname, process
    from core.store import Store
    from core.store.database import retried
    from core.store.engine import parse_url
    from jobs.engines.local import LocalEngine
    from jobs.worker.liveness import LivenessTracker, hang_limit, record_worker_exit
    from jobs.worker.maintenance import resume_lost
    from jobs.worker.process import is_alive
    from jobs.worker.standstill import ProgressFile, ended_if_hung

    engine = LocalEngine((sys.executable, "-m", "jobs.worker.supervisor", module))
    tracker = LivenessTracker()
    hang_s = hang_limit()
    look_s = min(_LOOK_S, hang_s / 4)
    failed_starts, last_problem = 0, ""

    def opened() -> Store:
        """The store. A worker that hangs may keep it from everybody, so it is watched meanwhile."""
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
            resume_lost(store, engine, tracker)
            last_problem = ""
        except MRNLabError as error:
            if str(error) != last_problem:  # once, not at every look
                _log.warning("%s", error)
            last_problem = str(error)

    def ended(store: Store, worker: psutil.Process) -> tuple[int | None, bool]:
        """Wait for the worker and record its exit: its exit code, None where it is no child of this process,
        and whether it had claimed a run.
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
                    "%d workers ended one after another before they had claimed a run; what they said "
                    "stands above. The runs stay queued; `mrnlab worker` tries again.",
                    failed_starts,
                )
                return 1
            time.sleep(_REST_S if failed_starts else 0)
            worker = _start(module, url)
            signals.pass_to(worker)


@contextlib.contextmanager
def supervisor_watchdog(store: Store) -> Iterator[None]:
    """In a worker: while the block runs, its supervisor is replaced where that was killed.

    Does nothing in a worker that was started without one.
    """
    parent = int(os.environ.get(_SUPERVISOR, 0))
    if not parent:
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_watch, args=(store, parent, ended), name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _watch(store: Store, parent: int, ended: threading.Event) -> None:
    from jobs.engines.local import start

    module = sys.modules["__main__"].__spec__  # what `python -m` was given for this process
    assert module is not None  # a supervisor starts modules
    command = (sys.executable, "-m", "jobs.worker.supervisor", "--adopt", str(os.getpid()), module.name)
    replacement: subprocess.Popen[bytes] | None = None
    starts = 0
    while starts < _MOST_REPLACEMENTS and not ended.wait(_WATCH_S):
        if os.getppid() == parent if replacement is None else replacement.poll() is None:
            continue
        starts += 1
        try:
            replacement = start(command, store)
        except MRNLabError as error:
            _log.warning("The process that watched over this worker is gone. %s", error)
        else:
            _log.warning("The process that watched over this worker is gone; another does so now.")


if __name__ == "__main__":
    sys.exit(main())
