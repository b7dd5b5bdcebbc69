"""Covariances as small blobs and back. No correlation of any mode changes by more than 1e-3.

Of a covariance Ω its standard deviations s_i = √Ω_ii are stored in float64, and its correlations:

- task and label: those above the diagonal in float16, which moves numbers up to 1 by 2⁻¹² at most;
- feature, a·I + F Fᵀ: the rows of G = diag(s)^-1 F, whose products are the correlations, as whole numbers
  of a small step, compressed. First they are turned into their principal directions: most of these hold
  little and become small numbers, the last ones nothing but zeros, which are left out.

Scale is thus no concern: one feature may vary a million times more than the others. A matrix that is no
covariance (a number in it is not finite, say) is kept in float32 as it is. A blob's length tells which of
these it holds, and whether it comes from an earlier version, which wrote F in float16 or float32.
"""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.mrn.relations import Relations, correlation

Floats = NDArray[np.floating]

_TOLERANCE = 1e-3
# The rest is for the rounding of who computes in float32.
_SPENT = 0.99
# Numbers in one matrix of a snapshot from elsewhere: a gigabyte of them.
_MOST_NUMBERS = 2**27
# How many bits of a feature's standard deviation are kept: as many as float32 has.
_BITS = 24
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
    """The covariances that these columns of a snapshot hold."""
    return Relations(
        task=_decoded_dense(row["task"], row["tasks"]),
        label=_decoded_dense(row["label"], row["labels"]),
        feature_factor=_decoded_factor(row),
        feature_diagonal=row["feature_diagonal"],
    )


def check(row: Mapping[str, Any]) -> None:
    """Raises ValueError where these columns, of another's making, hold no covariances.

    What they say they unpack to is bounded first.
    """
    tasks, labels, features, rank = (row[name] for name in ("tasks", "labels", "features", "rank"))
    if min(tasks, labels, features, rank) < 0 or max(tasks, labels, features * max(rank, 1)) > _MOST_NUMBERS:
        raise ValueError(f"covariances of {tasks} tasks, {labels} labels, {features} features, rank {rank}")
    if math.isnan(row["feature_diagonal"]) or math.isnan(row["factor_scale"]):
        raise ValueError("a scale that is not a number")
    for name, size in (("task", tasks), ("label", labels)):
        if len(row[name]) not in (4 * size * size, 8 * size + size * (size - 1)):
            raise ValueError(f"{name} covariances of another size than {size}")
    if len(row["factor"]) in _lengths(features, rank, row["factor_type"]):
        return
    whole = 8 * features + 4 * features * rank
    reader = zlib.decompressobj()
    try:
        content = reader.decompress(row["factor"], whole + 1)
    except zlib.error as error:
        raise ValueError(f"a feature factor that cannot be unpacked ({error})") from error
    if len(content) != whole or not reader.eof:
        raise ValueError(f"a feature factor of another size than {features} × {rank}")


def _encoded_dense(covariance: Floats) -> bytes:
    exact = np.asarray(covariance, dtype=np.float64)
    variances = np.diagonal(exact)
    if np.isfinite(exact).all() and (variances >= 0).all():
        correlations = correlation(exact)
        if np.max(np.abs(correlations - correlations.T), initial=0.0) <= _TOLERANCE / 2:
            above = correlations[_above_diagonal(len(exact))]
            return _bytes(np.sqrt(variances), "<f8") + _bytes(above, "<f2")
    return _bytes(exact, "<f4")


def _decoded_dense(blob: bytes, size: int) -> Floats:
    if len(blob) == 4 * size * size:
        return np.frombuffer(blob, "<f4").reshape(size, size).astype(np.float32)
    deviations = np.frombuffer(blob, "<f8", count=size)
    correlations = np.zeros((size, size))
    correlations[_above_diagonal(size)] = np.frombuffer(blob, "<f2", offset=deviations.nbytes)
    correlations += correlations.T
    np.fill_diagonal(correlations, 1.0)
    return np.asarray(correlations * deviations[:, None] * deviations)


def _above_diagonal(size: int) -> NDArray[np.bool_]:
    return ~np.tri(size, dtype=bool)


def _encoded_feature(relations: Relations) -> dict[str, Any]:
    factor, diagonal = np.asarray(relations.feature_factor), float(relations.feature_diagonal)
    if np.isnan(diagonal):
        # SQLite has no NaN. With such a diagonal no correlation is a number, so let the factor say that.
        factor, diagonal = np.full((len(factor), 1), np.nan), 0.0
    columns = {"factor_type": "<f4", "feature_diagonal": diagonal}
    if not (np.isfinite(factor).all() and 0 <= diagonal < np.inf):
        return columns | {"factor": _bytes(factor, "<f4"), "rank": factor.shape[1], "factor_scale": 1.0}
    deviations, whole, step = _whole_steps(relations)
    blob = _packed(deviations, whole)
    return columns | {"factor": blob, "rank": whole.shape[1], "factor_scale": step}


