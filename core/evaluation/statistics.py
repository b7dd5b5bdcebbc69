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

from core.tasks.scores import Counts, score_of_counts

CONFIDENCE = 0.95
"""The share of intervals, over many repetitions, that hold the true mean."""

MATTERS = 0.0005
"""The smallest difference that matters, unless a reader sets it: published tables differ by 0.05 points."""

# A standard deviation below this fraction of the values comes from rounding: 0.5 - 0.4 equals 0.6 - 0.5.
_ROUNDING = 1e-12
ROUNDS = 10_000
_AT_ONCE = 4_000_000
"""Coins tossed at once: 16 MB of them."""

Floats = NDArray[np.float64]


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
class PairedDifference(MeanSD):
    """The mean of a - b over the n seeds that both have, with the p of a paired t-test.

    `p` is None for a single seed, and where all differences are the same: the t-test then divides by nothing.
    """

    p: float | None

    def p_within(self, matters: float) -> float | None:
        """The p of two one-sided t-tests that the difference is below `matters` in size.

        Schuirmann, A comparison of the two one-sided tests procedure and the power approach, 1987. None for a
        single seed, and where all differences are the same; but 0 where three or more are that small.
        """
        if not self.sd:
            return 0.0 if self.n > 2 and abs(self.mean) < matters else None
        from scipy.special import stdtr

        return float(stdtr(self.n - 1, (abs(self.mean) - matters) / (self.sd / math.sqrt(self.n))))

    def interval(self, level: float) -> tuple[float, float] | None:
        """The t interval at confidence 1 − `level`; None where there is no spread over seeds."""
        if not self.sd:
            return None
        from scipy.special import stdtrit

        half = float(-stdtrit(self.n - 1, level / 2)) * self.sd / math.sqrt(self.n)
        return self.mean - half, self.mean + half


def summary(values: Iterable[float]) -> MeanSD:
    """Mean, standard deviation and interval. Raises ValueError for no values, or one that is not finite."""
    numbers = [float(value) for value in values]
    if not numbers:
        raise ValueError("there is no mean of no values")
    if wrong := [value for value in numbers if not math.isfinite(value)]:
        raise ValueError(f"{wrong[0]} is not a finite score")
    n = len(numbers)
    mean = math.fsum(numbers) / n
    if n == 1:
        return MeanSD(mean, None, 1, None, None)
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in numbers) / (n - 1))
    if sd <= _ROUNDING * max(map(abs, numbers)):
        sd = 0.0
    half = float(_t_quantile(n - 1)) * sd / math.sqrt(n)
    return MeanSD(mean, sd, n, mean - half, mean + half)


