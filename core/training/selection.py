"""Which epoch is the best. Development scores choose; test scores cannot even be passed in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["DevMetrics", "best_epoch"]


@dataclass(frozen=True)
class DevMetrics:
    """One epoch on the development sentences: the means over tasks of score and of cross-entropy."""

    epoch: int
    score: float
    loss: float


def best_epoch(history: Sequence[DevMetrics], by: Literal["score", "loss"]) -> int | None:
    """The epoch with the highest score or the lowest loss; the earliest of equals.

    Epochs whose figure is not a number are passed over; None where no epoch has one.
    """
    figures = [(metrics.epoch, metrics.score if by == "score" else -metrics.loss) for metrics in history]
    valid = [(epoch, figure) for epoch, figure in figures if not math.isnan(figure)]
    return max(valid, key=lambda pair: (pair[1], -pair[0]))[0] if valid else None
