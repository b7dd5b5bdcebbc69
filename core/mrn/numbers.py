"""What MRN learned, in a few numbers for each covariance. Needs no torch."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.mrn.relations import Relations
from core.mrn.rows import Block

__all__ = ["Numbers", "eigenvalues", "numbers", "strongest_pairs"]

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Numbers:
    """One covariance (d, d) in numbers.

    `effective_rank` is the number of directions that share the variance, from 1 (all in one) to d (the same
    in each), 0 where there is none: the exponential of the entropy of the eigenvalues as shares of their sum
    (Roy and Vetterli 2007, "The effective rank: a measure of effective dimensionality"). `condition` is the
    largest eigenvalue over the smallest, ∞ where the matrix is singular. `strongest` is the correlation off
    the diagonal that is largest in size, with its sign; None where there is no pair. All are NaN where the
    matrix holds what is no finite number.
    """

    effective_rank: float
    trace: float
    condition: float
    strongest: float | None


def numbers(relations: Relations, mode: str) -> Numbers:
    """The numbers of `task`, `label` or `feature`. No D × D matrix is decomposed."""
    if not _finite(relations, mode):
        return Numbers(math.nan, math.nan, math.nan, math.nan)
    spectrum = eigenvalues(relations, mode)
    largest, smallest, trace = float(spectrum[-1]), float(spectrum[0]), float(spectrum.sum())
    return Numbers(
        effective_rank=_effective_rank(spectrum),
        trace=trace,
        condition=largest / smallest if smallest > 0 else math.inf,
        strongest=_strongest(relations.correlation(mode)),
    )


def _finite(relations: Relations, mode: str) -> bool:
    if mode != "feature":
        return bool(np.isfinite(relations.covariance(mode)).all())
    return bool(np.isfinite(relations.feature_factor).all()) and math.isfinite(relations.feature_diagonal)


def eigenvalues(relations: Relations, mode: str) -> Floats:
    """The eigenvalues (d,) of a finite covariance, rising, none negative.

    Those of a·I + F Fᵀ are a + λ for the eigenvalues λ of the smaller of FᵀF and F Fᵀ, and a for the rest.
    """
    if mode != "feature":
        return _semidefinite(np.asarray(relations.covariance(mode)))
    factor = np.asarray(relations.feature_factor)
    narrow = factor if factor.shape[1] <= factor.shape[0] else factor.T
    exact = narrow.astype(np.float64)
    along = _semidefinite(exact.T @ exact)
    rest = np.zeros(len(factor) - len(along))
    return np.concatenate([rest, along]) + relations.feature_diagonal


def _semidefinite(matrix: Floats) -> Floats:
    """Eigenvalues of a positive semi-definite matrix; what rounding leaves instead of a zero is one.

    The bound is that of `numpy.linalg.matrix_rank`.
    """
    found = np.linalg.eigvalsh(matrix.astype(np.float64))
    precision = np.finfo(matrix.dtype).eps if np.issubdtype(matrix.dtype, np.floating) else 0.0
    noise = len(matrix) * precision * float(np.max(np.abs(found), initial=0.0))
    return np.where(found > noise, found, 0.0)


def _effective_rank(spectrum: Floats) -> float:
    trace = float(spectrum.sum())
    if trace <= 0:
        return 0.0
    shares = spectrum[spectrum > 0] / trace
    return math.exp(-float(np.sum(shares * np.log(shares))))


def _strongest(correlations: Floats) -> float | None:
    if len(correlations) < 2:
        return None
    np.fill_diagonal(correlations, 0.0)
    highest, lowest = float(correlations.max()), float(correlations.min())
    return highest if highest >= -lowest else lowest


def strongest_pairs(
    correlations: Floats, top: int, impossible: Iterable[Block] = ()
) -> list[tuple[int, int, float]]:
    """The `top` pairs of rows (i < j) whose correlation is largest in size: i, j, correlation, the strongest
    first. Left out are pairs that the alignment makes impossible, and such without any correlation.
    """
    possible = np.triu(correlations != 0, k=1)
    for block in impossible:
        possible[block.top : block.bottom, block.left : block.right] = False
    rows, columns = np.nonzero(possible)
    values = correlations[rows, columns]
    if len(values) > top:
        best = np.argpartition(-np.abs(values), top)[:top]
        rows, columns, values = rows[best], columns[best], values[best]
    order = np.argsort(-np.abs(values), kind="stable")
    return [(int(rows[i]), int(columns[i]), float(values[i])) for i in order]
