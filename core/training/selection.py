"""Which epoch is the best. Development scores choose; test scores cannot even be passed in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["DevMetrics", "SelectBy", "best_epoch"]


SelectBy = Literal["score", "loss", "last"]


@dataclass(frozen=True)
class DevMetrics:
    """What the development sentences say of one epoch: mean score and mean loss over tasks.

    Both are NaN where there are no development sentences.
    """

    epoch: int
    score: float
    loss: float


def best_epoch(history: Sequence[DevMetrics], by: SelectBy, epochs: int) -> int | None:
    """The epoch whose model is kept, of a run of `epochs` epochs, as far as `history` goes.

    The one with the highest score or the lowest loss, the earliest of equals; or the last, once it has ended.
    Epochs whose figure is not a number are passed over; None where no epoch has one.
    """
    if by == "last":
        return epochs if len(history) == epochs else None
    figures = [(metrics.epoch, metrics.score if by == "score" else -metrics.loss) for metrics in history]
    valid = [(epoch, figure) for epoch, figure in figures if not math.isnan(figure)]
    return max(valid, key=lambda pair: (pair[1], -pair[0]))[0] if valid else None
