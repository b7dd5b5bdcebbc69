"""Dense layers between an encoder and the heads (Bettgenhäuser et al., 2020, figure 2)."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from core.encoding.batches import Batch
from core.models.encoders import Encoder, Part


class Dense(nn.Module):
    """`shared` layers that all tasks read through, then `own` layers for each of `tasks`.

    Each has a ReLU and is as wide as the states of `below`. With own layers each task has states of its own.
    """

    part: Part = "bilstm"

    def __init__(self, below: Encoder, shared: int, own: int, tasks: int) -> None:
        super().__init__()
        self.below = below
        size = self.features = below.features
        self._tasks = tasks
        self.shared = nn.ModuleList(nn.Linear(size, size) for _ in range(shared))
        self.own = nn.ModuleList(
            nn.ModuleList(nn.Linear(size, size) for _ in range(tasks)) for _ in range(own)
        )

    def forward(self, batch: Batch) -> Tensor:
        return self._above(self.below(batch), batch, by_task=4)

    def words(self, batch: Batch) -> Tensor:
        return self._above(self.below.words(batch), batch, by_task=3)

    def _above(self, states: Tensor, batch: Batch, *, by_task: int) -> Tensor:
        """`by_task`: the dimensions of states that each task has of its own."""
        for layer in self.shared:
            states = torch.relu(layer(states))
        if not len(self.own):
            return states
        tasks = slice(None) if batch.task is None else slice(batch.task, batch.task + 1)
        each = list(states) if states.dim() == by_task else [states] * len(range(self._tasks)[tasks])
        for layers in self.own:
            layers_of = list(cast(nn.ModuleList, layers))[tasks]
            each = [torch.relu(layer(own)) for layer, own in zip(layers_of, each, strict=True)]
        return torch.stack(each)
