"""Each run a task of a Ray cluster, placed by the dispatcher of its store (`jobs.engines.ray_dispatcher`).

The dispatcher tells the store that it looks after the queue. Only where it does not, a process is started
that joins the cluster and makes one (`jobs.engines.ray_connect`): Ray ends a process by force whose cluster
goes away, and neither a page nor a command shall end so. Pages therefore never import ray.
"""

from __future__ import annotations

import functools
import gc
import importlib
import importlib.util
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import ray

from core.errors import MRNLabError
from core.paths import home
from core.recording.owner import this_process
from core.settings import count
from core.store import RunState, Store
from jobs.worker.logs import set_up_logging

SCHEDULER = "ray"
"""What the dispatcher is called in the store."""

JOB = "ray task "
"""How the name begins by which a run's row knows the task that trains it."""

# The dispatcher says that it is there every five seconds.
_GONE_AFTER_S = 20.0
_CONNECT_S = 90.0
# A cluster that is not there is not looked for at every call.
_RETRY_AFTER_S = 30.0


class RayEngine:
    """Sees to it that the store has a dispatcher. `worker` names a class as `MODULE:NAME`, for tests."""

    name = "ray"

    def __init__(self, worker: str = "jobs.worker.loop:Worker") -> None:
        if importlib.util.find_spec("ray") is None:
            raise ModuleNotFoundError("No module named 'ray'", name="ray")
        self._worker = worker
        self._lock = threading.Lock()
        self._problem: tuple[float, str] | None = None

    def ensure_workers(self, store: Store) -> int:
        """Makes a dispatcher where runs wait and none looks after them; 1 where it did, else 0.

        Raises MRNLabError where the cluster cannot be reached, or cannot use this store; the runs stay
        queued.
        """
        if not store.counts()[RunState.QUEUED] or _looked_after(store):
            return 0
        with self._lock:
            if _looked_after(store):
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
        """Nothing: what a scheduler holds for nobody, others wait for."""

    def live_workers(self, store: Store) -> int:
        """How many tasks of the cluster train, and at least 1 where the dispatcher waits for work."""
        states = {RunState.RUNNING, RunState.CANCELLING}
        trained = store.runs(states=states, archived=None, with_facts=False)
        tasks = sum((run.engine_job or "").startswith(JOB) for run in trained)
        return max(tasks, int(_looked_after(store)))


def _looked_after(store: Store) -> bool:
    seen = store.scheduler_seen(SCHEDULER)
    return seen is not None and store.now() - seen.timestamp() < _GONE_AFTER_S


def _connect(store: Store, worker: str) -> None:
    environment = os.environ | {
        # Not in the arguments, which every user of the machine can read.
        "MRNLAB_DB": store.url,
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-m", "jobs.engines.ray_connect", worker],
            env=environment,
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
        lines = (done.stdout.strip() or done.stderr.strip() or "it said nothing").splitlines()
        raise MRNLabError(f"The runs are queued, but not yet on the Ray cluster. {lines[-1]}")


# What a worker on another machine shares with the process that asked for it.


_NAMES = (
    *("MRNLAB_DATA", "MRNLAB_DATA_ROOTS", "MRNLAB_MODELS"),
    *("MRNLAB_ARTEFACTS", "MRNLAB_CHECKPOINT_S", "MRNLAB_HANG_S"),
)


def handed_on() -> dict[str, str]:
    """Settings for machines that do not make these themselves; the laboratory's folder among them."""
    chosen = {name: os.environ[name] for name in _NAMES if os.environ.get(name)}
    return {"MRNLAB_HOME": str(home()), **chosen}


# A run as a task of a Ray cluster. Ray runs task after task in one process, which imports torch once.


@dataclass(frozen=True)
class Settings:
    """What a run takes of the cluster, and who trains it there."""

    cpus: int
    runs_per_gpu: int
    worker: str
    """The class of the worker, `MODULE:NAME`, as the machines of the cluster can import it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """For machines that do not set these themselves: each has its own folders and caches as a rule."""

    @classmethod
    def here(cls, worker: str) -> Settings:
        """As the environment of this process says. Raises MRNLabError where a number is none."""
        cpus = count("MRNLAB_RAY_CPUS") or 1
        shared_by = count("MRNLAB_RUNS_PER_GPU") or 1
        return cls(cpus, shared_by, worker, handed_on())

    def apply(self) -> None:
        """Sets in this process what its machine does not set."""
        for name, value in self.environment.items():
            os.environ.setdefault(name, value)


def train_run(url: str, run_id: int, settings: Settings) -> bool:
    """Claims that run of the store and trains it; False where it is not to be had any more.

    Raises StoreError where the store cannot be reached from here.
    """
    settings.apply()
    context = ray.get_runtime_context()
    job = f"{JOB}{context.get_task_id()} on node {context.get_node_id()}"
    module, _, name = settings.worker.partition(":")
    make = getattr(importlib.import_module(module), name)
    worker = make(_store(url), this_process(), device=_device(), engine_job=job)
    try:
        return bool(worker.train_next(run_id))
    finally:
        _let_go_of_memory()


@functools.lru_cache(maxsize=1)
def _store(url: str) -> Store:
    set_up_logging()
    return Store.open(url)


def _device() -> str:
    """The GPU that Ray gave this task, as torch numbers it in this process, else the CPU."""
    given = [str(one) for one in ray.get_gpu_ids()]
    if not given:
        return "cpu"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    seen = visible.split(",") if visible else []
    return f"cuda:{seen.index(given[0]) if given[0] in seen else given[0]}"


def _let_go_of_memory() -> None:
    """The next run that shares this GPU is in another process perhaps."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        gc.collect()
        torch.cuda.empty_cache()
