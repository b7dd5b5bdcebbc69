"""Whether a learned correlation is a relation: over seeds, against a bound, and against a control.

A test against zero calls chance related: a correlation of 0.025 that all seeds learn differs from zero, and
matters to nobody. So a cell is tested against a bound, and where there is a control against what is learned
without a relation (docs/adr/0048-verdicts-on-relations.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.evaluation.statistics import CONFIDENCE, holm

RELATED, OPPOSED, NEGLIGIBLE, UNDECIDED = "related", "opposed", "none that matters", "undecided"
"""The verdicts on a cell."""
BOUND = 0.1
"""The smallest correlation that matters, Cohen's (1988) for a small one."""
_LARGEST = 1 - 1e-6
"""Fisher's z is infinite at 1, which float32 correlations reach."""

Floats = NDArray[np.floating]
Bools = NDArray[np.bool_]


class CellVerdict(NamedTuple):
    """The verdict on row i and column j: mean, 95% interval (None with one seed), p corrected (Holm)."""

    i: int
    j: int
    mean: float
    interval: tuple[float, float] | None
    p: float | None
    verdict: str
    controlled: bool

    @property
    def is_decided(self) -> bool:
        """Whether it is not undecided."""
        return self.verdict != UNDECIDED


@dataclass(frozen=True)
class RelationVerdicts:
    """The verdicts on the cells of a symmetric matrix, over seeds.

    `tested` (n, n) are the cells of the family. `mean` (n, n) is over seeds; `low` and `high` are the 95%
    interval by Fisher's z of each cell by itself, NaN with one seed. `p` is corrected for the family, NaN
    where a cell is not tested. `verdict` has words, `controlled` the cells that were compared with a control.
    """

    seeds: int
    mean: Floats
    low: Floats
    high: Floats
    p: Floats
    verdict: NDArray[np.str_]
    tested: Bools
    controlled: Bools

    @property
    def widths(self) -> Floats:
        """(n, n): the widths of the intervals in Fisher's z, which strong and weak correlations share."""
        ends = (np.arctanh(np.clip(end, -_LARGEST, _LARGEST)) for end in (self.high, self.low))
        return np.asarray(np.subtract(*ends))

    def cell(self, i: int, j: int) -> CellVerdict:
        """The verdict on one cell."""
        low, high, p = float(self.low[i, j]), float(self.high[i, j]), float(self.p[i, j])
        return CellVerdict(
            i,
            j,
            float(self.mean[i, j]),
            None if np.isnan(low) else (low, high),
            None if np.isnan(p) else p,
            str(self.verdict[i, j]),
            bool(self.controlled[i, j]),
        )

    def cells(self) -> Iterator[CellVerdict]:
        """The tested cells above the diagonal, the strongest mean first."""
        rows, columns = np.nonzero(np.triu(self.tested, 1))
        for place in np.argsort(-np.abs(self.mean[rows, columns]), kind="stable"):
            yield self.cell(int(rows[place]), int(columns[place]))

    def at(self, order: NDArray[np.int64]) -> RelationVerdicts:
        """The verdicts on these rows and columns, in this order."""
        cells = np.ix_(order, order)
        matrices = {name: value[cells] for name, value in vars(self).items() if name != "seeds"}
        return RelationVerdicts(self.seeds, **matrices)

    def count(self, verdict: str) -> int:
        """How many of the tested cells have that verdict."""
        return int((np.triu(self.tested, 1) & (self.verdict == verdict)).sum())


def relation_verdicts(
    values: Floats, tested: Bools, control: Floats | None = None, bound: float = BOUND
) -> RelationVerdicts:
    """The verdicts on correlations (s, n, n) of s seeds, for the cells `tested` (n, n).

    `control` (s, n, n) are the correlations of the control with the same seed, NaN where there is none.

    Each cell has three one-sided t-tests of z: above `bound`, below −`bound`, between them. Where at least
    two seeds have a control, above and below must hold of the difference from it too (each by its own test).
    The smallest p, doubled, is corrected over the tested cells (Holm 1979).
    """
    seeds, size, _ = values.shape
    upper = np.triu(np.asarray(tested, dtype=bool), 1)
    rows, columns = at = np.nonzero(upper)
    z = np.arctanh(np.clip(np.asarray(values, dtype=np.float64), -_LARGEST, _LARGEST))
    nothing = np.full((size, size), np.nan)
    low, high, p = nothing.copy(), nothing.copy(), nothing.copy()
    verdict = np.full((size, size), UNDECIDED, dtype=f"<U{len(NEGLIGIBLE)}")
    controlled = np.zeros((size, size), dtype=bool)
    if seeds > 1:
        from scipy.special import stdtrit  # pages import this module, and scipy.stats takes a second

        centre, error = _mean_and_error(z)
        half = float(stdtrit(seeds - 1, (1 + CONFIDENCE) / 2)) * error
        low, high = np.tanh(centre - half), np.tanh(centre + half)
        cells, edge = z[:, rows, columns], float(np.arctanh(bound))
        chances = np.stack(
            [
                _p_above(cells, edge),
                _p_above(-cells, edge),
                np.maximum(_p_above(-cells, -edge), _p_above(cells, -edge)),
            ]
        )
        if control is not None:
            of_control = np.clip(control[:, rows, columns], -_LARGEST, _LARGEST)
            has = np.isfinite(of_control)
            different = cells - np.arctanh(of_control)
            for pattern in np.unique(has, axis=1).T:
                if pattern.sum() > 1:  # cells whose controls have the same seeds, mostly all
                    same = np.flatnonzero((has == pattern[:, None]).all(axis=0))
                    paired = different[np.ix_(pattern, same)]
                    chances[0, same] = np.maximum(chances[0, same], _p_above(paired, 0.0))
                    chances[1, same] = np.maximum(chances[1, same], _p_above(-paired, 0.0))
                    controlled[at[0][same], at[1][same]] = True
        words = np.array([RELATED, OPPOSED, NEGLIGIBLE])[chances.argmin(axis=0)]
        corrected = np.array(holm(np.minimum(1.0, 2 * chances.min(axis=0)).tolist()))
        p[at] = corrected
        verdict[at] = np.where(corrected < 1 - CONFIDENCE, words, UNDECIDED)
    symmetric = upper | upper.T
    for matrix in (p, verdict, controlled):
        matrix[at[::-1]] = matrix[at]
    mean = np.asarray(values.mean(axis=0), dtype=np.float64)
    return RelationVerdicts(seeds, mean, low, high, p, verdict, symmetric, controlled)


def _mean_and_error(z: Floats) -> tuple[Floats, Floats]:
    return z.mean(axis=0), z.std(axis=0, ddof=1) / np.sqrt(len(z))


def _p_above(z: Floats, edge: float) -> Floats:
    """(m,) the p of a one-sided t-test that the mean of z (s, m) is not above the edge.

    Seeds that all agree have no spread: three or more of them decide, two do not.
    """
    from scipy.special import stdtr

    centre, error = _mean_and_error(z)
    flat = error <= 1e-12
    t = (centre - edge) / np.where(flat, 1.0, error)
    p = stdtr(len(z) - 1, -t)
    agreed = np.where((centre > edge) & (len(z) > 2), 0.0, 1.0)
    return np.asarray(np.where(flat, agreed, p))
