"""Engines: who starts workers, and where. `MRNLAB_ENGINE`, or `mrnlab --engine`, chooses one.

An engine is one file and one line here. Beyond `local` each needs an extra of the same name to be installed.
"""

from __future__ import annotations

import importlib
import os
from functools import cache
from typing import Protocol, cast

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


ENGINES: dict[str, tuple[str, str]] = {
    "local": ("jobs.engines.local:LocalEngine", "Workers are processes of this machine."),
    "ray": ("jobs.engines.ray_engine:RayEngine", "Each run is a task of a Ray cluster."),
    "slurm": ("jobs.engines.slurm:SlurmEngine", "Workers are jobs of a Slurm cluster."),
}
"""By name: where an engine is, and what it does."""


def default_engine() -> Engine:
    """The engine that `MRNLAB_ENGINE` names, else `local`: one object, for it knows what it has started.

    Raises MRNLabError for another name, and where the engine's extra is not installed.
    """
    return _engine(os.environ.get("MRNLAB_ENGINE") or "local")


@cache
def _engine(name: str) -> Engine:
    if name not in ENGINES:
        raise MRNLabError(f"There is no engine '{name}'; MRNLAB_ENGINE can be {', '.join(ENGINES)}.")
    module, _, kind = ENGINES[name][0].partition(":")
    try:
        return cast(Engine, getattr(importlib.import_module(module), kind)())
    except ModuleNotFoundError as error:
        raise MRNLabError(
            f"The engine '{name}' needs the package {error.name}: pip install 'mrnlab[{name}]'."
        ) from error
