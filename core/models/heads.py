"""The task-specific layer: one linear head per task, kept as one matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from core.models.dropout import Dropout

__all__ = ["Heads"]


class Heads(nn.Module):
    """Linear heads of T tasks with C_1 … C_T labels over D features.

    `dropout_on` says what dropout sets to zero while training: the `features` or the `logits`.

    `weight` is H (r, D) with r = Σ C_t and `bias` (r,): one matrix product gives all tasks' logits, and the
    MRN prior reads H as it is. `slices` says which rows are whose.
    """

    def __init__(
        self, features: int, labels: Sequence[int], *, init: str, dropout: float, dropout_on: str = "features"
    ) -> None:
        super().__init__()
        starts = [sum(labels[:index]) for index in range(len(labels))]
        self.slices = tuple(slice(start, start + own) for start, own in zip(starts, labels, strict=True))
        self.weight = nn.Parameter(torch.zeros(sum(labels), features))
        self.bias = nn.Parameter(torch.zeros(sum(labels)))
        self.dropout = Dropout(dropout)
        self._drops_logits = dropout_on == "logits"
        if init == "default":
            # As nn.Linear starts: uniform within 1/√D, whatever the number of its rows.
            bound = 1 / math.sqrt(features)
            nn.init.uniform_(self.weight, -bound, bound)
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, words: Tensor) -> Tensor:
        """Logits (n, r) of words (n, D)."""
        if self._drops_logits:
            logits: Tensor = self.dropout(nn.functional.linear(words, self.weight, self.bias))
            return logits
        return nn.functional.linear(self.dropout(words), self.weight, self.bias)
