"""Covariances as small blobs and back. No correlation of any mode changes by more than 1e-3.

Of a covariance Ω its standard deviations s_i = √Ω_ii are stored in float64, and its correlations:

- task and label: those above the diagonal in float16, which moves numbers up to 1 by 2⁻¹² at most;
- feature, a·I + F Fᵀ: the rows of G = diag(s)^-1 F, whose products are the correlations, in float16, or in
  float32 where that would move a correlation too far.

Scale is thus no concern: one feature may vary a million times more than the others. A matrix that is no
covariance (a number in it is not finite, say) is kept in float32 as it is. A blob's length tells which of
these it holds, and whether it is one that earlier versions wrote: G in principal directions as integers of
a small step, compressed. That was 1.5 to 2 times smaller, with errors up to 9e-4 instead of 2e-4.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.mrn.relations import Relations, correlation

Floats = NDArray[np.floating]

_TOLERANCE = 1e-3
# Numbers in one matrix of a snapshot from elsewhere: a gigabyte of them.
_MOST_NUMBERS = 2**27
# Standard deviations within these leave F well within float32.
_SINGLE = (1e-30, 1e30)


def encode(relations: Relations) -> dict[str, Any]:
    """The columns of a snapshot that hold these covariances."""
    return {
        "tasks": len(relations.task),
        "labels": len(relations.label),
        "features": len(relations.feature_factor),
        "task": _encoded_dense(relations.task),
        "label": _encoded_dense(relations.label),
        **_encoded_feature(relations),
    }


def decode(row: Mapping[str, Any]) -> Relations:
    """The covariances that these columns of a snapshot hold. Raises ValueError where they hold none."""
    return Relations(
        task=_decoded_dense(row["task"], row["tasks"]),
        label=_decoded_dense(row["label"], row["labels"]),
        feature_factor=_decoded_factor(row),
        feature_diagonal=row["feature_diagonal"],
    )


def check(row: Mapping[str, Any]) -> None:
    """Raises ValueError where imported columns of a snapshot hold no covariances."""
    tasks, labels, features, rank = (row[name] for name in ("tasks", "labels", "features", "rank"))
    if min(tasks, labels, features, rank) < 0 or max(tasks, labels, features * max(rank, 1)) > _MOST_NUMBERS:
        raise ValueError(f"covariances of {tasks} tasks, {labels} labels, {features} features, rank {rank}")
    if math.isnan(row["feature_diagonal"]) or math.isnan(row["factor_scale"]):
        raise ValueError("a scale of its covariances is not a number")
    decode(row)


def _encoded_dense(covariance: Floats) -> bytes:
    exact = np.asarray(covariance, dtype=np.float64)
    variances = np.diagonal(exact)
    if np.isfinite(exact).all() and (variances >= 0).all():
        correlations = correlation(exact)
        if np.max(np.abs(correlations - correlations.T), initial=0.0) <= _TOLERANCE / 2:
            above = correlations[np.triu_indices(len(exact), k=1)]
            return _bytes(np.sqrt(variances), "<f8") + _bytes(above, "<f2")
    return _bytes(exact, "<f4")


def _decoded_dense(blob: bytes, size: int) -> Floats:
    if len(blob) == 4 * size * size:
        return np.frombuffer(blob, "<f4").reshape(size, size).astype(np.float32)
    if len(blob) != 8 * size + size * (size - 1):
        raise ValueError(f"covariances of another size than {size}")
    deviations = np.frombuffer(blob, "<f8", count=size)
    correlations = np.eye(size)
    above = np.triu_indices(size, k=1)
    correlations[above] = correlations.T[above] = np.frombuffer(blob, "<f2", offset=8 * size)
    return np.asarray(correlations * deviations[:, None] * deviations)


def _encoded_feature(relations: Relations) -> dict[str, Any]:
    factor, diagonal = np.asarray(relations.feature_factor), float(relations.feature_diagonal)
    if np.isnan(diagonal):
        # SQLite has no NaN. With such a diagonal no correlation is a number; let the factor say that.
        factor, diagonal = np.full((len(factor), 1), np.nan), 0.0
    columns = {"feature_diagonal": diagonal, "factor_scale": 1.0, "rank": factor.shape[1]}
    if not (np.isfinite(factor).all() and 0 <= diagonal < np.inf):
        return columns | {"factor": _bytes(factor, "<f4"), "factor_type": "<f4"}
    deviations, rows = relations.unit_rows()
    half = Relations(relations.task, relations.label, rows.astype("<f2") * deviations[:, None], diagonal)
    difference = half.correlation("feature") - relations.correlation("feature")
    dtype = "<f2" if np.max(np.abs(difference), initial=0.0) <= _TOLERANCE else "<f4"
    return columns | {"factor": _bytes(deviations, "<f8") + _bytes(rows, dtype), "factor_type": dtype}


def _decoded_factor(row: Mapping[str, Any]) -> Floats:
    features, rank, dtype, blob = row["features"], row["rank"], row["factor_type"], row["factor"]
    plain = features * rank * np.dtype(dtype).itemsize
    if len(blob) == plain:  # of earlier versions, and of what is no covariance
        return _scaled(np.frombuffer(blob, dtype).reshape(features, rank), row["factor_scale"])
    if len(blob) == 8 * features + plain:
        deviations = np.frombuffer(blob, "<f8", count=features)
        rows = np.frombuffer(blob, dtype, offset=8 * features).reshape(features, rank)
        return _scaled(rows, deviations[:, None])
    # Of earlier versions: the first byte of each deviation, then the second of each, and so on; then the
    # integers in the same order, where 0, 1, 2, 3, ... stand for 0, −1, 1, −2, ...
    size = 8 * features + 4 * features * rank
    reader = zlib.decompressobj()
    try:
        content = np.frombuffer(reader.decompress(blob, size + 1), np.uint8)
    except zlib.error as error:
        raise ValueError(f"a feature factor that cannot be unpacked ({error})") from error
    if len(content) != size or not reader.eof:
        raise ValueError(f"a feature factor of another size than {features} × {rank}")
    deviations = content[: 8 * features].reshape(8, -1).T.copy().view("<f8")
    numbers = content[8 * features :].reshape(4, -1).T.copy().view("<i4").reshape(rank, features).T
    return _scaled((numbers >> 1) ^ -(numbers & 1), row["factor_scale"] * deviations)


def _scaled(values: NDArray[Any], scale: Floats | float) -> Floats:
    """Their product, in float32 where its numbers are neither too small nor too large for that."""
    sizes = np.asarray(scale, dtype=np.float64)
    nonzero = sizes[sizes != 0]
    fits = ((_SINGLE[0] < nonzero) & (nonzero < _SINGLE[1])).all()
    return np.asarray(values * sizes, dtype=np.float32 if fits else np.float64)


def _bytes(values: Floats, dtype: str) -> bytes:
    with np.errstate(over="ignore"):
        return values.astype(dtype).tobytes()
