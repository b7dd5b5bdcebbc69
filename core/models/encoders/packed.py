"""Encoders of BERT's family on real subwords alone, and at their last layer on words' first subwords alone.

The weights stay those of the Transformers module, and its layers compute what they did. Only what they are
given has no padding; windows meet in attention alone, which is told where each begins and ends.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from core.encoding.batches import Batch
from core.models.dropout import dropout
from core.models.encoders.places import Places

__all__ = ["packs", "real_states", "word_states"]

_FAMILY = {"bert", "camembert", "electra", "roberta", "xlm-roberta"}
"""Model types that Transformers lays out as it does BERT: learnt absolute positions, LayerNorm last."""


def packs(inner: Any) -> bool:
    """Whether this Transformers model is laid out as this module computes it."""
    config = inner.config
    return (
        config.model_type in _FAMILY
        and not config.is_decoder
        and getattr(config, "position_embedding_type", "absolute") == "absolute"
    )


def real_states(inner: Any, batch: Batch) -> Tensor:
    """The last hidden states (S, D) of the batch's real subwords."""
    windows = _Windows(inner, batch)
    states = _embeddings(inner, batch)
    for layer in inner.encoder.layer:
        states = windows.layer(layer, states)
    return states


def word_states(inner: Any, batch: Batch) -> Tensor:
    """The last hidden states (n, D) of words' first subwords.

    Keys and values of the last layer are needed of every subword, everything else of these alone.
    """
    windows = _Windows(inner, batch)
    states = _embeddings(inner, batch)
    *layers, last = inner.encoder.layer
    for layer in layers:
        states = windows.layer(layer, states)
    return windows.layer(last, states, words=True)


def _embeddings(inner: Any, batch: Batch) -> Tensor:
    """The embeddings (S, D) of the real subwords, each at its position within its window."""
    padding = inner.embeddings.position_embeddings.padding_idx
    if padding is None:
        positions = batch.real % batch.ids.shape[1]
    else:  # RoBERTa counts from behind its padding's position, and not the padding subword, wherever it is
        counted = batch.ids != padding
        positions = (counted.cumsum(dim=1) * counted + padding).flatten()[batch.real]
    ids = batch.ids.flatten()[batch.real]
    states: Tensor = inner.embeddings(input_ids=ids[None], position_ids=positions[None])[0]
    if hasattr(inner, "embeddings_project"):  # ELECTRA's small models
        states = inner.embeddings_project(states)
    return states


class _Windows:
    """A batch's B windows of at most L subwords as attention with h heads sees them: (B, h, L, d)."""

    def __init__(self, inner: Any, batch: Batch) -> None:
        self._batch = batch
        self._heads = int(inner.config.num_attention_heads)
        self._real = self._places(batch.real)

    def layer(self, layer: Any, states: Tensor, *, words: bool = False) -> Tensor:
        """What a layer makes of the states (S, D): all subwords', or those (n, D) of words' first ones."""
        attention = layer.attention.self
        asked, places = (self._first.pick(states), self._words) if words else (states, self._real)
        read = self._attention(
            places.spread(self._split(attention.query(asked))),
            self._real.spread(self._split(attention.key(states))),
            self._real.spread(self._split(attention.value(states))),
            attention.dropout.p if attention.training else 0.0,
        )
        read = places.pick(read).view(asked.shape)
        attended = layer.attention.output(read, asked)
        result: Tensor = layer.output(layer.intermediate(attended), attended)
        return result

    def _attention(self, queries: Tensor, keys: Tensor, values: Tensor, share: float) -> Tensor:
        """What is read at each place, all (B·h·L, d), with that share of what would be read dropped."""
        windows, length = self._batch.ids.shape
        size = queries.shape[-1]
        if share and queries.device.type == "cpu":
            # Spelt out, for torch has no kernel with dropout here, and draws the numbers slowly.
            queries, keys, values = (part.view(-1, length, size) for part in (queries, keys, values))
            scores = torch.baddbmm(self._hidden, queries, keys.transpose(1, 2), alpha=size**-0.5)
            return torch.bmm(dropout(scores.softmax(dim=-1), share), values).view(-1, size)
        queries, keys, values = (
            part.view(windows, self._heads, length, size) for part in (queries, keys, values)
        )
        read = nn.functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=self._seen, dropout_p=share
        )
        return read.reshape(-1, size)

    def _split(self, states: Tensor) -> Tensor:
        """The heads' parts (k·h, d) of states (k, D)."""
        return states.reshape(len(states) * self._heads, -1)

    def _places(self, at: Tensor) -> Places:
        """Where the parts of the subwords at these places in the flattened (B·L) are in (B·h·L)."""
        windows, length = self._batch.ids.shape
        rows = (at // length * self._heads)[:, None] + torch.arange(self._heads, device=at.device)
        return Places((rows * length + (at % length)[:, None]).flatten(), windows * self._heads * length)

    @cached_property
    def _words(self) -> Places:
        return self._places(self._batch.rows)

    @cached_property
    def _first(self) -> Places:
        """Words' first subwords among all S."""
        batch = self._batch
        return Places(Places(batch.real, batch.ids.numel()).rows[batch.rows], len(batch.real))

    @cached_property
    def _seen(self) -> Tensor | None:
        """(B, 1, 1, L): which subwords are no padding; None where all are."""
        batch = self._batch
        return batch.mask.bool()[:, None, None] if len(batch.real) < batch.mask.numel() else None

    @cached_property
    def _hidden(self) -> Tensor:
        """(B·h, 1, L): what is added to a score before the softmax: -inf where there is padding."""
        bias = torch.zeros(self._batch.mask.shape, device=self._batch.mask.device)
        bias = bias.masked_fill_(self._batch.mask == 0, -torch.inf)
        return bias.repeat_interleave(self._heads, dim=0)[:, None]
