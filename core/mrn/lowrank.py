"""Ω = a·I + F Fᵀ: a covariance over many features, known along few directions.

| symbol | shape  | meaning                                                        |
|--------|--------|----------------------------------------------------------------|
| D, r   | int    | features; directions, r ≪ D                                    |
| a      | scalar | variance along every direction, > 0                            |
| F      | (D, r) | factor                                                         |
| V      | (D, r) | F (a·I + FᵀF)^-1/2, so that Ω^-1 = (I − V Vᵀ) / a (Woodbury)   |

No D×D matrix is formed but on request (`dense`), and none is ever inverted.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["LowRankCovariance", "semidefinite_root"]

_FLOOR = 1e-12
"""Eigenvalues below this share of the largest are rounding error of a singular scatter: taken as zero."""


class LowRankCovariance:
    """a·I + F Fᵀ with its inverse applied by Woodbury's identity.

    Raises ValueError where a is not positive or F is not a matrix.
    """

    def __init__(self, diagonal: float, factor: Tensor) -> None:
        if diagonal <= 0:
            raise ValueError(f"diagonal must be positive, not {diagonal}")
        if factor.ndim != 2:
            raise ValueError(f"factor must have shape (D, r), not {tuple(factor.shape)}")
        self.diagonal = diagonal
        self.factor = factor
        gram = factor.T @ factor
        gram.diagonal().add_(diagonal)
        self._chol = torch.linalg.cholesky(gram)
        # V = F L^-T has V Vᵀ = F (a·I + FᵀF)^-1 Fᵀ: a triangular root serves as well as a symmetric one.
        self._whitened = torch.linalg.solve_triangular(self._chol, factor.T, upper=False).T

    @classmethod
    def identity(cls, size: int, *, dtype: torch.dtype, device: torch.device | str) -> LowRankCovariance:
        """I of the given size (r = 0)."""
        return cls(1.0, torch.zeros(size, 0, dtype=dtype, device=device))

    def inverse_inner(self, rows: Tensor) -> Tensor:
        """X Ω^-1 Xᵀ for rows X (n, D) → (n, n), in the dtype of X; gradients flow to X."""
        projected = rows @ self._whitened.to(rows.dtype)
        inner: Tensor = (rows @ rows.T - projected @ projected.T) / self.diagonal
        return inner

    def logdet(self) -> Tensor:
        """ln|Ω| by the determinant lemma: (D − r) ln a + ln|a·I + FᵀF|. Scalar."""
        size, rank = self.factor.shape
        inner = 2 * torch.log(torch.diagonal(self._chol)).sum()
        return inner + (size - rank) * torch.log(torch.as_tensor(self.diagonal, dtype=inner.dtype))

    def dense(self) -> Tensor:
        """Ω itself, (D, D). For tests and small matrices."""
        dense = self.factor @ self.factor.T
        dense.diagonal().add_(self.diagonal)
        return dense


def semidefinite_root(scatter: Tensor) -> Tensor:
    """R with R Rᵀ = S for a positive semi-definite S (n, n), singular or not. Best in float64."""
    values, vectors = torch.linalg.eigh((scatter + scatter.T) / 2)
    floor = values.abs().amax() * _FLOOR
    root: Tensor = vectors * torch.where(values > floor, values, torch.zeros_like(values)).sqrt()
    return root
