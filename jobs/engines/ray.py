"""Each run as a task of a Ray cluster, placed by the dispatcher of its store (`jobs.engines.ray_dispatcher`).

The dispatcher records in the store that it is alive. Only if it is not, a process is started that joins the
cluster and makes one (`jobs.engines.ray_connect`). Pages and commands never import ray: Ray
kills a process whose cluster goes away.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from core.errors import MRNLabError
from core.store import RunState, Store
from jobs.worker.reaper import trained_runs

SCHEDULER = "ray"
"""The dispatcher's name in the store."""

JOB = "ray task "
"""Prefix of `Run.engine_job` for tasks of Ray."""

# The dispatcher records every five seconds that it is alive.
_GONE_AFTER_S = 20.0
_CONNECT_S = 90.0
# A cluster that cannot be reached is not tried at every call.
_RETRY_AFTER_S = 30.0


class RayEngine:
    """Makes sure that the store has a dispatcher. `worker` names a class as `MODULE:NAME`, for tests."""

    name = "ray"

    def __init__(self, worker: str = "jobs.worker.loop:Worker") -> None:
        if importlib.util.find_spec("ray") is None:
            raise ModuleNotFoundError("No module named 'ray'", name="ray")
        self._worker = worker
        self._lock = threading.Lock()
        self._problem: tuple[float, str] | None = None

    def ensure_workers(self, store: Store) -> int:
        """Makes a dispatcher where runs wait without one; returns how many it made (0 or 1).

        Raises MRNLabError where the cluster cannot be reached, or cannot use this store; the runs stay
        queued.
        """
        if not store.counts()[RunState.QUEUED] or _has_dispatcher(store):
            return 0
        with self._lock:
            if _has_dispatcher(store):
                return 0
            if self._problem is not None and time.monotonic() < self._problem[0]:
                raise MRNLabError(self._problem[1])
            try:
                _connect(store, self._worker)
            except MRNLabError as error:
                self._problem = (time.monotonic() + _RETRY_AFTER_S, str(error))
                raise
            self._problem = None
            return 1

    def expect_run(self, store: Store) -> None:
        """Does nothing: a reserved slot of the cluster would be taken from others."""

    def live_workers(self, store: Store) -> int:
        """How many tasks of the cluster train, at least 1 while the dispatcher waits for runs."""
        return max(len(trained_runs(store, JOB)), int(_has_dispatcher(store)))


def _has_dispatcher(store: Store) -> bool:
    seen = store.scheduler_seen(SCHEDULER)
    return seen is not None and store.now() - seen.timestamp() < _GONE_AFTER_S


def _connect(store: Store, worker: str) -> None:
    """Makes the dispatcher from a separate process. Raises MRNLabError with that process's output."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "jobs.engines.ray_connect", worker],
            # Not in the arguments, which every user of the machine can read.
            env=os.environ | {"MRNLAB_DB": store.url, "RAY_USAGE_STATS_ENABLED": "0"},
            # The folder that holds our packages: `-m` looks there first.
            cwd=Path(__file__).resolve().parents[2],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_CONNECT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise MRNLabError(
            f"The runs are queued, but the Ray cluster did not answer within {_CONNECT_S:.0f} s."
        ) from error
    if done.returncode:
        lines = (done.stdout.strip() or done.stderr.strip() or "no reason given").splitlines()
        raise MRNLabError(f"The runs are queued, but not yet on the Ray cluster. {lines[-1]}")
