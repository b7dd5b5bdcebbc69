"""Covariances as small blobs and back. No correlation of any mode changes by more than 1e-3.

Of a covariance Ω its standard deviations s_i = √Ω_ii are stored in float64, and its correlations:

- task and label: those above the diagonal in float16, which moves numbers up to 1 by 2⁻¹² at most;
- feature, a·I + F Fᵀ: the rows of G = diag(s)^-1 F, whose products are the correlations, in float16, turned
  into their principal directions, of which the last are left out as far as the tolerance allows.

Scale is thus no concern: one feature may vary a million times more than the others. A matrix that is no
covariance (a number in it is not finite, say) is kept in float32 as it is. A blob's length tells which of the
two it holds; stores of earlier versions have F in float16 or float32, over one common scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.mrn.relations import Relations, correlation

__all__ = ["decode", "encode"]

Floats = NDArray[np.floating]

_TOLERANCE = 1e-3
# The rest is for the rounding of who computes in float32.
_SPENT = 0.99
# Standard deviations within these, times the smallest float16, are well within float32.
_SINGLE = (1e-30, 1e30)


def encode(relations: Relations) -> dict[str, Any]:
    """The columns of a snapshot that hold these covariances."""
    features = len(relations.feature_factor)
    factor, rank, dtype, diagonal = _encoded_feature(relations)
    return {
        "tasks": len(relations.task),
        "labels": len(relations.label),
        "features": features,
        "rank": rank,
        "task": _encoded_dense(relations.task),
        "label": _encoded_dense(relations.label),
        "factor": factor,
        "factor_type": dtype,
        "factor_scale": 1.0,
        "feature_diagonal": diagonal,
    }


def decode(row: Mapping[str, Any]) -> Relations:
    """The covariances that these columns of a snapshot hold."""
    return Relations(
        task=_decoded_dense(row["task"], row["tasks"]),
        label=_decoded_dense(row["label"], row["labels"]),
        feature_factor=_decoded_factor(row),
        feature_diagonal=row["feature_diagonal"],
    )


def _encoded_dense(covariance: Floats) -> bytes:
    exact = np.asarray(covariance, dtype=np.float64)
    variances = np.diagonal(exact)
    if np.isfinite(exact).all() and (variances >= 0).all():
        correlations = correlation(exact)
        if np.max(np.abs(correlations - correlations.T), initial=0.0) <= _TOLERANCE / 2:
            above = correlations[np.triu_indices(len(exact), 1)]
            return _bytes(np.sqrt(variances), "<f8") + _bytes(above, "<f2")
    return _bytes(exact, "<f4")


def _decoded_dense(blob: bytes, size: int) -> Floats:
    if len(blob) == 4 * size * size:
        return np.frombuffer(blob, "<f4").reshape(size, size).astype(np.float32)
    deviations = np.frombuffer(blob, "<f8", count=size)
    correlations = np.zeros((size, size))
    correlations[np.triu_indices(size, 1)] = np.frombuffer(blob, "<f2", offset=deviations.nbytes)
    correlations += correlations.T
    np.fill_diagonal(correlations, 1.0)
    return np.asarray(correlations * deviations[:, None] * deviations)


def _encoded_feature(relations: Relations) -> tuple[bytes, int, str, float]:
    """The factor's blob, its rank and type, and the diagonal."""
    factor, diagonal = np.asarray(relations.feature_factor), float(relations.feature_diagonal)
    if np.isnan(diagonal):
        # SQLite has no NaN. With such a diagonal no correlation is a number, so let the factor say that.
        factor, diagonal = np.full((len(factor), 1), np.nan), 0.0
    if not (np.isfinite(factor).all() and 0 <= diagonal < np.inf):
        return _bytes(factor, "<f4"), factor.shape[1], "<f4", diagonal
    deviations, rows = relations.unit_rows()
    halves = _principal_halves(rows)
    return _bytes(deviations, "<f8") + _bytes(halves, "<f2"), halves.shape[1], "<f2", diagonal


def _principal_halves(rows: Floats) -> Floats:
    """G (D, r) → (D, k) in float16, k ≤ r, with nearly the same products of rows.

    Feature i is a unit vector h_i, row G_i and √(a / Ω_ii) in a direction of its own, and R_ij = h_i · h_j.
    Rounding moves h_i by δ_i ≤ 2⁻¹¹, hence each of two vectors by an angle of about δ, and their cosine by at
    most 2 max δ. Leaving out directions takes E, positive semi-definite, from R: no entry of E exceeds
    max E_ii, and R, made to have a diagonal of 1 again, changes by about 2 max E_ii at most. Rounding alone
    is always within the tolerance.
    """
    _, directions = np.linalg.eigh(rows.T @ rows)
    principal = rows @ directions[:, ::-1]
    halves = principal.astype(np.float16)
    moved = float(np.max(np.linalg.norm(halves - principal, axis=1), initial=0.0))
    beyond = np.cumsum(np.square(principal[:, ::-1]), axis=1)[:, ::-1]
    lost = np.max(beyond, axis=0, initial=0.0)
    kept = int(np.count_nonzero(2 * (lost + moved) > _SPENT * _TOLERANCE))
    return np.asarray(halves[:, :kept])


def _decoded_factor(row: Mapping[str, Any]) -> Floats:
    shape, dtype, blob = (row["features"], row["rank"]), np.dtype(row["factor_type"]), row["factor"]
    if len(blob) == shape[0] * shape[1] * dtype.itemsize:
        earlier = np.frombuffer(blob, dtype).reshape(shape).astype(np.float32)
        return np.asarray(earlier * np.float32(row["factor_scale"]))
    deviations = np.frombuffer(blob, "<f8", count=shape[0])
    rows = np.frombuffer(blob, dtype, offset=deviations.nbytes).reshape(shape)
    factor: Floats = rows * deviations[:, None]
    there = deviations[deviations > 0]
    single = ((_SINGLE[0] < there) & (there < _SINGLE[1])).all()
    return factor.astype(np.float32) if single else factor


def _bytes(values: Floats, dtype: str) -> bytes:
    with np.errstate(over="ignore"):
        return values.astype(dtype).tobytes()
