"""The costs of a configuration: the recorded parameters, memory and time of its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.events import RunFacts

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
    """The cost of one model, or of all models that a configuration needs for one seed.

    `memory` in bytes is None where the system did not tell. `devices` are those that it was measured on,
    without their numbers ("cpu", "cuda"): costs of different devices are not comparable.
    """

    parameters: int
    trained: int
    memory: int | None
    seconds: float
    devices: tuple[str, ...]
    models: int = 1


def run_cost(facts: RunFacts | None) -> Cost | None:
    """The cost in a run's facts; None without them, and for a run of a version that did not record it."""
    if facts is None or facts.usage is None or facts.parameters is None or facts.trained_parameters is None:
        return None
    usage, device = facts.usage, facts.device.partition(":")[0]
    return Cost(facts.parameters, facts.trained_parameters, usage.peak_memory, usage.seconds, (device,))


def cost_of(by_seed: Iterable[Sequence[Cost | None]]) -> Cost | None:
    """The cost of a configuration from its models' costs, seed by seed: summed over the models of a seed.

    The mean time over seeds; the most parameters and memory of any. Memory is the most of any one model.
    Seeds that lack a model that others have, or know no cost of one, are left out; None where that leaves
    none.
    """
    seeds = list(by_seed)
    models = max(map(len, seeds), default=0)
    complete = [costs for seed in seeds if len(costs := [cost for cost in seed if cost]) == models > 0]
    if not complete:
        return None
    summed = [_joined(costs, sum, len(costs)) for costs in complete]
    mean = sum(cost.seconds for cost in summed) / len(summed)
    return replace(_joined(summed, max, models), seconds=mean)


def _joined(costs: Sequence[Cost], join: Callable[[list[Any]], Any], models: int) -> Cost:
    """Parameters and seconds joined by `sum` or `max`, the most memory, all devices."""
    memory = [cost.memory for cost in costs if cost.memory is not None]
    return Cost(
        join([cost.parameters for cost in costs]),
        join([cost.trained for cost in costs]),
        max(memory) if len(memory) == len(costs) else None,
        join([cost.seconds for cost in costs]),
        tuple(sorted({device for cost in costs for device in cost.devices})),
        models,
    )
