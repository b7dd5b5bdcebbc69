"""The shared layers. An encoder turns a batch of subwords into states (B, L, D) for all tasks."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

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


def at_words(states: Tensor, batch: Batch) -> Tensor:
    """The states (…, n, D) of each word's first subword, from the states of all subwords (…, B, L, D)."""
    return states.flatten(-3, -2)[..., batch.rows, :]
