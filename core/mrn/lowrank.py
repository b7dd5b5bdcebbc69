"""Ω = a·I + F Fᵀ: a covariance over many features, known along few directions.

| symbol | shape  | meaning                                                              |
|--------|--------|----------------------------------------------------------------------|
| D, r   | int    | features; directions, r ≪ D                                          |
| a      | scalar | variance along every direction, > 0                                  |
| F      | (D, r) | factor                                                               |
| L      | (r, r) | Cholesky factor, L Lᵀ = a·I + FᵀF                                    |
| V      | (D, r) | F L^-ᵀ, so that Ω^-1 = (I − V Vᵀ) / a (Woodbury)                     |

Of rows X, a ridge regression on F with penalty a leaves E = X − X V Vᵀ; its coefficients are Y = X V L^-1. So

    X Ω^-1 = E / a        X Ω^-1 Xᵀ = E Eᵀ / a + Y Yᵀ

The sum keeps the digits that Woodbury's difference, X Xᵀ − X V Vᵀ Xᵀ, loses in float32 where a is small: the
heads lie almost wholly within F's columns, and the difference is then mostly rounding error.

No D×D matrix is formed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_JITTER = 1e-12
"""Share of its largest entry added to a scatter's diagonal: a singular one then has a Cholesky factor."""


class LowRankCovariance:
    """a·I + F Fᵀ, its inverse applied through V and L.

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
        gram = factor.T @ factor
        gram.diagonal().add_(self.diagonal)
        chol = torch.linalg.cholesky_ex(gram).L
        identity = torch.eye(len(chol), dtype=chol.dtype, device=chol.device)
        self._inverse_root = torch.linalg.solve_triangular(chol, identity, upper=False)
        self._whitened = factor @ self._inverse_root.T
        self._converted: dict[torch.dtype, tuple[Tensor, Tensor, Tensor]] = {}

    def inverse_inner(self, rows: Tensor) -> Tensor:
        """X Ω^-1 Xᵀ for rows X (n, D) → (n, n), in the dtype of X."""
        whitened, inverse_root, diagonal = self._in(rows.dtype)
        residual, coefficients = _ridge(rows, whitened, inverse_root)
        inner: Tensor = residual @ residual.T / diagonal + coefficients @ coefficients.T
        return inner

    def inverse_form(self, coupling: Tensor, rows: Tensor) -> Tensor:
        """<Q, X Ω^-1 Xᵀ> for a symmetric Q (n, n) and rows X (n, D), in X's dtype, with gradients to X."""
        parts = (coupling.to(rows.dtype), *self._in(rows.dtype))
        form: Tensor = _InverseForm.apply(rows, *parts)  # type: ignore[no-untyped-call] # torch's own
        return form

    def _in(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """V, L^-1 and a in that dtype, converted once and not at every step."""
        if dtype not in self._converted:
            parts = (self._whitened, self._inverse_root, self.diagonal)
            whitened, inverse_root, diagonal = (part.to(dtype) for part in parts)
            self._converted[dtype] = whitened, inverse_root, diagonal
        return self._converted[dtype]

    def logdet(self) -> Tensor:
        """ln|Ω|. Scalar."""
        variances, others = self._variances()
        value: Tensor = torch.log(variances).sum() + others * torch.log(self.diagonal)
        return value

    def inverse_trace(self) -> Tensor:
        """tr(Ω^-1). Scalar."""
        variances, others = self._variances()
        value: Tensor = (1 / variances).sum() + others / self.diagonal
        return value

    def _variances(self) -> tuple[Tensor, int]:
        """The variances along F's min(D, r) directions, and the number of others, with variance a."""
        size, rank = self.factor.shape
        narrow = self.factor if rank < size else self.factor.T
        values = torch.linalg.eigvalsh(narrow.T @ narrow).clamp_min(0) + self.diagonal
        return values, size - len(values)


class _InverseForm(torch.autograd.Function):
    """<Q, X Ω^-1 Xᵀ> = <Q E, E> / a + <Q Y, Y>. Its gradient in X is 2 Q E / a, half computed already."""

    @staticmethod
    def forward(
        context: Any, rows: Tensor, coupling: Tensor, whitened: Tensor, inverse_root: Tensor, diagonal: Tensor
    ) -> Tensor:
        residual, coefficients = _ridge(rows, whitened, inverse_root)
        coupled = (coupling / diagonal) @ residual
        context.save_for_backward(coupled)
        return _inner(coupled, residual) + _inner(coupling @ coefficients, coefficients)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (coupled,) = context.saved_tensors
        return coupled * (2 * gradient), None, None, None, None


def _ridge(rows: Tensor, whitened: Tensor, inverse_root: Tensor) -> tuple[Tensor, Tensor]:
    """E (n, D) and Y (n, r) of rows X (n, D)."""
    along = rows @ whitened
    return torch.addmm(rows, along, whitened.T, alpha=-1), along @ inverse_root


def _inner(first: Tensor, second: Tensor) -> Tensor:
    """<A, B>, a scalar."""
    return torch.vdot(first.flatten(), second.flatten())


def semidefinite_factor(scatter: Tensor) -> Tensor:
    """R with R Rᵀ = S to twelve digits, for a positive semi-definite float64 S (n, n), singular or not."""
    raised = (scatter + scatter.T) / 2
    raised.diagonal().add_(_JITTER * torch.diagonal(raised).amax())
    factor: Tensor = torch.linalg.cholesky_ex(raised).L
    return factor
