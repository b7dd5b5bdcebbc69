"""Lists of values to runs, every combination once."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from core.config import FIELD_HELP, RunConfig, applicable_fields, public_name
from core.config.fields import CONTEXT_FIELDS, comma_list
from core.errors import FIELD, ConfigError
from core.plain_text import shortened

MOST_RUNS = 10_000
"""The most runs of one sweep. More are a slip, and would hold the page or the terminal for minutes."""

LISTED: tuple[str, ...] = tuple(
    name for name, help_ in FIELD_HELP.items() if name != "corpus" and not help_.is_list
)
"""The fields of which a sweep can have several values. The others are lists themselves, or name the data."""


def expand(
    base: Mapping[str, Any],
    lists: Mapping[str, Sequence[Any]],
    preset: Mapping[str, Any] = MappingProxyType({}),
) -> list[RunConfig]:
    """The runs that `base` and every combination of the values in `lists` make.

    The first list varies slowest and seeds fastest, so the seeds of a configuration stand together. STL
    makes a run for each task. `lists` may have groups of tasks as `tasks`: MTL and MRN leave out those of one
    task where STL is swept too. A field that only some of the runs have (λ, where MTL and MRN are swept) is
    dropped for the others, and runs that are then the same are made once. The values of `preset` are used
    where nothing else is said and the run has the field.

    Raises ConfigError naming the field: an empty list, a value that is not possible, a field that none of the
    runs has, or more than MOST_RUNS runs.
    """
    base = {public_name(field): value for field, value in base.items()}
    lists = {public_name(field): list(values) for field, values in lists.items()}
    for field, values in lists.items():
        if not values:
            raise ConfigError(field, f"{FIELD}: the list is empty; name at least one value.")
    seeds = lists.pop("seed", None)
    # Before anything is built: the product of a few long lists would fill the memory.
    check_number(math.prod(map(len, lists.values())), lists)
    combinations = [
        base | dict(zip(lists, chosen, strict=True)) for chosen in itertools.product(*lists.values())
    ]
    if "tasks" in lists and "stl" in lists.get("paradigm", ()):
        # A group of one task is for STL; MTL and MRN train the larger ones.
        combinations = [
            values for values in combinations if values["paradigm"] == "stl" or len(values["tasks"]) > 1
        ]
    preset = {public_name(field): value for field, value in preset.items()}
    has = [_applicable(preset | values) for values in combinations]
    used = frozenset[str]().union(*has)
    runs: dict[RunConfig, None] = {}
    seen: set[str] = set()  # STL learns a task once, however many groups have it
    for combination, applicable in zip(combinations, has, strict=True):
        proposed = {name: value for name, value in preset.items() if name in applicable}
        # A field that no run of the sweep has stays, for RunConfig to refuse it and say why.
        kept = {name: value for name, value in combination.items() if name in applicable or name not in used}
        for run in _per_task(proposed | kept):
            if (text := repr(run)) in seen:
                continue
            seen.add(text)
            runs |= dict.fromkeys(_seeded(run, seeds))
            check_number(len(runs), {**lists, "seed": seeds or ()})
    return list(runs)


def _seeded(values: Mapping[str, Any], seeds: Sequence[Any] | None) -> list[RunConfig]:
    """The run with each of these seeds."""
    if seeds is None:
        return [RunConfig.build(**values)]
    if any(type(seed) is not int for seed in seeds):
        return [RunConfig.build(**{**values, "seed": seed}) for seed in seeds]
    return with_seeds(RunConfig.build(**{**values, "seed": min(seeds)}), seeds)


def with_seeds(run: RunConfig, seeds: Sequence[int]) -> list[RunConfig]:
    """The run with each of these seeds. Raises ConfigError where one is not possible."""
    # Seeds between two that are possible are possible, and a copy takes a twentieth of a check.
    for seed in (min(seeds), max(seeds)):
        _check_seed(seed)
    return [run if seed == run.seed else run.model_copy(update={"seed": seed}) for seed in seeds]


@lru_cache
def _check_seed(seed: int) -> None:
    RunConfig.build(corpus="demo", tasks=("pos",), paradigm="stl", seed=seed)


def check_number(runs: int, lists: Mapping[str, Sequence[Any]]) -> None:
    """Raises ConfigError for the longest list where these make more than MOST_RUNS runs."""
    if runs > MOST_RUNS:
        longest = max(lists, key=lambda name: len(lists[name]))
        raise ConfigError(
            longest,
            f"{FIELD}: these lists make more than {MOST_RUNS:,} runs; name fewer values, or launch in parts.",
        )


def _applicable(values: Mapping[str, Any]) -> frozenset[str]:
    context = [values.get(name, FIELD_HELP[name].default) for name in CONTEXT_FIELDS]
    # As text: a value of another type, which RunConfig refuses, may have no hash.
    return applicable_fields(*(None if value is None else str(value) for value in context))


def _per_task(values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    tasks = values.get("tasks")
    if values.get("paradigm") != "stl" or not tasks:
        yield dict(values)
        return
    if isinstance(tasks, str):
        tasks = comma_list(tasks)
    for task in tasks:
        yield {**values, "tasks": (task,)}


def alternatives(text: str, field: str) -> list[str]:
    """The texts that a text with lists in braces expands to: `a=1` and `a=2` for `a={1|2}`, all combinations.

    Raises ConfigError for that field: braces that do not close or lack a value, or too many combinations.
    """
    parts = re.split(r"\{([^{}]*)\}", text)
    fixed, lists = parts[::2], [part.split("|") for part in parts[1::2]]
    if re.search("[{}]", "".join(fixed)) or not all(value.strip() for values in lists for value in values):
        raise ConfigError(
            field,
            f"{FIELD}: '{shortened(text)}' has braces that are no list; write the values between two braces "
            "and separate them by |, as {0.2|0.9}.",
        )
    check_number(math.prod(map(len, lists)), {field: lists})
    texts = (
        "".join(itertools.chain.from_iterable(zip(fixed, (*values, ""), strict=True)))
        for values in itertools.product(*lists)
    )
    return list(dict.fromkeys(texts))