def _whole_steps(relations: Relations) -> tuple[Floats, NDArray[np.int32], float]:
    """s (D,), G in its principal directions as whole numbers of a step (D, k), k ≤ r, and the step.

    Rounding moves R_ij as a normal number of variance step² / 12 · (|G_i|² + |G_j|²) would; the largest of n
    such is about √(2 ln n) deviations. So the first step fits as a rule, and a smaller one does in the end.
    """
    deviations, rows = relations.unit_rows()
    deviations = _rounded(deviations)
    _, directions = np.linalg.eigh(rows.T @ rows)
    principal = rows @ directions[:, ::-1]
    original = relations.correlation("feature")
    longest = float(np.max(np.linalg.norm(rows, axis=1), initial=0.0))
    allowed = _SPENT * _TOLERANCE
    step = allowed / max(longest * math.sqrt(math.log(max(original.size, 2)) / 3), 1e-3)
    while True:
        whole = np.rint(principal / step).astype(np.int32)
        factor = whole * (step * deviations[:, None])
        difference = dataclasses.replace(relations, feature_factor=factor).correlation("feature")
        difference -= original
        error = float(max(difference.max(initial=0.0), -difference.min(initial=0.0)))
        if error <= allowed:
            kept = int(np.max(np.flatnonzero(whole.any(axis=0)) + 1, initial=0))
            return deviations, whole[:, :kept], step
        step *= min(0.95 * allowed / error, 0.9)


def _rounded(deviations: Floats) -> Floats:
    """To so many bits that correlations do not notice; the bytes after these are zeros."""
    mantissa, exponent = np.frexp(deviations)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, _BITS)), exponent - _BITS))


def _packed(deviations: Floats, whole: NDArray[np.int32]) -> bytes:
    """s and the whole numbers, direction after direction, compressed.

    Of a length that no other way to write such a factor has.
    """
    numbers = whole.T.astype("<i4")
    # 0, −1, 1, −2, ... become 0, 1, 2, 3, ..., so that the upper bytes of all small numbers are zeros.
    numbers = (numbers << 1) ^ (numbers >> 31)
    # Nothing repeats but runs of zeros, and looking for no more than these takes a tenth of the time.
    compressor = zlib.compressobj(strategy=zlib.Z_RLE)
    blob = compressor.compress(_by_byte(deviations.astype("<f8")) + _by_byte(numbers)) + compressor.flush()
    return blob + b"\0" if len(blob) in _lengths(len(deviations), len(numbers), "<f4") else blob


def _lengths(features: int, rank: int, dtype: str) -> tuple[int, int]:
    """Bytes of a plain factor, and of one with its standard deviations before it."""
    plain = features * rank * np.dtype(dtype).itemsize
    return plain, 8 * features + plain


def _decoded_factor(row: Mapping[str, Any]) -> Floats:
    features, rank, dtype, blob = row["features"], row["rank"], row["factor_type"], row["factor"]
    if len(blob) in _lengths(features, rank, dtype):
        start = len(blob) - features * rank * np.dtype(dtype).itemsize
        scale = np.frombuffer(blob, "<f8", count=start // 8)[:, None] if start else row["factor_scale"]
        return _single(np.frombuffer(blob, dtype, offset=start).reshape(features, rank), scale)
    content = zlib.decompressobj().decompress(blob)
    deviations = _from_bytes(content[: 8 * features], "<f8")
    numbers = _from_bytes(content[8 * features :], "<i4").reshape(rank, features).T
    return _single((numbers >> 1) ^ -(numbers & 1), row["factor_scale"] * deviations[:, None])


def _single(values: NDArray[Any], scale: Floats | float) -> Floats:
    """Their product, in float32 where its numbers are neither too small nor too large for that."""
    sizes = np.asarray(scale, dtype=np.float64)
    there = sizes[sizes != 0]
    fits = ((_SINGLE[0] < there) & (there < _SINGLE[1])).all()
    return np.asarray(values * sizes, dtype=np.float32 if fits else np.float64)


def _bytes(values: Floats, dtype: str) -> bytes:
    with np.errstate(over="ignore"):
        return values.astype(dtype).tobytes()


def _by_byte(values: NDArray[Any]) -> bytes:
    """The first byte of each, then the second of each, and so on."""
    return np.ascontiguousarray(values).reshape(-1, 1).view(np.uint8).T.tobytes()


def _from_bytes(content: bytes, dtype: str) -> NDArray[Any]:
    planes = np.frombuffer(content, np.uint8).reshape(np.dtype(dtype).itemsize, -1)
    return np.ascontiguousarray(planes.T).view(dtype).ravel()
