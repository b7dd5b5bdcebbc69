"""Workers as processes of this machine, each in a session of its own, so that Ctrl-C does not reach them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from core.errors import MRNLabError
from core.paths import home
from core.store import Owner, RunState, Store
from jobs.apart import APART
from jobs.engines.slots import gpu_count, slot_count, taken_slots
from jobs.lingering import linger_seconds, starts_ahead
from jobs.processes import hostname
from jobs.watching import hang_limit

__all__ = ["LocalEngine", "start"]

# The folder that holds our packages: `python -m` looks there first.
_ROOT = Path(__file__).resolve().parents[2]
# A worker starts within this time, even on a busy machine.
_PATIENCE_S = 60.0


class LocalEngine:
    """Starts supervised workers. Two dashboards that do so at once start a worker too many at worst."""

    name = "local"

    def __init__(
        self,
        command: Sequence[str] = (sys.executable, "-m", "jobs.supervisor"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command = command
        self._clock = clock
        self._waiting_since: float | None = None
        self._children: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def ensure_workers(self, store: Store) -> int:
        """Starts workers while runs may be claimed here and slots are free; returns how many it started.

        Raises MRNLabError where no process can be started or a setting is wrong; the runs stay queued then.
        """
        with self._lock:
            hang_limit(), linger_seconds()  # a worker would end at once where one is wrong
            # A child that has not taken its slot yet counts too; one that has is counted once.
            live = len(self._live(store))
            waiting = store.claimable(hostname())
            started = max(0, min(waiting - self._idle(store, live, waiting), slot_count() - live))
            for _ in range(started):
                self._children.append(start(self._command, store))
            return started

    def expect_run(self, store: Store) -> None:
        """Starts a worker where none is alive and workers wait for runs long enough."""
        with self._lock:
            if starts_ahead() and not self._live(store):
                self._children.append(start(self._command, store))

    def live_workers(self, store: Store) -> int:
        """How many workers of this store are alive on this machine."""
        with self._lock:
            return len(self._live(store))

    def _idle(self, store: Store, live: int, waiting: int) -> int:
        """How many of the living workers will take a waiting run. One that does not soon is not relied on."""
        if not waiting:
            self._waiting_since = None
            return live
        if self._waiting_since is None:
            self._waiting_since = self._clock()
        if self._clock() - self._waiting_since > _PATIENCE_S:
            return 0
        trained = store.runs(states={RunState.RUNNING, RunState.CANCELLING}, archived=None, with_facts=False)
        owners = {run.owner for run in trained}
        return live - sum(owner in owners for owner in taken_slots(store.url).values())

    def _live(self, store: Store) -> set[int]:
        # Polling also reaps: a finished child that nobody asks for stays a zombie.
        self._children = [child for child in self._children if child.poll() is None]
        started = {child.pid for child in self._children}
        return started | {_counted_as(owner, started) for owner in taken_slots(store.url).values()}


def _counted_as(owner: Owner, supervisors: set[int]) -> int:
    """The process that stands for the holder of a slot: its supervisor, where that is one of these."""
    with contextlib.suppress(psutil.NoSuchProcess):
        parent = psutil.Process(owner.pid).ppid()
        if parent in supervisors:
            return parent
    return owner.pid


def start(command: Sequence[str], store: Store) -> subprocess.Popen[bytes]:
    environment = {
        # Not in the arguments, which every user of the machine can read.
        "MRNLAB_DB": store.url,
        "MRNLAB_HOME": str(home()),
        "PYTHONUNBUFFERED": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    if slot_count() > 1 and gpu_count() == 0 and "OMP_NUM_THREADS" not in os.environ:
        # Workers that share the cores would slow one another down with a thread per core each.
        environment["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // slot_count()))
    logs = home() / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    try:
        with (logs / "workers.log").open("ab") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=log, env=os.environ | environment, cwd=_ROOT, **APART
            )
    except OSError as error:
        raise MRNLabError(
            f"The runs are queued, but no worker could be started: {error.strerror}."
        ) from error
