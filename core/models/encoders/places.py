"""Rows of a matrix at places of a larger one, and back, without adding up anything."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

__all__ = ["Places"]


class Places:
    """Rows 0 … k-1 that lie at the different places `at` (k,) among `size`.

    Both ways are a lookup, and so are their gradients: no two rows share a place.
    """

    def __init__(self, at: Tensor, size: int) -> None:
        self.at = at
        rows = torch.arange(len(at), device=at.device)
        self.rows = at.new_full((size,), len(at)).index_copy_(0, at, rows)
        """Which row lies at each place (size,); k where none does."""

    def spread(self, rows: Tensor) -> Tensor:
        """The rows (k, d) at their places (size, d), zeros elsewhere."""
        spread: Tensor = _Spread.apply(rows, self.at, self.rows)  # type: ignore[no-untyped-call] # torch's own
        return spread

    def pick(self, everywhere: Tensor) -> Tensor:
        """The rows (k, d) that lie at their places (size, d)."""
        picked: Tensor = _Pick.apply(everywhere, self.at, self.rows)  # type: ignore[no-untyped-call] # torch's own
        return picked


class _Spread(Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, at: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(at)
        return _spread(rows, inverse)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (at,) = ctx.saved_tensors
        return gradient.index_select(0, at), None, None


class _Pick(Function):
    @staticmethod
    def forward(ctx: Any, everywhere: Tensor, at: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        return everywhere.index_select(0, at)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (inverse,) = ctx.saved_tensors
        return _spread(gradient, inverse), None, None


def _spread(rows: Tensor, inverse: Tensor) -> Tensor:
    # A row of zeros more is what the empty places look up.
    return nn.functional.pad(rows, (0, 0, 0, 1)).index_select(0, inverse)
