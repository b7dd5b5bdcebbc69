"""The verdict on a difference at one of several looks, by its repeated confidence interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.evaluation.comparison import EQUIVALENT, HIGHER, LOWER, UNDECIDED, verdict_text
from core.evaluation.statistics import PairedDifference, paired_difference
from core.wording import signed_points

_SKEWED = 2.0
"""Standard errors of the skewness of normal samples, above which differences are called skewed."""


@dataclass(frozen=True)
class Looked:
    """A difference at a look: `seeds` pairs of runs, tested at `level` (two-sided).

    `paired` is None where no seed has both scores. `interval` is the repeated confidence interval (Jennison
    and Turnbull, Interim analyses: the repeated confidence interval approach, 1989): over all looks together
    it misses the true difference with the probability that the levels were made for, whenever one stops.
    """

    seeds: int
    level: float
    matters: float
    paired: PairedDifference | None
    is_skewed: bool = False

    @property
    def interval(self) -> tuple[float, float] | None:
        """The t interval at confidence 1 − `level`; None without a spread over seeds."""
        return None if self.paired is None else self.paired.interval(self.level)

    @property
    def verdict(self) -> str:
        """EQUIVALENT where the interval lies within ± `matters`, else the side of 0 on which it lies."""
        if self.interval is None:
            # The same difference with every seed: two one-sided tests decide, as in every table.
            is_equivalent = self.paired is not None and self.paired.p_within(self.matters) == 0.0
            return EQUIVALENT if is_equivalent else UNDECIDED
        low, high = self.interval
        if -self.matters < low and high < self.matters:
            return EQUIVALENT
        return HIGHER if low > 0 else LOWER if high < 0 else UNDECIDED

    @property
    def sentence(self) -> str:
        """`higher, +0.86 [+0.39, +1.34] at level 0.0106`, in points."""
        text = verdict_text(self.verdict, self.matters)
        if self.paired is None:
            return f"{text}, no seed with both scores"
        text += f", {signed_points(self.paired.mean)}"
        if self.interval is None:
            return f"{text}, the same with every seed"
        ends = ", ".join(map(signed_points, self.interval))
        return f"{text} [{ends}] at level {self.level:.3g}" + (
            ", differences skewed" if self.is_skewed else ""
        )


def looked(a: Mapping[int, float], b: Mapping[int, float], level: float, matters: float) -> Looked:
    """The difference a − b over the seeds that both have, tested at `level`."""
    paired = paired_difference(a, b)
    differences = [a[seed] - b[seed] for seed in a.keys() & b.keys()]
    return Looked(len(differences), level, matters, paired, is_skewed(differences))


def is_skewed(differences: Sequence[float]) -> bool:
    """Whether the sample skewness is above twice its standard error in normal samples.

    Normal differences are called skewed in 5% of samples of any size; a few seeds show little: of exponential
    ones 15% are called so at 5 seeds, 28% at 8, 44% at 12, 70% at 20 (tests/properties/test_looks.py).
    """
    n = len(differences)
    if n < 3:
        return False
    centred = np.asarray(differences) - np.mean(differences)
    variance = float(np.mean(centred**2))
    if variance <= 1e-24:
        return False
    skewness = float(np.mean(centred**3)) / variance**1.5 * math.sqrt(n * (n - 1)) / (n - 2)
    error = math.sqrt(6 * n * (n - 1) / ((n - 2) * (n + 1) * (n + 3)))
    return bool(abs(skewness) > _SKEWED * error)
