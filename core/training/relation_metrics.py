"""What a run has learned, in numbers, as metrics: a few at each snapshot, beside those of every step.

Needs no torch.
"""

from __future__ import annotations

import dataclasses

from core.mrn.numbers import numbers
from core.mrn.relations import MODES, Relations
from core.training.events import TOTAL, StepMetrics

__all__ = ["relation_metrics"]


def relation_metrics(
    step: int, epoch: float, seconds: float, relations: Relations, objective: float | None = None
) -> StepMetrics:
    """The numbers of the three covariances at a step: `task_effective_rank`, `label_trace`,
    `feature_condition`, `task_strongest` and so on, and `objective` (J) where the prior has one.
    """
    found = {
        f"{mode}_{name}": value
        for mode in MODES
        for name, value in dataclasses.asdict(numbers(relations, mode)).items()
    }
    found["objective"] = objective
    values = {(TOTAL, name): value for name, value in found.items() if value is not None}
    return StepMetrics(step, epoch, seconds, values)
