"""Ω = a·I + F Fᵀ: a covariance over many features, known along few directions.

| symbol | shape  | meaning                                                              |
|--------|--------|----------------------------------------------------------------------|
| D, r   | int    | features; directions, r ≪ D                                          |
| a      | scalar | variance along every direction, > 0                                  |
| F      | (D, r) | factor                                                               |
| U      | (D, k) | an orthonormal basis of F's columns, k = min(D, r): F = U R          |
| L      | (k, k) | Cholesky factor of Ω within that basis, L Lᵀ = a·I + R Rᵀ            |

Within the basis Ω^-1 is that of L Lᵀ, outside it 1/a:

    Ω^-1 = (I − U Uᵀ) / a + U (L Lᵀ)^-1 Uᵀ

which is Woodbury's identity without its difference of nearly equal numbers: the heads lie almost wholly
within the basis, and in float32 that difference would be mostly rounding error where a is small.

No D×D matrix is formed but on request (`dense`), and none is ever inverted.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["LowRankCovariance", "semidefinite_factor"]

_JITTER = 1e-12
"""Share of its largest entry added to a scatter's diagonal: a singular one then has a Cholesky factor."""


class LowRankCovariance:
    """a·I + F Fᵀ, its inverse applied through U and L.

    `diagonal` is a number or a scalar tensor (which is not looked at: no waiting for the device).
    Raises ValueError where a number is not positive or F is not a matrix.
    """

    def __init__(self, diagonal: float | Tensor, factor: Tensor) -> None:
        if not isinstance(diagonal, Tensor) and diagonal <= 0:
            raise ValueError(f"diagonal must be positive, not {diagonal}")
        if factor.ndim != 2:
            raise ValueError(f"factor must have shape (D, r), not {tuple(factor.shape)}")
        self.diagonal = torch.as_tensor(diagonal, dtype=factor.dtype, device=factor.device)
        self.factor = factor
        self._basis, coordinates = torch.linalg.qr(factor)
        within = coordinates @ coordinates.T
        within.diagonal().add_(self.diagonal)
        self._chol = torch.linalg.cholesky_ex(within).L

    @classmethod
    def identity(
        cls, size: int, *, value: float = 1.0, dtype: torch.dtype, device: torch.device | str
    ) -> LowRankCovariance:
        """value·I of the given size (r = 0)."""
        return cls(value, torch.zeros(size, 0, dtype=dtype, device=device))

    def inverse_inner(self, rows: Tensor) -> Tensor:
        """X Ω^-1 Xᵀ for rows X (n, D) → (n, n), in the dtype of X; gradients flow to X."""
        basis = self._basis.to(rows.dtype)
        along = rows @ basis
        across = rows - along @ basis.T
        white = torch.linalg.solve_triangular(self._chol.to(rows.dtype), along.T, upper=False)
        inner: Tensor = across @ across.T / self.diagonal.to(rows.dtype) + white.T @ white
        return inner

    def logdet(self) -> Tensor:
        """ln|Ω| by the determinant lemma: (D − k) ln a + ln|L Lᵀ|. Scalar."""
        size, rank = self._basis.shape
        inner: Tensor = 2 * torch.log(torch.diagonal(self._chol)).sum()
        value: Tensor = inner + (size - rank) * torch.log(self.diagonal)
        return value

    def inverse_trace(self) -> Tensor:
        """tr(Ω^-1) = (D − k) / a + tr((L Lᵀ)^-1). Scalar."""
        size, rank = self._basis.shape
        identity = torch.eye(rank, dtype=self._chol.dtype, device=self._chol.device)
        inverse = torch.linalg.solve_triangular(self._chol, identity, upper=False)
        value: Tensor = (size - rank) / self.diagonal + inverse.square().sum()
        return value

    def dense(self) -> Tensor:
        """Ω itself, (D, D). For tests and small matrices."""
        dense = self.factor @ self.factor.T
        dense.diagonal().add_(self.diagonal)
        return dense


def semidefinite_factor(scatter: Tensor) -> Tensor:
    """R with R Rᵀ = S to twelve digits, for a positive semi-definite float64 S (n, n), singular or not."""
    raised = (scatter + scatter.T) / 2
    raised.diagonal().add_(_JITTER * torch.diagonal(raised).amax())
    factor: Tensor = torch.linalg.cholesky_ex(raised).L
    return factor
