"""What a supervisor does with the store: it looks after all runs, and buries a worker that has died."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

import psutil

from core.errors import MRNLabError, StoreError
from core.paths import home
from core.recording.owner import hostname, process
from core.store import Owner, Run, RunState, Store
from jobs.engines import Engine, default_engine
from jobs.engines.local import LocalEngine, start
from jobs.worker.liveness import Watch, give_up, hang_limit, reap
from jobs.worker.process import ending, is_alive
from jobs.worker.supervisor import SUPERVISOR

_LOOK_S = 5.0
# Between the tries to tell a store of a death, each of which waits for a busy store by itself.
_RETRY_WAITS_S = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 60.0, 60.0)

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Supervision:
    """One supervisor's work, worker after worker. Raises MRNLabError where MRNLAB_HANG_S is no number."""

    def __init__(self, store: Store, module: str) -> None:
        self._store = store
        self._engine = LocalEngine((sys.executable, "-m", "jobs.worker.supervisor", module))
        self._watch = Watch()
        self._look_s = min(_LOOK_S, hang_limit() / 4)
        self._owner: Owner | None = None
        self._has_trained = False
        self._problem = ""

    def wait(self, worker: psutil.Process) -> int | None:
        """Waits until the worker has ended, looking after the store meanwhile; its exit code.

        None where nobody knows it: the worker is not this process's child.
        """
        try:
            self._owner = process(worker.pid)
        except psutil.NoSuchProcess:
            self._owner = None
        self._has_trained = False
        while True:
            try:
                return worker.wait(timeout=self._look_s)
            except psutil.TimeoutExpired:
                self._look()
            # A dead orphan stays in the table where nobody takes leave of it (process 1 of a container).
            if self._owner is None or not is_alive(self._owner):
                return None

    def bury(self, worker: psutil.Process, code: int | None, *, forced: bool) -> bool:
        """Marks what the worker trained as lost; whether it was seen to train anything.

        `forced`: this process has ended it, on a second signal. Raises StoreError where the store stays away.
        """
        how = "was ended by force, for it was told to end a second time" if forced else ending(code)

        def mark() -> None:
            for run in self._trained():
                message = f"The worker of run {run.id} is gone: its process {worker.pid} {how}."
                give_up(self._store, run, message, exit_code=code)
                _log.error("%s", message)

        self._patiently(mark)
        return self._has_trained

    def runs_wait(self) -> bool:
        """Whether runs wait that a worker here may claim. Raises StoreError where the store stays away."""
        return self._patiently(lambda: self._store.claimable(hostname())) > 0

    def _trained(self) -> list[Run]:
        """What the worker trains now."""
        trained = self._store.runs(states={RunState.RUNNING, RunState.CANCELLING}, with_facts=False)
        own = [run for run in trained if run.owner == self._owner]
        self._has_trained = self._has_trained or bool(own)
        return own

    def _look(self) -> None:
        """Finds the dead among all workers of the store, and sees to the runs that wait again for it."""
        try:
            self._trained()
            if reap(self._store, self._watch):
                self._engine.ensure_workers(self._store)
            self._problem = ""
        except MRNLabError as error:
            if str(error) != self._problem:  # once, not at every look
                _log.warning("%s", error)
            self._problem = str(error)

    def _patiently(self, act: Callable[[], _T]) -> _T:
        for wait_s in _RETRY_WAITS_S:
            try:
                return act()
            except StoreError as error:
                _log.warning("%s Trying again in %g s.", error, wait_s)
                time.sleep(wait_s)
        return act()


# Looking after the queue: lost runs are found, missing workers started.
#
# Each worker's supervisor does so already; what is done here covers the loss of all of them.


# Not at every look: it reads the process table.
_TEND_EVERY = 4
# So many workers may be started in vain, no run moving meanwhile, before the waiting gives up.
_MOST_VAIN_STARTS = 5


def tend(store: Store, engine: Engine | None = None) -> list[int]:
    """At one look: marks runs as lost whose worker is surely gone, and sees to it that those which are
    queued again for it find workers. Returns the lost ones. Raises MRNLabError.
    """
    lost = reap(store)
    if lost:
        (engine or default_engine()).ensure_workers(store)
    return lost


class Tender:
    """Called at every look of a waiting loop, or by a program that stays."""

    def __init__(self, store: Store, engine: Engine | None = None) -> None:
        self._store = store
        self._engine = engine or default_engine()
        self._watch = Watch()
        self._looks = self._vain_starts = 0

    def look(self) -> None:
        """Marks lost runs and starts missing workers, at some looks."""
        if self._looks % _TEND_EVERY == 0:
            self.tend()
        self._looks += 1

    def tend(self) -> None:
        """Marks lost runs and starts missing workers."""
        reap(self._store, self._watch)
        self._vain_starts += self._engine.ensure_workers(self._store) > 0

    def moved(self) -> None:
        """Some run has moved since: workers do start."""
        self._vain_starts = 0

    def check(self) -> None:
        """Raises MRNLabError where one worker after another ends before it has claimed a run (torch cannot
        be imported, say).
        """
        if self._vain_starts >= _MOST_VAIN_STARTS:
            raise MRNLabError(
                f"The runs are queued, but {self._vain_starts} workers ended as soon as they had started; "
                f"the end of {home() / 'logs' / 'workers.log'} says why."
            )


# A worker's care for being watched: where its supervisor was killed, it starts another.


_GUARD_LOOK_S = 1.0
_MOST_STARTS = 5


class Guardian:
    """Looks after the supervisor while the block runs. Does nothing where the worker was started without."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parent = int(os.environ.get(SUPERVISOR, 0))
        self._next: subprocess.Popen[bytes] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="guardian", daemon=True)

    def __enter__(self) -> Guardian:
        if self._parent:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._parent:
            self._thread.join()

    def _look(self) -> None:
        # What `python -m` was given for this process.
        module = sys.modules["__main__"].__spec__
        assert module is not None  # a supervisor starts modules
        command = (sys.executable, "-m", "jobs.worker.supervisor", "--adopt", str(os.getpid()), module.name)
        starts = 0
        while starts < _MOST_STARTS and not self._ended.wait(_GUARD_LOOK_S):
            if self._is_watched():
                continue
            starts += 1
            try:
                self._next = start(command, self._store)
            except MRNLabError as error:
                _log.warning("The process that watched over this worker is gone. %s", error)
            else:
                _log.warning("The process that watched over this worker is gone; another does so now.")

    def _is_watched(self) -> bool:
        if self._next is None:
            return os.getppid() == self._parent
        return self._next.poll() is None
