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
from core.models.encoders.transformer import PooledBy
from core.models.text_heads import ChainOutput, LabelOutput, NumberOutput, Output, PairHeads, pooled
from core.models.text_heads import HeadTask as HeadTask


class Heads(nn.Module):
    """Linear heads of T tasks with C_1 … C_T labels over D features, kept as one matrix.

    `weight` is H (r, D) with r = Σ C_t and `bias` (r,): one matrix product gives all tasks' logits, and the
    MRN prior reads H as it is. `slices` has each task's logits among these. With `rows` (r,) they are shared:
    logit i is that of row `rows[i]` of H (U, D). `dropout_on` says what dropout sets to zero while training:
    the `features` or the `logits`.
    """

    rows: Tensor | None

    def __init__(
        self,
        features: int,
        labels: Sequence[int],
        *,
        init: str,
        dropout: float,
        dropout_on: str = "features",
        rows: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.slices = tuple(slice(start, end) for start, end in pairwise(accumulate(labels, initial=0)))
        self.register_buffer("rows", None if rows is None else torch.tensor(rows), persistent=False)
        number = sum(labels) if rows is None else max(rows) + 1
        self.weight = nn.Parameter(torch.zeros(number, features))
        self.bias = nn.Parameter(torch.zeros(number))
        self.dropout = Dropout(dropout)
        self._drops_logits = dropout_on == "logits"
        if init == "default":  # that of nn.Linear: uniform within 1/√D, whatever the number of rows
            bound = 1 / math.sqrt(features)
            nn.init.uniform_(self.weight, -bound, bound)
            nn.init.uniform_(self.bias, -bound, bound)

    def weight_and_bias(self, index: int) -> tuple[Tensor, Tensor]:
        """Weight (C_t, D) and bias (C_t,) of the task at that place."""
        rows = self.slices[index] if self.rows is None else self.rows[self.slices[index]]
        return self.weight[rows], self.bias[rows]

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
            logits = nn.functional.linear(words, self.weight, self.bias)
            return logits if self.rows is None else logits.index_select(1, self.rows)
        by_task = [words.new_zeros(words.shape[1], rows.stop - rows.start) for rows in self.slices]
        for task, own in enumerate(words, only or 0):
            by_task[task] = nn.functional.linear(own, *self.weight_and_bias(task))
        return torch.cat(by_task, dim=1)


class MultiTaskTagger(nn.Module):
    """Encoder states of each word's first subword, or one vector for a whole text, and every task's logits.

    heads      the stack of all tasks over D features
    outputs    by task, how logits become losses and answers; None: as labels, word by word
    pairs      the heads of pair tasks whose texts are read apart
    places     by task, where its logits stand: first those of the stack, then those of the pairs
    pooled_by  what stands for a whole text
    """

    def __init__(
        self,
        encoder: Encoder,
        heads: Heads,
        outputs: Sequence[Output] | None = None,
        pairs: PairHeads | None = None,
        places: Sequence[int] | None = None,
        pooled_by: PooledBy = "cls",
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = heads
        self.pairs = pairs
        self.pooled_by: PooledBy = pooled_by
        self._sizes = [rows.stop - rows.start for rows in heads.slices] + (pairs.sizes if pairs else [])
        self._outputs = outputs or [LabelOutput()] * len(self._sizes)
        self._places = places or range(len(self._sizes))
        self.chains = nn.ModuleList(
            output.chain for output in self._outputs if isinstance(output, ChainOutput)
        )

    @property
    def stacked(self) -> list[int]:
        """The numbers of the tasks with heads in the stack, in its order."""
        return [task for task, index in enumerate(self._places) if index < len(self.heads.slices)]

    @property
    def tasks(self) -> int:
        """How many tasks there are."""
        return len(self._outputs)

    def forward(self, batch: Batch) -> Tensor:
        """Logits (n, r) of the batch's n words: the stacked tasks' side by side, then the pairs'."""
        # The item of a sentence as a whole is its first subword: the states of words hold that of [CLS] too.
        texts = batch.texts
        if texts is None or (texts.are_mixed and self.pooled_by == "cls" and self.pairs is None):
            logits: Tensor = self.heads(self.encoder.words(batch), batch.task)
            return self._with_pairs(logits, batch, None)
        states = self.encoder(batch)
        vectors = pooled(states, batch, self.pooled_by)
        firsts, seconds = (vectors.index_select(-2, windows) for windows in texts.windows.T)
        words = states.flatten(-3, -2).index_select(-2, batch.rows).index_copy(-2, texts.words, firsts)
        return self._with_pairs(self.heads(words, batch.task), batch, (firsts, seconds))

    def _with_pairs(self, logits: Tensor, batch: Batch, texts: tuple[Tensor, Tensor] | None) -> Tensor:
        if self.pairs is None:
            return logits
        if texts is None or batch.texts is None:
            return torch.cat([logits, logits.new_zeros(len(logits), sum(self.pairs.sizes))], dim=1)
        pair_logits = torch.cat(self.pairs(*texts), dim=1)
        everywhere = pair_logits.new_zeros(len(logits), pair_logits.shape[1]).index_copy(
            0, batch.texts.words, pair_logits
        )
        return torch.cat([logits, everywhere], dim=1)

    def losses(self, logits: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Summed loss L_t of each task (T,), and the number of labelled words it is summed over (T,).

        It is cross-entropy, the negative log-likelihood of a CRF's sequences, or squared error.
        """
        sums = [
            output.loss(task_logits, task, batch)
            for task, (output, task_logits) in enumerate(zip(self._outputs, self._split(logits), strict=True))
        ]
        return torch.stack(sums), (batch.labels != IGNORED).sum(dim=0)

    def best(self, logits: Tensor, batch: Batch) -> Tensor:
        """The answer for each word and each task (n, T): the label's number, or the number predicted."""
        answers = [
            output.best(task_logits, batch)
            for output, task_logits in zip(self._outputs, self._split(logits), strict=True)
        ]
        if len({answer.dtype for answer in answers}) > 1:
            answers = [answer.double() for answer in answers]
        return torch.stack(answers, dim=1)

    def probabilities(self, logits: Tensor, batch: Batch) -> list[Tensor]:
        """For each task the probabilities (n, C_t) of each word's labels, or its numbers (n, 1)."""
        return [
            output.probabilities(task_logits, batch)
            for output, task_logits in zip(self._outputs, self._split(logits), strict=True)
        ]

    def _split(self, logits: Tensor) -> list[Tensor]:
        """The logits (n, C_t) of each task, split at once.

        The gradient is then put together once, and not added up from a slice per task.
        """
        parts = torch.split(logits, self._sizes, dim=1)
        return [parts[index] for index in self._places]


def make_tagger(
    encoder: Encoder,
    config: RunConfig,
    tasks: Sequence[HeadTask],
    *,
    pooled_by: PooledBy = "cls",
    init: str = "zeros",
    dropout: float = 0.0,
) -> MultiTaskTagger:
    """The model of a run's tasks over an encoder.

    The run can be trained on these tasks (`core.training.trainable`).
    """
    apart = [config.pair_encoding == "apart" and task.kind.reads == "pair" for task in tasks]
    stack = [task for task, is_apart in zip(tasks, apart, strict=True) if not is_apart]
    others = [task for task, is_apart in zip(tasks, apart, strict=True) if is_apart]
    rows = None
    if config.heads == "shared":  # one row for all labels of a name
        names = [label for task in tasks for label in task.labels]
        row_of = {name: row for row, name in enumerate(dict.fromkeys(names))}
        rows = [row_of[name] for name in names]
    heads = Heads(
        encoder.features,
        [len(task.labels) for task in stack],
        init=init,
        dropout=dropout,
        dropout_on=config.dropout_on,
        rows=rows,
    )
    shared = config.pair_heads == "shared"
    pairs = PairHeads(encoder.features, others, shared=shared, init=init, dropout=dropout) if others else None
    order = sorted(range(len(tasks)), key=lambda task: apart[task])
    outputs = [_output(config, task, is_apart) for task, is_apart in zip(tasks, apart, strict=True)]
    places = [order.index(task) for task in range(len(tasks))]
    return MultiTaskTagger(encoder, heads, outputs, pairs, places, pooled_by)


def _output(config: RunConfig, task: HeadTask, is_apart: bool) -> Output:
    if task.scale is not None:
        return NumberOutput(task.scale, from_logits=not is_apart)
    if config.head == "linear" or task.kind.reads != "words":
        return LabelOutput()
    # Legal moves are those of spans: a task without spans has none.
    legal = config.head == "crf_legal" and task.kind.has_spans
    return ChainOutput(LinearChain(task.labels, task.scheme, legal=legal))
