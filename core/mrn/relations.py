"""What MRN learned at one step: the three covariances, small enough to store. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["MODES", "Relations", "correlation"]

MODES: tuple[str, ...] = ("task", "label", "feature")
Array = NDArray[np.floating]


def correlation(covariance: Array) -> Array:
    """R = diag(Ω)^-1/2 Ω diag(Ω)^-1/2, (d, d) → (d, d).

    Dissertation, equation (27), with the root that its printed form lacks and its code takes. A zero
    diagonal entry gives a zero row and column, never NaN.
    """
    scale = np.sqrt(np.clip(np.diagonal(covariance), 0.0, None))
    inverse = _inverse(scale)
    return np.asarray(np.clip(covariance * inverse[:, None] * inverse[None, :], -1.0, 1.0))


def _inverse(scale: Array) -> Array:
    """1 / s, and 0 where s is 0."""
    return np.divide(1.0, scale, out=np.zeros_like(scale), where=scale != 0)


@dataclass(frozen=True)
class Relations:
    """Covariances at one step of training.

    task (T, T) and label (C, C) are dense; the feature covariance is low rank, a·I + F Fᵀ with
    `feature_diagonal` a ≥ 0 and `feature_factor` F of shape (D, r).
    """

    task: Array
    label: Array
    feature_factor: Array
    feature_diagonal: float

    def covariance(self, mode: str) -> Array:
        """The dense covariance of `task`, `label` or `feature`."""
        if mode == "task":
            return self.task
        if mode == "label":
            return self.label
        if mode == "feature":
            factor = np.asarray(self.feature_factor, dtype=np.float32)
            dense = factor @ factor.T
            dense[np.diag_indices_from(dense)] += np.float32(self.feature_diagonal)
            return np.asarray(dense)
        raise ValueError(f"mode must be one of {', '.join(MODES)}, not {mode!r}")

    def correlation(self, mode: str) -> Array:
        """The correlation matrix of `task`, `label` or `feature`, within [−1, 1], in float32."""
        if mode != "feature":
            return correlation(np.asarray(self.covariance(mode), dtype=np.float64)).astype(np.float32)
        scale, rows = self.unit_rows()
        rows = rows.astype(np.float32)
        dense = rows @ rows.T
        np.clip(dense, -1.0, 1.0, out=dense)
        # On the diagonal a counts too, and its correlation is 1 by definition.
        np.fill_diagonal(dense, np.where(scale > 0, 1.0, scale))
        return np.asarray(dense)

    def unit_rows(self) -> tuple[Array, Array]:
        """s (D,) and G (D, r) with F = diag(s) G and s_i = √Ω_ii, in float64; off the diagonal R = G Gᵀ.

        A feature without variance has a zero row. Taken relative to the largest number there is, so that
        squares of very small or large ones neither vanish nor overflow.
        """
        factor = np.asarray(self.feature_factor, dtype=np.float64)
        spread = float(np.sqrt(max(self.feature_diagonal, 0.0)))
        largest = max(float(np.max(np.abs(factor), initial=0.0)), spread)
        if not (np.isfinite(largest) and largest > 0):
            largest = 1.0
        relative = factor / largest
        scale = np.sqrt(np.einsum("dr,dr->d", relative, relative) + (spread / largest) ** 2)
        return scale * largest, relative * _inverse(scale)[:, None]
