"""Rows of a matrix at places of a larger one, and back, without adding up anything."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

__all__ = ["Places"]


class Places:
    """Rows 0 … k-1 that lie at the different places `at` (k,) among `size`.

    Both ways are a lookup, and so are their gradients: no two rows share a place. What stands where no row
    lies must not count: it is spread as the first row once more, and gets no gradient.
    """

    def __init__(self, at: Tensor, size: int) -> None:
        self.at = at
        self.size = size

    @cached_property
    def rows(self) -> Tensor:
        """Which row lies at each place (size,); 0 where none does."""
        rows = torch.arange(len(self.at), device=self.at.device)
        return self.at.new_zeros(self.size).index_copy_(0, self.at, rows)

    def spread(self, rows: Tensor) -> Tensor:
        """The rows (k, d) at their places (size, d)."""
        spread: Tensor = _Spread.apply(rows, self)  # type: ignore[no-untyped-call] # torch's own
        return spread

    def pick(self, everywhere: Tensor) -> Tensor:
        """The rows (k, d) that lie at their places (size, d)."""
        picked: Tensor = _Pick.apply(everywhere, self)  # type: ignore[no-untyped-call] # torch's own
        return picked


class _Spread(Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, places: Places) -> Tensor:
        ctx.places = places
        return rows.index_select(0, places.rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient.index_select(0, ctx.places.at), None


class _Pick(Function):
    @staticmethod
    def forward(ctx: Any, everywhere: Tensor, places: Places) -> Tensor:
        ctx.places = places
        return everywhere.index_select(0, places.at)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        places: Places = ctx.places
        if len(places.at) == places.size:
            return gradient.index_select(0, places.rows), None
        # What was not picked had no part in the result.
        everywhere = gradient.new_zeros(places.size, *gradient.shape[1:])
        return everywhere.index_copy_(0, places.at, gradient), None
