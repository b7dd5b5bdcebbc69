"""Runs of the store that are the same as planned ones: used instead of being trained once more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from core.config import RunConfig
from core.store import Run, RunState, Store
from jobs.engines import Engine
from jobs.submit import placed, submit

__all__ = ["REUSABLE", "same_runs", "submit_missing"]

REUSABLE: tuple[RunState, ...] = (RunState.QUEUED, RunState.RUNNING, RunState.SUCCEEDED)
"""The states of a run that need not be trained again, the best last."""


def same_runs(store: Store, configs: Collection[RunConfig]) -> dict[RunConfig, Run]:
    """The runs of the store with these very descriptions, seed and all, that succeeded, train or wait.

    Of several a finished one counts before one in training, and that before one that waits; of equals the
    newest. Archived ones are left out. `configs` are as they would be queued (`jobs.submit.placed`). Only
    runs of these configurations are read, however many others there are.
    """
    wanted = set(configs)
    found: dict[RunConfig, Run] = {}
    for run in store.runs_of({config.configuration_id for config in wanted}, REUSABLE):
        known = found.get(run.config)
        better = known is None or REUSABLE.index(run.state) > REUSABLE.index(known.state)
        if run.config_problem is None and run.config in wanted and better:
            found[run.config] = run
    return found


def submit_missing(
    store: Store,
    configs: Sequence[RunConfig],
    sweep: str | None = None,
    *,
    priority: int = 0,
    retries: int = 0,
    engine: Engine | None = None,
    tell: Callable[[str], object] = lambda note: None,
) -> tuple[list[int], list[int]]:
    """As `submit`, but only what `same_runs` does not find is checked and queued.

    Returns the numbers of all runs in the order of `configs`, and of those among them that were there.
    """
    wanted = [placed(config) for config in configs]
    there = same_runs(store, wanted)
    missing = [config for config in wanted if config not in there]
    queued = submit(store, missing, sweep, priority=priority, retries=retries, engine=engine, tell=tell)
    numbers = {config: run.id for config, run in there.items()} | dict(zip(missing, queued, strict=True))
    return [numbers[config] for config in wanted], [numbers[config] for config in wanted if config in there]
