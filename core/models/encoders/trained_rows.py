"""Training only those rows of a vocabulary that occur in the training text (docs/adr/0023)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

__all__ = ["TrainedRows", "join_rows", "train_rows", "weight_count", "whole_vocabulary"]

_MOST = 0.9
"""Share of the rows from which on it is not worth leaving the others out."""


class TrainedRows(nn.Module):
    """An embedding (V, D) of which only the rows `used` (U,) are trained, in ascending order.

    The other rows never have a gradient, so AdamW would do no more than decay them, all by the same factor
    1 − η·wd at every step. The weight stays as it was `pretrained`, and the product of those factors is
    `decay`. It is no part of the state, as a frozen encoder is not: it is where the encoder is.
    """

    pretrained: Tensor
    place: Tensor
    decay: Tensor

    def __init__(self, embedding: nn.Embedding, used: Tensor) -> None:
        super().__init__()
        weight = embedding.weight.detach()
        self.rows = nn.Parameter(weight[used])
        # Not copied: it may be a file that is read where it is asked for, and most of it never is.
        self.register_buffer("pretrained", weight, persistent=False)
        # Where row v lies in `rows`; U, where nothing does, for the others.
        place = torch.full((len(weight),), len(used)).index_put_((used,), torch.arange(len(used)))
        self.register_buffer("place", place, persistent=False)
        self.register_buffer("decay", torch.ones((), dtype=torch.float64))
        self._padding = embedding.padding_idx
        self._padding_place = None if self._padding is None else int(place[self._padding])

    def forward(self, ids: Tensor) -> Tensor:
        """The rows of these subwords, (…, D). While training, a subword outside `used` is an IndexError."""
        places = self.place[ids]
        if self.training:
            return nn.functional.embedding(places, self.rows, padding_idx=self._padding_place)
        trained = len(self.rows)
        known = nn.functional.embedding(places.clamp(max=trained - 1), self.rows)
        others = nn.functional.embedding(ids, self.pretrained) * self.decay
        return torch.where((places < trained)[..., None], known, others)

    def decay_with(self, optimiser: torch.optim.Optimizer) -> None:
        """Let the other rows decay whenever this optimiser, which trains `rows`, makes a step."""
        (group,) = (
            number
            for number, group in enumerate(optimiser.param_groups)
            if any(weight is self.rows for weight in group["params"])
        )

        def after_step(optimiser: torch.optim.Optimizer, *_: Any) -> None:
            options = optimiser.param_groups[group]  # looked up: a state that is loaded brings new ones
            self.decay.mul_(1 - options["lr"] * options["weight_decay"])

        optimiser.register_step_post_hook(after_step)

    @torch.no_grad()
    def whole(self) -> nn.Embedding:
        """All V rows as they are now, in an embedding of their own."""
        weight = self.pretrained * self.decay
        weight[self.place < len(self.rows)] = self.rows
        rows, features = weight.shape
        return nn.Embedding(rows, features, padding_idx=self._padding, _weight=weight)


def train_rows(model: Any, used: NDArray[np.integer]) -> TrainedRows | None:
    """Let a Transformers model train only the rows of its subwords `used`, in any order, repeated or not.

    None, and the model as it was, where nearly all rows are used, and where its embedding is one of its own
    making or another weight of the model, of which the gradient of the other rows would not be zero.
    """
    embedding = _plain_embedding(model)
    rows = np.unique(used)
    if embedding is None or len(rows) > _MOST * embedding.num_embeddings:
        return None
    trained = TrainedRows(embedding, torch.from_numpy(rows.astype(np.int64)))
    model.set_input_embeddings(trained)
    return trained


def join_rows(model: Any) -> None:
    """All rows of a Transformers model in one embedding again, for good: it is trained no further."""
    trained = _input_embeddings(model)
    if isinstance(trained, TrainedRows):
        model.set_input_embeddings(trained.whole())


def weight_count(model: nn.Module) -> int:
    """How many weights a model has, each once; of a vocabulary all rows, however many are trained."""
    left_out = sum(
        part.pretrained.numel() - part.rows.numel()
        for part in model.modules()
        if isinstance(part, TrainedRows)
    )
    return left_out + sum(weight.numel() for weight in model.parameters())


@contextmanager
def whole_vocabulary(model: Any) -> Iterator[None]:
    """For a while a Transformers model has all its rows in one embedding again, as it is saved."""
    trained = _input_embeddings(model)
    join_rows(model)
    try:
        yield
    finally:
        if isinstance(trained, TrainedRows):
            model.set_input_embeddings(trained)


def _input_embeddings(model: Any) -> nn.Module | None:
    try:
        embedding: nn.Module = model.get_input_embeddings()
    except NotImplementedError:  # a model of which Transformers does not know where it has them
        return None
    return embedding


def _plain_embedding(model: Any) -> nn.Embedding | None:
    """The embedding of a model's subwords, where nothing else reads its weight."""
    embedding = _input_embeddings(model)
    if type(embedding) is not nn.Embedding or embedding.max_norm is not None or embedding.scale_grad_by_freq:
        return None
    shared = sum(weight is embedding.weight for _, weight in model.named_parameters(remove_duplicate=False))
    return embedding if shared == 1 else None
