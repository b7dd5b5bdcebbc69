"""Mean, spread and interval over seeds at every point of a curve: `statistics.summary`, column by column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.evaluation.statistics import CONFIDENCE

__all__ = ["Band", "band"]

Floats = NDArray[np.float64]

# As in `statistics`: a spread smaller than this share of the values comes from rounding.
_ROUNDING = 1e-12


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
