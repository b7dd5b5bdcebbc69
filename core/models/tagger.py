"""The model: a shared encoder and one head per task. The same for STL, MTL and MRN."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from core.encoding.batches import IGNORED, Batch
from core.models.encoders.base import Encoder
from core.models.heads import Heads

__all__ = ["MultiTaskTagger"]


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
        sums = [
            nn.functional.cross_entropy(own, numbers, ignore_index=IGNORED, reduction="sum")
            for own, numbers in zip(torch.split(logits, sizes, dim=1), labels.unbind(dim=1), strict=True)
        ]
        return torch.stack(sums), (labels != IGNORED).sum(dim=0)
