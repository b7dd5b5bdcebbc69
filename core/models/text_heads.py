"""The layers above the encoder for whole texts: one vector for a text, heads over pairs, loss of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from core.encoding.batches import IGNORED, Batch
from core.models.crf import LinearChain
from core.models.encoders.fast_bert import Dropout
from core.models.encoders.transformer import PooledBy
from core.tasks import KINDS, TaskKind


def pooled(states: Tensor, batch: Batch, by: PooledBy) -> Tensor:
    """One vector for each window (…, B, D), from the states (…, B, L, D) of its subwords.

    `cls` takes the first subword's, `mean` the mean over all of them, frame included, as
    sentence-transformers does.
    """
    if by == "cls":
        return states[..., 0, :]
    mask = batch.mask[..., None].to(states.dtype)
    return (states * mask).sum(dim=-2) / mask.sum(dim=-2)


@dataclass(frozen=True)
class HeadTask:
    """The facts of a task that a head needs: its kind's stored name, its labels, the scale of its numbers."""

    scheme: str
    labels: Sequence[str]
    scale: tuple[float, float] | None = None

    @property
    def kind(self) -> TaskKind:
        return KINDS[self.scheme]


class PairHeads(nn.Module):
    """Heads over the vectors u and v (D) of two texts that were read apart.

    Labels: linear over [u, v, |u − v|, u ∘ v] (4D), with a single logit z, [0, z], for two labels. Numbers:
    the scale times ReLU(cos(u, v)), without weights (TEA-BERT, section 4.1, task-specific layers). With
    `shared` one linear layer with one output serves all tasks: [0, z] for two labels, the scale times z for
    numbers (section 4.1, task-sharable layers).
    """

    def __init__(
        self, features: int, tasks: Sequence[HeadTask], *, shared: bool, init: str, dropout: float
    ) -> None:
        super().__init__()
        self._tasks = tuple(tasks)
        own = [0 if task.scale else 1 if len(task.labels) == 2 else len(task.labels) for task in tasks]
        self.layers = nn.ModuleList(
            nn.Linear(4 * features, size) if size else nn.Identity() for size in ([1] if shared else own)
        )
        self.dropout = Dropout(dropout)
        if init == "zeros":
            for weight in self.parameters():
                nn.init.zeros_(weight)

    @property
    def sizes(self) -> list[int]:
        """How many columns each task has."""
        return [len(task.labels) for task in self._tasks]

    def forward(self, u: Tensor, v: Tensor) -> list[Tensor]:
        """Each task's logits (m, C), or numbers (m, 1). u and v are (m, D), or (T', m, D) by task."""
        every = [(u, v)] * len(self._tasks) if u.dim() == 2 else list(zip(u, v, strict=True))
        return [self._answer(index, *texts) for index, texts in enumerate(every)]

    def _answer(self, index: int, u: Tensor, v: Tensor) -> Tensor:
        task = self._tasks[index]
        layer = self.layers[index % len(self.layers)]
        if isinstance(layer, nn.Identity):
            z = torch.relu(nn.functional.cosine_similarity(u, v, dim=-1))[:, None]
        else:
            z = layer(self.dropout(torch.cat([u, v, (u - v).abs(), u * v], dim=-1)))
        if task.scale is not None:
            return on_scale(z, task.scale)
        return torch.cat([torch.zeros_like(z), z], dim=1) if len(task.labels) == 2 and z.shape[1] == 1 else z


def on_scale(z: Tensor, scale: tuple[float, float]) -> Tensor:
    """The number that z is, from 0 at the scale's lower end to 1 at its upper one."""
    low, high = scale
    return low + (high - low) * z


class Output(Protocol):
    """How a task's logits (n, C) become losses and answers."""

    def loss(self, logits: Tensor, task: int, batch: Batch) -> Tensor:
        """The summed loss over the labelled words of the batch."""
        ...

    def best(self, logits: Tensor, batch: Batch) -> Tensor:
        """The answer for each word (n,): a label number, or a number."""
        ...

    def probabilities(self, logits: Tensor, batch: Batch) -> Tensor:
        """The probabilities (n, C) of each word's labels; of a number the number itself (n, 1)."""
        ...


class LabelOutput:
    """Cross-entropy; the most probable label of each word by itself."""

    def loss(self, logits: Tensor, task: int, batch: Batch) -> Tensor:
        return nn.functional.cross_entropy(
            logits, batch.labels[:, task], ignore_index=IGNORED, reduction="sum"
        )

    def best(self, logits: Tensor, batch: Batch) -> Tensor:
        return logits.argmax(dim=1)

    def probabilities(self, logits: Tensor, batch: Batch) -> Tensor:
        return torch.softmax(logits, dim=1)


@dataclass(frozen=True, eq=False)
class ChainOutput:
    """A CRF: the negative log-likelihood of a sentence's labels, and their best sequence.

    A whole text is no word of a sequence: its answer and its probabilities are 0.
    """

    chain: LinearChain

    def loss(self, logits: Tensor, task: int, batch: Batch) -> Tensor:
        words, counts = _words(batch)
        return self.chain.loss(logits[words], batch.labels[words, task], counts)

    def best(self, logits: Tensor, batch: Batch) -> Tensor:
        return self._on_words(self.chain.decode, logits, batch)

    def probabilities(self, logits: Tensor, batch: Batch) -> Tensor:
        return self._on_words(self.chain.marginals, logits, batch)

    def _on_words(self, compute: Callable[[Tensor, Tensor], Tensor], logits: Tensor, batch: Batch) -> Tensor:
        words, counts = _words(batch)
        answers = compute(logits[words], counts)
        everywhere = answers.new_zeros(len(logits), *answers.shape[1:])
        everywhere[words] = answers
        return everywhere


def _words(batch: Batch) -> tuple[Tensor | slice, Tensor]:
    """Which items of the batch are words and no whole texts, and how many each sentence has."""
    if batch.texts is None:
        return slice(None), batch.counts
    is_word = torch.ones(len(batch.labels), dtype=torch.bool, device=batch.labels.device)
    is_word[batch.texts.words] = False
    return torch.nonzero(is_word)[:, 0], batch.texts.other_counts


@dataclass(frozen=True)
class NumberOutput:
    """Squared error in the scale's own units. With `from_logits` the logits are shares of the scale."""

    scale: tuple[float, float]
    from_logits: bool

    def loss(self, logits: Tensor, task: int, batch: Batch) -> Tensor:
        assert batch.scores is not None  # a run with numbers has their gold values
        errors = self.best(logits, batch) - batch.scores[:, task]
        return errors.square().masked_fill(batch.labels[:, task] == IGNORED, 0.0).sum()

    def best(self, logits: Tensor, batch: Batch) -> Tensor:
        return (on_scale(logits, self.scale) if self.from_logits else logits)[:, 0]

    def probabilities(self, logits: Tensor, batch: Batch) -> Tensor:
        return self.best(logits, batch)[:, None]
