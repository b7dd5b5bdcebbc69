"""Levels for testing a difference repeatedly while seeds are added, at planned numbers of seeds (looks).

A test at level α at each of several looks calls a difference that is zero significant far more often than in
a share α of studies. An alpha-spending function says which part of α may be spent by each look; the levels
here keep the whole at α (Lan and DeMets, Discrete sequential boundaries for clinical trials, 1983).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from core.errors import MRNLabError

OBRIEN_FLEMING, POCOCK = "obrien-fleming", "pocock"
"""The shapes: almost nothing is spent at early looks, or nearly the same at each."""

_NODES = 256
_WIDEST = 12.0
"""In standard deviations: what lies beyond is 0 in float64."""


class LooksError(MRNLabError):
    """Looks that are no plan: `looks` are the numbers of seeds, `problem` says what is wrong with them."""

    def __init__(self, looks: Sequence[int], problem: str) -> None:
        self.looks, self.problem = tuple(looks), problem
        super().__init__(f"Looks at {', '.join(map(str, looks)) or 'no number of'} seeds: {problem}")


def _spent_obrien_fleming(share: float, alpha: float) -> float:
    from scipy.special import ndtr, ndtri

    # Each side spends alpha / 2, as in published tables of these boundaries.
    return float(4 * ndtr(ndtri(alpha / 4) / math.sqrt(share)))


def _spent_pocock(share: float, alpha: float) -> float:
    return alpha * math.log1p((math.e - 1) * share)


_SPENT: Mapping[str, Callable[[float, float], float]] = {
    OBRIEN_FLEMING: _spent_obrien_fleming,
    POCOCK: _spent_pocock,
}
SHAPES = tuple(_SPENT)


def check_looks(looks: Sequence[int]) -> None:
    """Raises LooksError unless the numbers of seeds rise, from at least 2."""
    if not looks:
        raise LooksError(looks, "name at least one number of seeds, as 5,8,12,20.")
    if looks[0] < 2:
        raise LooksError(looks, "one seed has no spread; the first look needs at least 2 seeds.")
    if any(later <= earlier for earlier, later in pairwise(looks)):
        raise LooksError(looks, "each look needs more seeds than the one before it, as 5,8,12,20.")


@cache
def look_levels(
    looks: tuple[int, ...], alpha: float = 0.05, shape: str = OBRIEN_FLEMING
) -> tuple[float, ...]:
    """The two-sided level of each look's test, by which the whole plan errs in a share `alpha`.

    `looks` are rising numbers of seeds; the information at a look is its share of the last number. The p of
    the look's paired t-test is held to its level. The levels are exact for normal differences of known
    spread: at few seeds the t-test is close to that, as the simulation in tests/properties/test_looks.py
    measures. The probability of a first crossing at look k is integrated over the paths that crossed at none
    before (Armitage, McPherson and Rowe, Repeated significance tests on accumulating data, 1969), by
    Gauss-Legendre quadrature. Raises LooksError.
    """
    from scipy.special import ndtr

    check_looks(looks)
    shares = [seeds / looks[-1] for seeds in looks]
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    # The density of the sum of differences, on paths without a crossing so far: all of it at 0 before look 1.
    places, density, before = np.zeros(1), np.ones(1), 0.0
    levels = []
    spent_before = 0.0
    for share in shares:
        spent = _SPENT[shape](share, alpha)
        step = math.sqrt(share - before)

        def crossing(
            bound: float,
            places: NDArray[np.float64] = places,
            density: NDArray[np.float64] = density,
            step: float = step,
        ) -> float:
            outside = ndtr((-bound - places) / step) + ndtr((places - bound) / step)
            return float(outside @ density)

        low, high = 0.0, _WIDEST * math.sqrt(share)
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if crossing(middle) > spent - spent_before else (low, middle)
        levels.append(float(2 * ndtr(-high / math.sqrt(share))))
        inside = high * nodes
        kernel = np.exp(-0.5 * ((inside[:, None] - places) / step) ** 2) / (step * math.sqrt(2 * math.pi))
        density, places = (kernel @ density) * weights * high, inside
        before, spent_before = share, spent
    return tuple(levels)