def paired_difference(a: Mapping[int, float], b: Mapping[int, float]) -> PairedDifference | None:
    """a - b, seed by seed. Each maps seeds to scores; None where they share no seed.

    Raises ValueError for a score that is not finite.
    """
    seeds = sorted(a.keys() & b.keys())
    if not seeds:
        return None
    differences = [a[seed] - b[seed] for seed in seeds]
    mean = summary(differences)
    p = None
    if mean.sd:
        from scipy.special import stdtr  # a tenth of the time of scipy.stats, and pages import this module

        p = float(2 * stdtr(mean.n - 1, -abs(mean.mean / (mean.sd / math.sqrt(mean.n)))))
    return PairedDifference(**vars(mean), p=p)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for being several, in their order (Holm 1979).

    Calling those under 0.05 differences is then wrong, even once, in at most one family of tests in twenty.
    """
    corrected = [0.0] * len(p_values)
    least = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = least
    return corrected


def _t_quantile(degrees: Any) -> Any:
    """Half the width of a CONFIDENCE interval in standard errors, by degrees of freedom (Student's t)."""
    from scipy.special import stdtrit

    return stdtrit(degrees, (1 + CONFIDENCE) / 2)


@dataclass(frozen=True)
class Band:
    """`summary` at each of X points.

    NaN where a number cannot be known: the mean of no values, the standard deviation and the interval of
    fewer than two.
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
    is_finite = np.isfinite(values)
    whole = bool(is_finite.all())
    n = is_finite.sum(axis=0)
    values = values if whole else np.where(is_finite, values, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = values.sum(axis=0) / n
        deviations = values - mean
        if not whole:
            deviations[~is_finite] = 0.0
        sd = np.sqrt(np.einsum("sx,sx->x", deviations, deviations) / (n - 1))
    sd[n < 2] = np.nan
    largest = np.maximum(values.max(axis=0, initial=0.0), -values.min(axis=0, initial=0.0))
    sd[sd <= _ROUNDING * largest] = 0.0
    quantiles = np.full(n.max(initial=0) + 1, np.nan)  # by number of values: few differ, and each costs
    quantiles[2:] = _t_quantile(np.arange(1, max(1, len(quantiles) - 1)))
    half = quantiles[n] * sd / np.sqrt(np.maximum(n, 1))
    return Band(mean, sd, n, mean - half, mean + half)


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
    """Approximate randomisation over sentences, which tests whether the difference holds on other text.

    Tests the mean over seeds of score(a) - score(b); a[k] and b[k], each (sentences, k) of `sentence_counts`,
    were trained with the same seed. In each round a coin per sentence decides whether the two systems
    exchange their predictions of it. One coin serves all seeds: a sentence that suits one system does so
    whatever the seed, so that only whole sentences are exchangeable. A coin per sentence and seed would be
    wrong far too often (tests/properties/test_randomisation.py measures both). Whether other seeds would
    differ is asked by `paired_difference`.

    p is (b + 1) / (rounds + 1) for b rounds with a difference at least as large (Noreen, Computer-Intensive
    Methods for Testing Hypotheses, 1989; for F1, Yeh, More accurate tests for the statistical significance of
    result differences, COLING 2000). `seed` makes the coins: the same predictions always have the same p.
    Raises ValueError where there is no seed, their numbers differ, or the sentences are not the same.
    """
    exchanged = exchange([counts[:, None] for counts in a], [counts[:, None] for counts in b], rounds, seed)
    return Randomised(float(exchanged.observed[0]), float(exchanged.p[0]), len(a), len(a[0]))


@dataclass(frozen=True)
class Exchanged:
    """The mean difference of scores in each of B parts of a text, and of R rounds of exchanges (R, B).

    NaN where it is undefined.
    """

    observed: Floats
    rounds: Floats

    @property
    def p(self) -> Floats:
        """(B,) two-sided; NaN where nothing was observed."""
        # Not so where the scores of a round are undefined: those count against a difference.
        extreme = np.sum(~(np.abs(self.rounds) < np.abs(self.observed) - _ROUNDING), axis=0)
        p: Floats = (extreme + 1) / (len(self.rounds) + 1)
        return np.where(np.isfinite(self.observed), p, np.nan)

    @property
    def sd(self) -> Floats:
        """(B,) the standard deviation over rounds, in which the two are alike."""
        sd: Floats = np.sqrt(np.nanmean(np.nan_to_num(self.rounds) ** 2, axis=0))
        return sd


def exchange(
    a: Sequence[Counts],
    b: Sequence[Counts],
    rounds: int = ROUNDS,
    seed: int = 2000,
    *,
    complements: bool = False,
) -> Exchanged:
    """The rounds of `randomisation_test` of each of B parts of the text, by the same coins.

    a[k] and b[k] are (sentences, B, k): what each sentence adds to the score of each part. Of a part those
    seeds count with which both scores are defined. With `complements` the last part is the whole, and what
    follows are the B − 1 differences between the whole and each other part: 2B − 1 in all. Raises ValueError
    as `randomisation_test`.
    """
    if not len(a) or len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} seeds cannot be paired")
    first, second = np.stack(a), np.stack(b)
    if first.shape != second.shape or not np.array_equal(first[..., 0], second[..., 0]):
        raise ValueError("the systems were not tested on the same sentences")
    totals = first.sum(axis=1), second.sum(axis=1)
    moved = second - first
    differs = moved.any(axis=(0, 2, 3))
    # (sentences that differ, seeds * B * k): what a gains where the two are exchanged. Of counts small whole
    # numbers, which float32 adds exactly. Columns in which nothing moves need no product.
    number: type[np.floating[Any]] = np.float32 if np.issubdtype(first.dtype, np.integer) else np.float64
    moved = moved[:, differs].transpose(1, 0, 2, 3).reshape(int(differs.sum()), totals[0].size)
    moves = moved.any(axis=0)
    moved = moved[:, moves].astype(number)

    def scores(of_parts: NDArray[Any]) -> Floats:
        """The scores of counts (..., B, k)."""
        if complements:
            others = of_parts[..., -1:, :] - of_parts[..., :-1, :]
            of_parts = np.concatenate([of_parts, others], axis=-2)
        return score_of_counts(of_parts)

    gaps = scores(totals[0]) - scores(totals[1])
    counted: NDArray[np.bool_] = np.isfinite(gaps)
    seeds = np.where(counted.any(axis=0), counted.sum(axis=0), np.nan)
    observed = np.where(counted, gaps, 0.0).sum(axis=0) / seeds
    random = np.random.default_rng(seed)
    step = max(1, min(_AT_ONCE // max(1, len(moved)), _AT_ONCE // max(1, gaps.size)))
    means = np.empty((rounds, len(observed)))
    for start in range(0, rounds, step):
        tossed = min(step, rounds - start)
        bits = random.integers(0, 256, (tossed, -(-len(moved) // 8)), dtype=np.uint8)
        coins = np.unpackbits(bits, axis=1, count=len(moved)).astype(number)
        gained = np.zeros((tossed, totals[0].size))
        gained[:, moves] = coins @ moved
        gained = gained.reshape(tossed, *totals[0].shape)
        differences = scores(totals[0] + gained) - scores(totals[1] - gained)
        means[start : start + tossed] = np.where(counted, differences, 0.0).sum(axis=1) / seeds
    return Exchanged(observed, means)
