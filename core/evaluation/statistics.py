"""Means over seeds with their intervals, and paired differences between two configurations.

Seeds are few, so intervals are Student's t with n - 1 degrees of freedom. One seed has no spread and no
interval: where a number cannot be known it is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = [
    "CONFIDENCE",
    "MeanSD",
    "PairedDifference",
    "holm",
    "paired_difference",
    "significant",
    "summary",
]

CONFIDENCE = 0.95
"""The share of intervals, over many repetitions, that hold the true mean."""

# A spread smaller than this share of the values comes from rounding: 0.5 - 0.4 and 0.6 - 0.5 are equal.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class MeanSD:
    """Mean of n values, standard deviation (n - 1 in the denominator) and 95% interval of the mean.

    `sd`, `low` and `high` are None for a single value.
    """

    mean: float
    sd: float | None
    n: int
    low: float | None
    high: float | None


@dataclass(frozen=True)
class PairedDifference:
    """The mean of a - b over the n seeds that both have, its spread, interval, and the p of a paired t-test.

    `sd`, `low`, `high` and `p` are None for a single seed. `p` is also None where all differences are the
    same: the t-test then divides by nothing, and says nothing.
    """

    mean: float
    sd: float | None
    n: int
    low: float | None
    high: float | None
    p: float | None


def summary(values: Iterable[float]) -> MeanSD:
    """Mean, spread and interval of these values.

    Raises ValueError for none, or for one that is not finite.
    """
    known = _finite(values)
    if not known:
        raise ValueError("there is no mean of no values")
    n = len(known)
    mean = math.fsum(known) / n
    if n == 1:
        return MeanSD(mean, None, 1, None, None)
    sd = math.sqrt(math.fsum((one - mean) ** 2 for one in known) / (n - 1))
    if sd <= _ROUNDING * max(map(abs, known)):
        sd = 0.0
    half = _t_quantile(n - 1) * sd / math.sqrt(n)
    return MeanSD(mean, sd, n, mean - half, mean + half)


def paired_difference(a: Mapping[int, float], b: Mapping[int, float]) -> PairedDifference | None:
    """a - b, seed by seed. Each maps seeds to scores; None where they share no seed.

    Raises ValueError for a score that is not finite.
    """
    seeds = sorted(a.keys() & b.keys())
    if not seeds:
        return None
    differences = [a[seed] - b[seed] for seed in seeds]
    found = summary(differences)
    return PairedDifference(found.mean, found.sd, found.n, found.low, found.high, _p(found))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for being several, in their order (Holm 1979).

    Calling those under 0.05 differences is then wrong, even once, in at most one family of tests in twenty.
    """
    corrected = [0.0] * len(p_values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = least
    return corrected


def significant(p_value: float | None) -> bool:
    """Whether a p-value, corrected for its family, is below 1 - CONFIDENCE. A p-value of None is not."""
    return p_value is not None and p_value < 1 - CONFIDENCE


def _p(differences: MeanSD) -> float | None:
    """Two-sided p of the t-test that the mean is 0."""
    if not differences.sd:
        return None
    from scipy.special import stdtr

    t = differences.mean / (differences.sd / math.sqrt(differences.n))
    return float(2 * stdtr(differences.n - 1, -abs(t)))


def _t_quantile(degrees: int) -> float:
    # scipy.special loads in a tenth of the time of scipy.stats, and pages import this module.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))


def _finite(values: Iterable[float]) -> list[float]:
    known = [float(value) for value in values]
    for value in known:
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a finite score")
    return known
