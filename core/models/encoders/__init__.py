"""The shared layers. An encoder turns a batch of subwords into states (B, L, D) for all tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, Protocol, runtime_checkable

from torch import Tensor, nn

from core.encoding.batches import Batch


class Encoder(Protocol):
    """A module that computes the states (B, L, D) of a batch's subwords, D = `features`, float32.

    States of padding have no meaning.
    `words` gives those of each word's first subword, (n, D), which is all that heads read: an encoder that
    need not compute the others does not. An encoder that has states of its own for each of T tasks gives
    (T, B, L, D) and (T, n, D), or (1, …) where `batch.task` is the only one whose states are needed.
    """

    features: int

    def __call__(self, batch: Batch) -> Tensor: ...

    def words(self, batch: Batch) -> Tensor: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...


def at_words(states: Tensor, batch: Batch) -> Tensor:
    """The states (…, n, D) of each word's first subword, from the states of all subwords (…, B, L, D)."""
    return states.flatten(-3, -2)[..., batch.rows, :]


Part = Literal["encoder", "bilstm", "heads"]
"""What has a learning rate of its own."""


@runtime_checkable
class LayersAbove(Protocol):
    """Layers over an encoder that train at the rate of the BiLSTM, as their `part` says."""

    part: Part

    @property
    def below(self) -> Encoder: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...


def parts_of(model: nn.Module) -> dict[Tensor, Part]:
    """The part that each weight of a tagger belongs to; all that is not under its `encoder` are heads."""
    parts: dict[Tensor, Part] = {
        weight: "encoder" if name == "encoder" else "heads"
        for name, child in model.named_children()
        for weight in child.parameters()
    }
    for module in model.modules():
        if isinstance(module, LayersAbove):
            lower = {id(weight) for weight in module.below.parameters()}
            parts |= {weight: module.part for weight in module.parameters() if id(weight) not in lower}
    return parts


_OF_ONE_TASK = re.compile(r"\.gate_|\.task_vectors|\.own\.")


def shared_weights(model: nn.Module) -> list[nn.Parameter]:
    """The trained weights below a tagger's heads, without those that each task has for itself.

    The latter are SC-LSTM's gates, task embeddings and dense layers of tasks.
    """
    parts = parts_of(model)
    return [
        weight
        for name, weight in model.named_parameters()
        if weight.requires_grad and parts[weight] != "heads" and not _OF_ONE_TASK.search(name)
    ]
