"""A run as a task of a Ray cluster. Ray runs task after task in one process, which imports torch once."""

from __future__ import annotations

import functools
import gc
import importlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

import ray

from core.errors import MRNLabError
from core.store import Store
from jobs.engines.environment import handed_on
from jobs.engines.ray_engine import JOB
from jobs.logs import set_up_logging
from jobs.processes import this_process

__all__ = ["Settings", "train_run"]


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
        cpus = _number("MRNLAB_RAY_CPUS", "how many cores a run takes")
        shared_by = _number("MRNLAB_RUNS_PER_GPU", "how many runs may share a GPU")
        return cls(cpus, shared_by, worker, handed_on())

    def apply(self) -> None:
        """Sets in this process what its machine does not set."""
        for name, value in self.environment.items():
            os.environ.setdefault(name, value)


def _number(name: str, meaning: str) -> int:
    chosen = os.environ.get(name) or "1"
    if not chosen.isdecimal() or int(chosen) < 1:
        raise MRNLabError(f"{name} is '{chosen}'; set it to {meaning} (1 or more).")
    return int(chosen)


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
