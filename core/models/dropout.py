"""Dropout whose random numbers cost little on a processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import Function

__all__ = ["Dropout", "dropout", "use_quick_dropout"]

_LEVELS = 2**16
"""A number of 16 random bits decides about a value, so that a share is met to within 1/131,072."""


class Dropout(nn.Dropout):
    """`nn.Dropout` with quicker random numbers on a processor."""

    def forward(self, values: Tensor) -> Tensor:
        return dropout(values, self.p, self.training)


def dropout(values: Tensor, share: float, training: bool = True) -> Tensor:
    """The values with that share of them zero, by chance, and the others scaled so that the mean stays.

    On a processor torch draws its masks one double at a time, which took as long as a sixth of a layer's
    matrix products; here they are bits of a generator that torch's own seeds anew for every call. So the
    state of torch's generator is all that a training must keep to draw the same masks again.
    """
    if not training or share == 0.0:
        return values
    kept = round((1.0 - share) * _LEVELS)
    if values.device.type != "cpu" or kept in (0, _LEVELS):
        return nn.functional.dropout(values, share, training=True)
    mask = _mask(values.shape, kept)
    dropped: Tensor = _Dropped.apply(values, mask, _LEVELS / kept)  # type: ignore[no-untyped-call] # torch's own
    return dropped


def use_quick_dropout(module: nn.Module) -> None:
    """Replace the dropout layers within a module; they hold no weights, so its state is as before."""
    for parent in module.modules():
        for name, child in parent.named_children():
            if type(child) is nn.Dropout:
                setattr(parent, name, Dropout(child.p).train(child.training))


def _mask(shape: torch.Size, kept: int) -> Tensor:
    """1 for `kept` of 65,536 values, 0 for the others; as bytes, for a product with bool takes longer."""
    seed = int(torch.empty((), dtype=torch.int64).random_())
    # SFC64: the quickest generator of NumPy, of good quality; each of its numbers decides about four values.
    numbers = np.random.SFC64(seed).random_raw(-(-shape.numel() // 4))
    bits = numbers.view(np.uint16)[: shape.numel()]
    return torch.from_numpy((bits < kept).view(np.uint8)).view(shape)


class _Dropped(Function):
    """values · mask · scale; what it keeps for its gradient is the mask, a byte a value."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, mask: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.scale = scale
        return (values * mask).mul_(scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (mask,) = ctx.saved_tensors
        return (gradient * mask).mul_(ctx.scale), None, None
