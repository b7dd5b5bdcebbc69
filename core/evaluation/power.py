"""How many seeds decide a difference that is undecided, were the true one as observed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.evaluation.statistics import CONFIDENCE, PairedDifference
from core.wording import plural

POWER = 0.8
"""The probability of a verdict for which the number of seeds is planned."""
MOST_SEEDS = 50


@dataclass(frozen=True)
class SeedsNeeded:
    """The number of seeds that decides a difference with probability POWER; None: above MOST_SEEDS.

    `now` are the seeds that both have. `low` and `high` are the numbers at the ends of the 95% interval of
    the spread (chi-squared), since a few seeds know little of a spread.
    """

    now: int
    seeds: int | None
    low: int | None
    high: int | None

    @property
    def more(self) -> int | None:
        """How many seeds are to be added, at least one."""
        return None if self.seeds is None else max(1, self.seeds - self.now)

    @property
    def sentence(self) -> str:
        """`About 9 more seeds (2 to 40)`, or `More than 50 seeds (12 to more)`."""
        if self.more is None:
            least = "" if self.low is None else f" ({self.low} at the least spread that these seeds allow)"
            return f"More than {MOST_SEEDS} seeds{least}"
        low = 1 if self.low is None else max(1, self.low - self.now)
        high = (
            f"more than {MOST_SEEDS - self.now}" if self.high is None else str(max(1, self.high - self.now))
        )
        return f"About {plural(self.more, 'more seed')}" + (f" ({low} to {high})" if high != str(low) else "")


def seeds_to_decide(
    paired: PairedDifference, *, matters: float, level: float = 0.05, level_within: float | None = None
) -> SeedsNeeded | None:
    """The seeds for a verdict on a difference, were its true mean and spread those observed.

    The verdict is that of a two-sided t-test at `level`, or, where the mean is within ± `matters`, of two
    one-sided tests at `level_within` (by default `level`), whichever is sooner. Levels are what a correction
    for several tests leaves.
    None for fewer than two seeds, or without a spread.
    """
    if paired.n < 2 or not paired.sd:
        return None
    from scipy.special import chdtri

    degrees = paired.n - 1
    tail = (1 - CONFIDENCE) / 2
    squares = paired.sd**2 * degrees
    low, high = (math.sqrt(squares / float(chdtri(degrees, side))) for side in (tail, 1 - tail))
    levels = level, level if level_within is None else level_within
    needed = [_least_seeds(paired.mean, sd, matters, *levels) for sd in (paired.sd, low, high)]
    return SeedsNeeded(paired.n, *needed)


def _least_seeds(mean: float, sd: float, matters: float, level: float, level_within: float) -> int | None:
    seeds = np.arange(2, MOST_SEEDS + 1)
    power = np.maximum(
        power_to_differ(seeds, mean / sd, level),
        power_to_be_equivalent(seeds, mean, sd, matters, level_within),
    )
    enough = np.flatnonzero(power >= POWER)
    return int(seeds[enough[0]]) if len(enough) else None


def power_to_differ(
    seeds: NDArray[np.integer[Any]] | Sequence[int], effect: float, level: float
) -> NDArray[np.float64]:
    """The power of the two-sided paired t-test at each number of seeds.

    `effect` is the mean difference in standard deviations (noncentral t; Cohen, Statistical Power Analysis
    for the Behavioral Sciences, 1988). The chance of a verdict on the wrong side is left out.
    """
    from scipy.special import nctdtr, stdtrit

    n = np.asarray(seeds)
    misses = nctdtr(n - 1, abs(effect) * np.sqrt(n), stdtrit(n - 1, 1 - level / 2))
    return 1 - np.asarray(misses, dtype=np.float64)


def power_to_be_equivalent(
    seeds: NDArray[np.integer[Any]] | Sequence[int], mean: float, sd: float, matters: float, level: float
) -> NDArray[np.float64]:
    """A lower bound of the power of two one-sided tests within ± `matters` at each number of seeds.

    It counts the failures of both tests as if they never fell together (Phillips, Power of the two one-sided
    tests procedure in bioequivalence, 1990, has the exact integral).
    """
    from scipy.special import nctdtr, stdtrit

    n = np.asarray(seeds)
    if abs(mean) >= matters:
        return np.zeros(len(n))
    bound = stdtrit(n - 1, 1 - level)
    fails = sum(nctdtr(n - 1, (matters + side * mean) / sd * np.sqrt(n), bound) for side in (1, -1))
    return np.maximum(0.0, 1 - np.asarray(fails, dtype=np.float64))
