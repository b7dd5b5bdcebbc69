"""What a run has learned, in numbers, as metrics: a few at each snapshot, beside those of every step.

Needs no torch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import SupportsFloat

from core.mrn.numbers import Numbers, numbers
from core.mrn.relations import MODES, Relations
from core.training.events import TOTAL, StepMetrics

__all__ = ["RELATION_METRICS", "numbers_at", "relation_metrics"]

_FIELDS = tuple(field.name for field in dataclasses.fields(Numbers))

RELATION_METRICS: tuple[str, ...] = tuple(f"{mode}_{name}" for mode in MODES for name in _FIELDS)
"""The names of the numbers of the three covariances."""


def relation_metrics(
    step: int, epoch: float, seconds: float, relations: Relations, objective: SupportsFloat | None = None
) -> StepMetrics:
    """The numbers of the three covariances at a step: `task_effective_rank`, `label_trace`,
    `feature_condition`, `task_strongest` and so on, and `objective` (J) where the prior has one.
    """
    measured = {mode: numbers(relations, mode) for mode in MODES}
    found = {f"{mode}_{name}": getattr(measured[mode], name) for mode in MODES for name in _FIELDS}
    found["objective"] = None if objective is None else float(objective)
    values = {(TOTAL, name): value for name, value in found.items() if value is not None}
    return StepMetrics(step, epoch, seconds, values)


def numbers_at(logged: Mapping[str, float], mode: str, relations: Relations) -> Numbers:
    """The numbers of `mode` as they were logged at a step (name → value), exact; where a run has not logged
    them, those of the `relations` stored at it.
    """
    if f"{mode}_trace" not in logged:
        return numbers(relations, mode)
    return Numbers(
        effective_rank=logged[f"{mode}_effective_rank"],
        trace=logged[f"{mode}_trace"],
        condition=logged[f"{mode}_condition"],
        strongest=logged.get(f"{mode}_strongest"),
    )
