"""Engines start workers on this machine or a cluster. `MRNLAB_ENGINE`, or `mrnlab --engine`, chooses one.

An engine is one file and one line here. Beyond `local` each needs an extra of the same name to be installed.
"""

from __future__ import annotations

import importlib
import os
from functools import cache
from typing import Any, Protocol

from core.errors import MRNLabError
from core.paths import home
from core.recording.owner import this_process
from core.store import Store

ENGINES = {"local": "LocalEngine", "ray": "RayEngine", "slurm": "SlurmEngine"}
"""The class of each engine, in the module of the same name."""

_WORKER_SETTINGS = (
    *("MRNLAB_DATA", "MRNLAB_DATA_ROOTS", "MRNLAB_MODELS"),
    *("MRNLAB_ARTEFACTS", "MRNLAB_CHECKPOINT_S", "MRNLAB_HANG_S"),
)


class Engine(Protocol):
    """Finds workers for queued runs. A worker too many is harmless: it finds no run and ends.

    Pages and waiting commands call `ensure_workers` again and again. An engine with a scheduler of its own
    also records why runs wait (`Store.set_waiting_for`), and kills runs that do not stop when asked.
    """

    name: str

    def ensure_workers(self, store: Store) -> int:
        """Starts workers while runs are queued and slots are free; returns how many. Raises MRNLabError."""
        ...

    def expect_run(self, store: Store) -> None:
        """Prepares a worker for a run that is about to be queued, where that costs others nothing."""
        ...

    def live_workers(self, store: Store) -> int:
        """How many workers of this store are alive."""
        ...


def default_engine() -> Engine:
    """The engine that `MRNLAB_ENGINE` names, else `local`; always the same object, as it has state.

    Raises MRNLabError for another name, and where the engine's extra is not installed.
    """
    return _engine(os.environ.get("MRNLAB_ENGINE") or "local")


@cache
def _engine(name: str) -> Engine:
    if name not in ENGINES:
        raise MRNLabError(f"There is no engine '{name}'; MRNLAB_ENGINE can be {', '.join(ENGINES)}.")
    try:
        engine: Engine = getattr(importlib.import_module(f"jobs.engines.{name}"), ENGINES[name])()
    except ModuleNotFoundError as error:
        raise MRNLabError(
            f"The engine '{name}' needs the package {error.name}: pip install 'mrnlab[{name}]'."
        ) from error
    return engine


def worker_environment() -> dict[str, str]:
    """The settings, with the laboratory's folder, for workers on machines without their own."""
    chosen = {name: os.environ[name] for name in _WORKER_SETTINGS if os.environ.get(name)}
    return {"MRNLAB_HOME": str(home()), **chosen}


# What the engines of clusters share


def make_worker(class_name: str, store: Store, *, device: str, job: str) -> Any:
    """Makes a worker of the class `MODULE:NAME` (`jobs.worker.loop.Worker`, except in tests)."""
    module, _, name = class_name.partition(":")
    make = getattr(importlib.import_module(module), name)
    return make(store, this_process(), device=device, engine_job=job)


def sqlite_problem(url: str, machines: int, cluster: str) -> str | None:
    """The reason why an SQLite store cannot serve several machines; None where it is no problem."""
    if not url.startswith("sqlite") or machines < 2:
        return None
    return (
        f"The store is an SQLite file, which the {machines} machines of the {cluster} cluster cannot share; "
        "use a PostgreSQL server (docs/laboratory.md)."
    )
