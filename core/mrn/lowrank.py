"""Ω = a·I + F Fᵀ: a covariance over many features, known along few directions.

| symbol | shape  | meaning                                                              |
|--------|--------|----------------------------------------------------------------------|
| D, n, r| int    | features; rows; directions, r ≪ D                                    |
| a      | scalar | variance along every direction, > 0                                  |
| H, R   |        | rows (n, D) and their root (n, r); the factor is F = HᵀR (D, r)      |
| G      | (n, n) | H Hᵀ, so that FᵀF = RᵀG R                                            |
| L      | (r, r) | Cholesky factor, L Lᵀ = a·I + FᵀF                                    |
| V      | (D, r) | F L^-ᵀ, so that Ω^-1 = (I − V Vᵀ) / a (Woodbury)                     |

Of rows X, a ridge regression on F with penalty a leaves E = X − X V Vᵀ; its coefficients are Y = X V L^-1. So

    X Ω^-1 = E / a        X Ω^-1 Xᵀ = E Eᵀ / a + Y Yᵀ

The sum keeps the digits that Woodbury's difference, X Xᵀ − X V Vᵀ Xᵀ, loses in float32 where a is small: the
heads lie almost wholly within F's columns, and the difference is then mostly rounding error. For its own rows

    H Ω^-1 Hᵀ = M (a·I + MᵀR RᵀM)^-1 Mᵀ    with G = M Mᵀ

needs no D at all. No D×D matrix is formed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_JITTER = 1e-12
"""Share of its largest entry added to a scatter's diagonal: a singular one then has a Cholesky factor."""


class LowRankCovariance:
    """a·I + HᵀR RᵀH, its inverse applied through V and L.

    `diagonal` is a number or a scalar tensor (which is not looked at: no waiting for the device), `gram` G
    where it is known. Raises ValueError where a number is not positive or the shapes do not fit.
    """

    def __init__(
        self, diagonal: float | Tensor, rows: Tensor, root: Tensor, gram: Tensor | None = None
    ) -> None:
        if not isinstance(diagonal, Tensor) and diagonal <= 0:
            raise ValueError(f"diagonal must be positive, not {diagonal}")
        if rows.ndim != 2 or root.ndim != 2 or len(rows) != len(root):
            raise ValueError(f"no rows (n, D) and root (n, r): {tuple(rows.shape)}, {tuple(root.shape)}")
        self.diagonal = torch.as_tensor(diagonal, dtype=rows.dtype, device=rows.device)
        # A stored state is contiguous, and a product may depend on that in its last digits.
        self.rows, self.root = rows, root = rows.contiguous(), root.contiguous()
        self._gram = rows @ rows.T if gram is None else gram
        chol = self._shifted_cholesky(root.T @ (self._gram @ root))
        identity = torch.eye(len(chol), dtype=chol.dtype, device=chol.device)
        self._inverse_root = torch.linalg.solve_triangular(chol, identity, upper=False)
        self._whitened = rows.T @ (root @ self._inverse_root.T)
        self._converted: dict[torch.dtype, tuple[Tensor, Tensor, Tensor]] = {}

    @property
    def factor(self) -> Tensor:
        """F (D, r)."""
        return self.rows.T @ self.root

    def own_inner(self) -> Tensor:
        """H Ω^-1 Hᵀ (n, n) of its own rows."""
        half = semidefinite_factor(self._gram)
        along = self.root.T @ half
        white = torch.linalg.solve_triangular(self._shifted_cholesky(along.T @ along), half.T, upper=False)
        return white.T @ white

    def _shifted_cholesky(self, gram: Tensor) -> Tensor:
        """The Cholesky factor of a·I + the matrix, which it changes."""
        gram.diagonal().add_(self.diagonal)
        factor: Tensor = torch.linalg.cholesky_ex(gram).L
        return factor

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
        factor = self.factor
        size, rank = factor.shape
        narrow = factor if rank < size else factor.T
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
    largest = torch.diagonal(raised).amax()
    raised.diagonal().add_(_JITTER * largest)
    return torch.where(largest > 0, torch.linalg.cholesky_ex(raised).L, torch.zeros_like(raised))
