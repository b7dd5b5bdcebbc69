"""How well the labels that are seldom seen are found: a mean over all words hides them."""

from __future__ import annotations

import math
from collections.abc import Mapping

__all__ = ["rarer_half_f1"]


def rarer_half_f1(report: Mapping[str, Mapping[str, float]]) -> float | None:
    """The mean F1 of the rarer half of the annotated labels or span types, of an odd number the smaller.

    `report` is that of a TaskScore: a row per label with `f1` and `support`. Of equally rare labels the first
    by name count. None where fewer than two labels are annotated.
    """
    annotated = sorted((row["support"], label) for label, row in report.items() if row["support"])
    rarer = [label for _, label in annotated[: len(annotated) // 2]]
    return math.fsum(report[label]["f1"] for label in rarer) / len(rarer) if rarer else None
