"""Means over seeds with their intervals, and paired differences between two configurations.

Seeds are few, so intervals are Student's t with n - 1 degrees of freedom. One seed has no spread and no
interval: where a number cannot be known it is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.evaluation.scores import Counts, score_of_counts

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


# Mean, spread and interval over seeds at every point of a curve: `statistics.summary`, column by column.


Floats = NDArray[np.float64]

# As in `statistics`: a spread smaller than this share of the values comes from rounding.


@dataclass(frozen=True)
class Band:
    """What S seeds say at each of X points. NaN where a number cannot be known: the mean of no values, the
    spread and the interval of fewer than two.
    """

    mean: Floats
    sd: Floats
    n: NDArray[np.int64]
    low: Floats
    high: Floats


def band(values: Floats) -> Band:
    """Mean, standard deviation (n - 1) and 95% interval (Student's t) of each column of `values` (S, X).

    A seed without a finite value at a point does not count there.
    """
    known = np.isfinite(values)
    whole = bool(known.all())
    n = known.sum(axis=0)
    values = values if whole else np.where(known, values, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = values.sum(axis=0) / n
        deviations = values - mean
        if not whole:
            deviations[~known] = 0.0
        sd = np.sqrt(np.einsum("sx,sx->x", deviations, deviations) / (n - 1))
    sd[n < 2] = np.nan
    largest = np.maximum(values.max(axis=0, initial=0.0), -values.min(axis=0, initial=0.0))
    sd[sd <= _ROUNDING * largest] = 0.0
    half = _quantiles(n) * sd / np.sqrt(np.maximum(n, 1))
    return Band(mean, sd, n, mean - half, mean + half)


def _quantiles(n: NDArray[np.int64]) -> Floats:
    """The quantile of Student's t for each number of values; NaN for fewer than two."""
    # scipy.special loads in a tenth of the time of scipy.stats, and pages import this module.
    from scipy.special import stdtrit

    counts = np.arange(n.max(initial=0) + 1)
    quantiles = np.full(len(counts), np.nan)
    quantiles[2:] = stdtrit(counts[2:] - 1, (1 + CONFIDENCE) / 2)
    return quantiles[n]


# Would the difference of two systems be as large on other text? Approximate randomisation over sentences.
#
# Noreen, Computer-Intensive Methods for Testing Hypotheses, 1989; for scores that are no mean over
# sentences,
# as F1: Yeh, More accurate tests for the statistical significance of result differences, COLING 2000.


ROUNDS = 10_000
_AT_ONCE = 4_000_000
"""Coins tossed at once: 16 MB of them."""


@dataclass(frozen=True)
class Randomised:
    """The mean over seeds of the difference of scores, and its two-sided p over sentences."""

    difference: float
    p: float
    seeds: int
    sentences: int


def randomisation_test(
    a: Sequence[Counts], b: Sequence[Counts], *, rounds: int = ROUNDS, seed: int = 2000
) -> Randomised:
    """Tests the mean over seeds of score(a) - score(b), each (sentences, 3) of `sentence_counts`.

    a[k] and b[k] were trained with the same seed. In each round a coin per sentence decides whether the two
    systems exchange what they predicted of it. One coin serves all seeds of a sentence: under the hypothesis
    only whole sentences are exchangeable, since a sentence that suits one system's kind does so whatever the
    seed. With a coin per sentence and seed, as if seeds made new sentences, the test is wrong far too often
    (tests/properties/test_randomisation.py measures both). The seeds are taken as they are: whether other
    seeds would differ is asked by `paired_difference`.

    p is (b + 1) / (rounds + 1) for b rounds with a difference at least as large (Noreen's estimate, never 0).
    The coins come from `seed`, so that the same predictions always have the same p.

    Raises ValueError where there is no seed, their numbers differ, or the sentences are not the same.
    """
    if not len(a) or len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} seeds cannot be paired")
    one, other = np.stack(a), np.stack(b)
    if one.shape != other.shape or not np.array_equal(one[..., 0], other[..., 0]):
        raise ValueError("the systems were not tested on the same sentences")
    moved = other - one
    differs = moved.any(axis=(0, 2))
    # (sentences that differ, seeds * 3): what a gains where the two are exchanged, small whole numbers.
    moved = moved[:, differs].transpose(1, 0, 2).reshape(-1, 3 * len(one)).astype(np.float32)
    totals = one.sum(axis=1), other.sum(axis=1)
    observed = _difference(*totals)
    random = np.random.default_rng(seed)
    step = max(1, _AT_ONCE // max(1, len(moved)))
    extreme = 0
    for start in range(0, rounds, step):
        tossed = min(step, rounds - start)
        bits = random.integers(0, 256, (tossed, -(-len(moved) // 8)), dtype=np.uint8)
        coins = np.unpackbits(bits, axis=1, count=len(moved)).astype(np.float32)
        gained = (coins @ moved).astype(np.float64).reshape(tossed, *totals[0].shape)
        differences = _difference(totals[0] + gained, totals[1] - gained)
        extreme += int(np.sum(np.abs(differences) >= abs(observed) - _ROUNDING))
    return Randomised(float(observed), (extreme + 1) / (rounds + 1), len(one), one.shape[1])


def _difference(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """The mean over seeds of the difference of scores; counts are (..., seeds, 3)."""
    return np.asarray(np.mean(score_of_counts(a) - score_of_counts(b), axis=-1))
