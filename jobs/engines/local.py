"""Workers as processes of this machine, each in a session of its own, so that Ctrl-C does not reach them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from core.errors import MRNLabError
from core.paths import home
from core.store import RunState, Store
from jobs.engines.slots import gpu_count, slot_count, taken_slots

__all__ = ["LocalEngine"]


class LocalEngine:
    """Starts `python -m jobs.worker`. Two dashboards that do so at once start a worker too many at worst."""

    name = "local"

    def __init__(self, command: Sequence[str] = (sys.executable, "-m", "jobs.worker")) -> None:
        self._command = command
        self._children: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def ensure_workers(self, store: Store) -> int:
        """Starts workers while runs are queued and slots are free; returns how many it started.

        Raises MRNLabError where no process can be started; the runs stay queued then.
        """
        with self._lock:
            queued = store.counts()[RunState.QUEUED]
            # A child that has not taken its slot yet counts too; one that has is counted once.
            free = slot_count() - len(self._live(store))
            started = max(0, min(queued, free))
            for _ in range(started):
                self._children.append(_start(self._command, store))
            return started

    def live_workers(self, store: Store) -> int:
        """How many workers of this store are alive on this machine."""
        with self._lock:
            return len(self._live(store))

    def _live(self, store: Store) -> set[int]:
        # Polling also reaps: a finished child that nobody asks for stays a zombie.
        self._children = [child for child in self._children if child.poll() is None]
        return {child.pid for child in self._children} | {one.pid for one in taken_slots(store.url).values()}


def _start(command: Sequence[str], store: Store) -> subprocess.Popen[bytes]:
    logs = home() / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {
        # Not in the arguments, which every user of the machine can read.
        "MRNLAB_DB": store.url,
        "MRNLAB_HOME": str(home()),
        "PYTHONUNBUFFERED": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    if slot_count() > 1 and gpu_count() == 0:
        # Workers that share the cores would slow one another down with a thread per core each.
        share = max(1, (os.cpu_count() or 1) // slot_count())
        environment.setdefault("OMP_NUM_THREADS", str(share))
    flags = 0
    if sys.platform == "win32":  # start_new_session means nothing there
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    try:
        with (logs / "workers.log").open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                # The folder that holds our packages: `-m` looks there first.
                cwd=Path(__file__).resolve().parents[2],
                start_new_session=True,
                creationflags=flags,
            )
    except OSError as error:
        raise MRNLabError(
            f"The runs are queued, but no worker could be started: {error.strerror}."
        ) from error
