"""The model: a shared encoder and one head per task. The same for STL, MTL and MRN."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn

from core.encoding.batches import IGNORED, Batch
from core.models.encoders import Encoder
from core.models.encoders.fast_bert import Dropout


class Heads(nn.Module):
    """Linear heads of T tasks with C_1 … C_T labels over D features, kept as one matrix.

    `weight` is H (r, D) with r = Σ C_t and `bias` (r,): one matrix product gives all tasks' logits, and the
    MRN prior reads H as it is. `slices` has each task's rows. `dropout_on` says what dropout sets to zero
    while training: the `features` or the `logits`.
    """

    def __init__(
        self, features: int, labels: Sequence[int], *, init: str, dropout: float, dropout_on: str = "features"
    ) -> None:
        super().__init__()
        self.slices = tuple(slice(start, end) for start, end in pairwise(accumulate(labels, initial=0)))
        self.weight = nn.Parameter(torch.zeros(sum(labels), features))
        self.bias = nn.Parameter(torch.zeros(sum(labels)))
        self.dropout = Dropout(dropout)
        self._drops_logits = dropout_on == "logits"
        if init == "default":  # that of nn.Linear: uniform within 1/√D, whatever the number of rows
            bound = 1 / math.sqrt(features)
            nn.init.uniform_(self.weight, -bound, bound)
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, words: Tensor) -> Tensor:
        """Logits (n, r) of words (n, D)."""
        if self._drops_logits:
            logits: Tensor = self.dropout(nn.functional.linear(words, self.weight, self.bias))
            return logits
        return nn.functional.linear(self.dropout(words), self.weight, self.bias)


class MultiTaskTagger(nn.Module):
    """Encoder states of each word's first subword, and every task's logits of them."""

    def __init__(self, encoder: Encoder, heads: Heads) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = heads

    def forward(self, batch: Batch) -> Tensor:
        """Logits (n, r) of the batch's n words, all tasks' labels side by side."""
        logits: Tensor = self.heads(self.encoder.words(batch))
        return logits

    def losses(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Summed cross-entropy L_t of each task (T,), and the number of words it is summed over (T,)."""
        sizes = [rows.stop - rows.start for rows in self.heads.slices]
        # Split at once: the gradient is then put together once, and not added up from a slice per task.
        by_task = zip(torch.split(logits, sizes, dim=1), labels.unbind(dim=1), strict=True)
        sums = [
            nn.functional.cross_entropy(task_logits, numbers, ignore_index=IGNORED, reduction="sum")
            for task_logits, numbers in by_task
        ]
        return torch.stack(sums), (labels != IGNORED).sum(dim=0)
