"""What a supervisor does with the store: it looks after all runs, and buries a worker that has died."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import psutil

from core.errors import MRNLabError, StoreError
from core.store import Owner, Run, RunState, Store
from jobs.engines.local import LocalEngine
from jobs.processes import ending, hostname, is_alive, process
from jobs.reaper import give_up, reap
from jobs.watching import Watch, hang_limit

__all__ = ["Supervision"]

_LOOK_S = 5.0
# Between the tries to tell a store of a death, each of which waits for a busy store by itself.
_RETRY_WAITS_S = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 60.0, 60.0)

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Supervision:
    """One supervisor's work, worker after worker. Raises MRNLabError where MRNLAB_HANG_S is no number."""

    def __init__(self, store: Store, module: str) -> None:
        self._store = store
        self._engine = LocalEngine((sys.executable, "-m", "jobs.supervisor", module))
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
