"""What a configuration costs: the parameters, memory and time of its runs, as they told them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

COST_NOTE = (
    "Parameters: all weights, and those that training changes. Peak memory: on a GPU the most that torch "
    "held for tensors, on a CPU the largest resident memory of the worker, libraries included. Time: "
    "training and scoring, without loading, waiting and the features of a frozen encoder. STL is a model "
    "per task: its parameters and times are summed over tasks, and its peak memory is that of the largest, "
    "for they train one after another."
)
"""How the columns of a table of costs are to be read. Plain text."""


@dataclass(frozen=True)
class Cost:
    """Of one model, or of all models that a configuration needs for one seed.

    `memory` in bytes is None where the system did not tell. `devices` are those that it was measured on,
    without their numbers ("cpu", "cuda"): costs of different devices are not comparable.
    """

    parameters: int
    trained: int
    memory: int | None
    seconds: float
    devices: tuple[str, ...]
    models: int = 1


def run_cost(facts: Mapping[str, Any]) -> Cost | None:
    """The cost that a run's stored facts tell; None for a run of before they told it."""
    usage = facts.get("usage")
    parameters, trained = facts.get("parameters"), facts.get("trained_parameters")
    if usage is None or parameters is None or trained is None:
        return None
    device = str(facts["device"]).partition(":")[0]
    return Cost(parameters, trained, usage["peak_memory"], usage["seconds"], (device,))


def cost_of(by_seed: Iterable[Sequence[Cost | None]]) -> Cost | None:
    """The cost of a configuration from its models' costs, seed by seed: summed over the models of a seed.

    The mean time over seeds; the most parameters and memory of any. Memory is the most of any one model.
    Seeds that lack a model that others have, or know no cost of one, are left out; None where that leaves
    none.
    """
    found = list(by_seed)
    models = max(map(len, found), default=0)
    seeds = [_of_seed(known) for one in found if len(known := [cost for cost in one if cost]) == models > 0]
    if not seeds:
        return None
    return Cost(
        max(seed.parameters for seed in seeds),
        max(seed.trained for seed in seeds),
        _most(seeds),
        sum(seed.seconds for seed in seeds) / len(seeds),
        _devices(seeds),
        models,
    )


def _of_seed(models: Sequence[Cost]) -> Cost:
    return Cost(
        sum(model.parameters for model in models),
        sum(model.trained for model in models),
        _most(models),
        sum(model.seconds for model in models),
        _devices(models),
        len(models),
    )


def _most(costs: Sequence[Cost]) -> int | None:
    memory = [cost.memory for cost in costs if cost.memory is not None]
    return max(memory) if len(memory) == len(costs) else None


def _devices(costs: Sequence[Cost]) -> tuple[str, ...]:
    return tuple(sorted({device for cost in costs for device in cost.devices}))
