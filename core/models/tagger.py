"""The model: a shared encoder and one head per task. The same for STL, MTL and MRN."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn

from core.config import RunConfig
from core.encoding.batches import IGNORED, Batch
from core.models.crf import LinearChain
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

    def forward(self, words: Tensor, only: int | None = None) -> Tensor:
        """Logits (n, r) of words (n, D), or of each task's own representation of them (T, n, D).

        Where the task `only` alone has one (1, n, D), the others' logits are zero.
        """
        if self._drops_logits:
            logits: Tensor = self.dropout(self._linear(words, only))
            return logits
        return self._linear(self.dropout(words), only)

    def _linear(self, words: Tensor, only: int | None) -> Tensor:
        if words.dim() == 2:
            return nn.functional.linear(words, self.weight, self.bias)
        by_task = [words.new_zeros(words.shape[1], rows.stop - rows.start) for rows in self.slices]
        for task, own in enumerate(words, only or 0):
            rows = self.slices[task]
            by_task[task] = nn.functional.linear(own, self.weight[rows], self.bias[rows])
        return torch.cat(by_task, dim=1)


def chains(config: RunConfig, schemes: Sequence[str], labels: Sequence[Sequence[str]]) -> list[LinearChain]:
    """A CRF for each task, by its scheme and labels, where the run has such."""
    if config.head == "linear":
        return []
    # Legal moves are those of spans: a task without spans has none.
    return [
        LinearChain(names, scheme, legal=config.head == "crf_legal" and scheme == "iob2")
        for scheme, names in zip(schemes, labels, strict=True)
    ]


class MultiTaskTagger(nn.Module):
    """Encoder states of each word's first subword, and every task's logits of them.

    With `chains`, one for each task, labels are chosen by sentence; without, word by word.
    """

    def __init__(self, encoder: Encoder, heads: Heads, chains: Sequence[LinearChain] = ()) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = heads
        self.chains = nn.ModuleList(chains)
        self._chains = tuple(chains)

    def forward(self, batch: Batch) -> Tensor:
        """Logits (n, r) of the batch's n words, all tasks' labels side by side."""
        logits: Tensor = self.heads(self.encoder.words(batch), batch.task)
        return logits

    def losses(self, logits: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Summed negative log-likelihood L_t of each task (T,): cross-entropy, or that of a CRF's sequences;
        and the number of labelled words it is summed over (T,).
        """
        columns = batch.labels.unbind(dim=1)
        if self.chains:
            sums = [
                chain.loss(task_logits, numbers, batch.counts)
                for chain, task_logits, numbers in zip(
                    self._chains, self._split(logits), columns, strict=True
                )
            ]
        else:
            sums = [
                nn.functional.cross_entropy(task_logits, numbers, ignore_index=IGNORED, reduction="sum")
                for task_logits, numbers in zip(self._split(logits), columns, strict=True)
            ]
        return torch.stack(sums), (batch.labels != IGNORED).sum(dim=0)

    def best(self, logits: Tensor, batch: Batch) -> Tensor:
        """The label number of each word for each task (n, T)."""
        if not self.chains:
            return torch.stack([task_logits.argmax(dim=1) for task_logits in self._split(logits)], dim=1)
        decoded = zip(self._chains, self._split(logits), strict=True)
        return torch.stack([chain.decode(task_logits, batch.counts) for chain, task_logits in decoded], dim=1)

    def probabilities(self, logits: Tensor, batch: Batch) -> list[Tensor]:
        """For each task the probabilities (n, C_t) of each word's labels."""
        if not self.chains:
            return [torch.softmax(task_logits, dim=1) for task_logits in self._split(logits)]
        return [
            chain.marginals(task_logits, batch.counts)
            for chain, task_logits in zip(self._chains, self._split(logits), strict=True)
        ]

    def _split(self, logits: Tensor) -> tuple[Tensor, ...]:
        """The logits (n, C_t) of each task. At once: the gradient is then put together once, and not added up
        from a slice per task.
        """
        return torch.split(logits, [rows.stop - rows.start for rows in self.heads.slices], dim=1)
