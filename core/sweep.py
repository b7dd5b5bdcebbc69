"""Lists of values to runs: every combination once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from core.config import FIELD_HELP, RunConfig, applicable_fields
from core.config.conditions import CONTEXT_FIELDS
from core.errors import ConfigError

__all__ = ["LISTED", "MOST_RUNS", "expand"]

MOST_RUNS = 10_000
"""The most runs of one sweep. More are a slip, and would hold the page or the terminal for minutes."""

LISTED: tuple[str, ...] = tuple(
    name for name in FIELD_HELP if name not in ("corpus", "columns", "tasks", "learn")
)
"""The fields of which a sweep can have several values. The others are lists themselves, or name the data."""


def expand(
    base: Mapping[str, Any],
    lists: Mapping[str, Sequence[Any]],
    preset: Mapping[str, Any] = MappingProxyType({}),
) -> list[RunConfig]:
    """The runs that `base` and every combination of the values in `lists` make.

    The first list varies slowest and seeds fastest, so the seeds of a configuration stand together. STL
    makes a run for each task. A field that only some of the runs have (λ, where MTL and MRN are swept) is
    dropped for the others, and runs that are then the same are made once. The values of `preset` are used
    where nothing else is said and the run has the field.

    Raises ConfigError naming the field: an empty list, a value that is not possible, a field that none of the
    runs has, or more than MOST_RUNS runs.
    """
    base = {_name(field): value for field, value in base.items()}
    lists = {_name(field): list(values) for field, values in lists.items()}
    for field, values in lists.items():
        if not values:
            raise ConfigError(field, f"{field}: the list is empty; name at least one value.")
    seeds = lists.pop("seed", None)
    # Before anything is built: the product of a few long lists would fill the memory.
    _check_number(math.prod(map(len, lists.values())), lists)
    combinations = [
        base | dict(zip(lists, chosen, strict=True)) for chosen in itertools.product(*lists.values())
    ]
    preset = {_name(field): value for field, value in preset.items()}
    used = frozenset[str]().union(*(_applicable(preset | values) for values in combinations))
    runs: dict[RunConfig, None] = {}
    for combination in combinations:
        applicable = _applicable(preset | combination)
        proposed = {name: value for name, value in preset.items() if name in applicable}
        # A field that no run of the sweep has stays, for RunConfig to refuse it and say why.
        kept = {name: value for name, value in combination.items() if name in applicable or name not in used}
        for run in _per_task(proposed | kept):
            runs |= dict.fromkeys(_seeded(run, seeds))
            _check_number(len(runs), {**lists, "seed": seeds or ()})
    return list(runs)


def _seeded(values: Mapping[str, Any], seeds: Sequence[Any] | None) -> Iterator[RunConfig]:
    """A run for each seed. The description is checked once, with the smallest and the largest seed."""
    if seeds is None:
        yield RunConfig.build(**values)
    elif all(type(seed) is int for seed in seeds):
        smallest = RunConfig.build(**values, seed=min(seeds))
        RunConfig.build(**values, seed=max(seeds))
        yield from (smallest.model_copy(update={"seed": seed}) for seed in seeds)
    else:
        yield from (RunConfig.build(**values, seed=seed) for seed in seeds)


def _check_number(runs: int, lists: Mapping[str, Sequence[Any]]) -> None:
    if runs > MOST_RUNS:
        longest = max(lists, key=lambda name: len(lists[name]))
        raise ConfigError(
            longest,
            f"{longest}: these lists make more than {MOST_RUNS:,} runs; name fewer values, or launch in "
            "parts.",
        )


def _name(field: str) -> str:
    return "lambda" if field == "lambda_" else field


def _applicable(values: Mapping[str, Any]) -> frozenset[str]:
    defaults = RunConfig.model_fields
    return applicable_fields(*(values.get(name, defaults[name].default) for name in CONTEXT_FIELDS))


def _per_task(values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    tasks = values.get("tasks")
    if values.get("paradigm") != "stl" or not tasks:
        yield dict(values)
        return
    if isinstance(tasks, str):
        tasks = [task.strip() for task in tasks.split(",") if task.strip()]
    for task in tasks:
        yield {**values, "tasks": (task,)}
