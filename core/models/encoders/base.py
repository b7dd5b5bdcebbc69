"""What every encoder is."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from core.encoding.batches import Batch

__all__ = ["Encoder"]


class Encoder(Protocol):
    """A module whose call gives the states of a batch's subwords: (B, L, D), D = `features`, float32."""

    features: int

    def __call__(self, batch: Batch) -> Tensor: ...
