"""Engines: who starts workers, and where. `MRNLAB_ENGINE`, or `mrnlab --engine`, chooses one.

An engine is one file and one line here. Beyond `local` each needs an extra of the same name to be installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Protocol

from core.errors import MRNLabError
from core.store import Store

__all__ = ["ENGINES", "Engine", "default_engine"]


class Engine(Protocol):
    """Sees to it that queued runs find workers. One too many is harmless: it finds no run and ends.

    Pages and waiting commands call `ensure_workers` again and again. An engine with a scheduler of its own
    also tells the store why runs wait (`Store.set_waiting_for`), and ends what does not stop when asked.
    """

    name: str

    def ensure_workers(self, store: Store) -> int:
        """Starts workers while runs are queued and there is place; returns how many. Raises MRNLabError."""
        ...

    def expect_run(self, store: Store) -> None:
        """Somebody is about to queue a run: has a worker ready where that costs nobody else anything."""
        ...

    def live_workers(self, store: Store) -> int:
        """How many workers of this store are alive."""
        ...


def _local() -> Engine:
    from jobs.engines.local import LocalEngine

    return LocalEngine()


def _ray() -> Engine:
    from jobs.engines.ray import RayEngine

    return RayEngine()


def _slurm() -> Engine:
    from jobs.engines.slurm import SlurmEngine

    return SlurmEngine()


ENGINES: dict[str, tuple[Callable[[], Engine], str]] = {
    "local": (_local, "Workers are processes of this machine."),
    "ray": (_ray, "Each run is a task of a Ray cluster."),
    "slurm": (_slurm, "Workers are jobs of a Slurm cluster."),
}
"""By name: how an engine is made, importing its package only then, and what it does."""


def default_engine() -> Engine:
    """The engine that `MRNLAB_ENGINE` names, else `local`: one object, for it knows what it has started.

    Raises MRNLabError for another name, and where the engine's extra is not installed.
    """
    return _engine(os.environ.get("MRNLAB_ENGINE") or "local")


@cache
def _engine(name: str) -> Engine:
    if name not in ENGINES:
        raise MRNLabError(f"There is no engine '{name}'; MRNLAB_ENGINE can be {', '.join(ENGINES)}.")
    try:
        return ENGINES[name][0]()
    except ModuleNotFoundError as error:
        raise MRNLabError(
            f"The engine '{name}' needs the package {error.name}: pip install 'mrnlab[{name}]'."
        ) from error
