"""Speed tricks for encoders: BERT's family without padding, trained rows of a vocabulary, quick dropout.

Layers read real subwords alone, and the last one words' first subwords alone. The weights stay those of the
Transformers module, and its layers compute what they did on input without padding; windows meet in attention
alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd import Function

from core.encoding.batches import Batch
from core.models.sources import is_laid_out_as_bert


class Places:
    """Rows 0 … k-1 that lie at the different places `at` (k,) among `size`.

    Both ways are a lookup, and so are their gradients: no two rows share a place. Places without a row hold
    the first row again; they must not count, and get no gradient.
    """

    def __init__(self, at: Tensor, size: int) -> None:
        self.at = at
        self.size = size

    @cached_property
    def rows(self) -> Tensor:
        """Which row lies at each place (size,); 0 where none does."""
        rows = torch.arange(len(self.at), device=self.at.device)
        return self.at.new_zeros(self.size).index_copy_(0, self.at, rows)

    def scatter(self, rows: Tensor) -> Tensor:
        """The rows (k, d) at their places (size, d)."""
        scattered: Tensor = _Scatter.apply(rows, self)  # type: ignore[no-untyped-call] # torch's own
        return scattered

    def gather(self, everywhere: Tensor) -> Tensor:
        """The rows (k, d) that lie at their places (size, d)."""
        gathered: Tensor = _Gather.apply(everywhere, self)  # type: ignore[no-untyped-call] # torch's own
        return gathered


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, places: Places) -> Tensor:
        ctx.places = places
        return rows.index_select(0, places.rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient.index_select(0, ctx.places.at), None


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, everywhere: Tensor, places: Places) -> Tensor:
        ctx.places = places
        return everywhere.index_select(0, places.at)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        places: Places = ctx.places
        if len(places.at) == places.size:
            return gradient.index_select(0, places.rows), None
        everywhere = gradient.new_zeros(places.size, *gradient.shape[1:])
        return everywhere.index_copy_(0, places.at, gradient), None


_MOST = 0.9
"""Fraction of used rows from which on it is not worth leaving the others out."""


class TrainedRows(nn.Module):
    """An embedding (V, D) of which only the rows `used` (U,), ascending, are trained (docs/adr/0023).

    The other rows never have a gradient, so AdamW would only decay them, all by the same factor 1 − η·wd at
    every step. They stay as `pretrained`, in the encoder's files and not in the state; `decay` is the product
    of those factors.
    """

    pretrained: Tensor
    index: Tensor
    decay: Tensor

    def __init__(self, embedding: nn.Embedding, used: Tensor) -> None:
        super().__init__()
        weight = embedding.weight.detach()
        self.rows = nn.Parameter(weight[used])
        # Not copied: it may be a mapped file, most of which is never read.
        self.register_buffer("pretrained", weight, persistent=False)
        # Where row v lies in `rows`; U for the others.
        index = torch.full((len(weight),), len(used)).index_put_((used,), torch.arange(len(used)))
        self.register_buffer("index", index, persistent=False)
        self.register_buffer("decay", torch.ones((), dtype=torch.float64))
        self._padding = embedding.padding_idx
        # A padding row that is not trained is decayed with the others, and has no gradient either way.
        at = len(used) if self._padding is None else int(index[self._padding])
        self._padding_place = at if at < len(used) else None

    def forward(self, ids: Tensor) -> Tensor:
        """The rows of these subwords, (…, D). While training, a subword outside `used` is an IndexError."""
        places = self.index[ids]
        if self.training:
            return nn.functional.embedding(places, self.rows, padding_idx=self._padding_place)
        trained = len(self.rows)
        tuned = nn.functional.embedding(places.clamp(max=trained - 1), self.rows)
        others = nn.functional.embedding(ids, self.pretrained) * self.decay
        return torch.where((places < trained)[..., None], tuned, others)

    def decay_with(self, optimiser: torch.optim.Optimizer) -> None:
        """Decay the other rows whenever this optimiser, which trains `rows`, makes a step."""
        (group,) = (
            number
            for number, group in enumerate(optimiser.param_groups)
            if any(weight is self.rows for weight in group["params"])
        )

        def after_step(optimiser: torch.optim.Optimizer, *_: Any) -> None:
            options = optimiser.param_groups[group]  # a loaded state brings new ones
            self.decay.mul_(1 - options["lr"] * options["weight_decay"])

        optimiser.register_step_post_hook(after_step)

    @torch.no_grad()
    def whole(self) -> nn.Embedding:
        """All V rows as they are now, as a plain embedding."""
        weight = self.pretrained * self.decay
        weight[self.index < len(self.rows)] = self.rows
        rows, features = weight.shape
        return nn.Embedding(rows, features, padding_idx=self._padding, _weight=weight)


def train_rows(model: Any, used: NDArray[np.integer]) -> TrainedRows | None:
    """Let a Transformers model train only the rows of its subwords `used`, in any order, repeated or not.

    None, and the model as it was, where nearly all rows are used, and where its embedding is no plain one or
    is shared with another module, so that the gradient of the other rows would not be zero.
    """
    embedding = _input_embeddings(model)
    if type(embedding) is not nn.Embedding or embedding.max_norm is not None or embedding.scale_grad_by_freq:
        return None
    shared = sum(weight is embedding.weight for _, weight in model.named_parameters(remove_duplicate=False))
    rows = np.unique(used)
    if shared > 1 or len(rows) > _MOST * embedding.num_embeddings:
        return None
    trained = TrainedRows(embedding, torch.from_numpy(rows.astype(np.int64)))
    model.set_input_embeddings(trained)
    return trained


def join_rows(model: Any) -> None:
    """Put all rows of a Transformers model in one embedding again: it is trained no further."""
    trained = _input_embeddings(model)
    if isinstance(trained, TrainedRows):
        model.set_input_embeddings(trained.whole())


def weight_count(model: nn.Module) -> int:
    """How many weights a model has; of a vocabulary all rows, however many are trained."""
    left_out = sum(
        part.pretrained.numel() - part.rows.numel()
        for part in model.modules()
        if isinstance(part, TrainedRows)
    )
    return left_out + sum(weight.numel() for weight in model.parameters())


@contextmanager
def whole_vocabulary(model: Any) -> Iterator[None]:
    """A context in which a Transformers model has all its rows in one embedding, as it is saved."""
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
    except NotImplementedError:  # Transformers does not know where this model has them
        return None
    return embedding


_LEVELS = 2**16
"""16 random bits decide about a value, so that p is met to within 1/131,072."""


class Dropout(nn.Dropout):
    """`nn.Dropout` with quicker random numbers on a CPU."""

    def forward(self, values: Tensor) -> Tensor:
        return dropout(values, self.p, self.training)


def dropout(values: Tensor, p: float, training: bool = True) -> Tensor:
    """Each value zero with probability `p`, the others scaled by 1 / (1 − p).

    On a CPU torch draws masks one double at a time, which took a sixth of a layer's matrix products. Here
    they are bits of a generator that torch's own seeds for every call, so that the state of torch's generator
    is all that a training must keep to draw the same masks again.
    """
    if not training or p == 0.0:
        return values
    kept = round((1.0 - p) * _LEVELS)
    if values.device.type != "cpu" or kept in (0, _LEVELS):
        return nn.functional.dropout(values, p, training=True)
    mask = _mask(values.shape, kept)
    dropped: Tensor = _Dropped.apply(values, mask, _LEVELS / kept)  # type: ignore[no-untyped-call] # torch's own
    return dropped


def use_quick_dropout(module: nn.Module) -> None:
    """Replace the dropout layers within a module; they hold no weights, so its state stays."""
    for parent in module.modules():
        for name, child in parent.named_children():
            if type(child) is nn.Dropout:
                setattr(parent, name, Dropout(child.p).train(child.training))


def _mask(shape: torch.Size, kept: int) -> Tensor:
    """1 for `kept` of 65,536 values, 0 for the others; uint8: multiplying by bool is about 4× slower."""
    seed = int(torch.empty((), dtype=torch.int64).random_())
    # SFC64 is NumPy's quickest generator; each of its numbers decides about four values.
    numbers = np.random.SFC64(seed).random_raw(-(-shape.numel() // 4))
    bits = numbers.view(np.uint16)[: shape.numel()]
    return torch.from_numpy((bits < kept).view(np.uint8)).view(shape)


class _Dropped(Function):
    """values · mask · scale; only the mask is kept for the gradient, a byte a value."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, mask: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.scale = scale
        return (values * mask).mul_(scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (mask,) = ctx.saved_tensors
        return (gradient * mask).mul_(ctx.scale), None, None


def packs(inner: Any) -> bool:
    """Whether this Transformers model is laid out as this module computes it."""
    return is_laid_out_as_bert(vars(inner.config) | {"model_type": inner.config.model_type})


def real_states(inner: Any, batch: Batch, *, words: bool = False) -> Tensor:
    """The last hidden states of the batch's real subwords (S, D), or of words' first subwords (n, D).

    Of the last layer keys and values are needed of every subword, everything else of those alone.
    """
    heads = int(inner.config.num_attention_heads)
    return through_layers(inner.encoder.layer, heads, batch, _embeddings(inner, batch), words=words)


def through_layers(
    layers: Sequence[Any], heads: int, batch: Batch, states: Tensor, *, words: bool = False
) -> Tensor:
    """The states (S, D) of the batch's real subwords after these layers, with `heads` attention heads.

    With `words` only (n, D) of words' first subwords.
    """
    windows = _Windows(heads, batch)
    *below, last = layers
    for layer in below:
        states = windows.layer(layer, states)
    return windows.layer(last, states, words=words)


def _embeddings(inner: Any, batch: Batch) -> Tensor:
    """The embeddings (S, D) of the real subwords, each at its position within its window."""
    padding = inner.embeddings.position_embeddings.padding_idx
    if padding is None:
        positions = batch.real % batch.ids.shape[1]
    else:  # RoBERTa counts from behind its padding's position, and not the padding subword, wherever it is
        counted = batch.ids != padding
        positions = (counted.cumsum(dim=1) * counted + padding).flatten()[batch.real]
    ids = batch.ids.flatten()[batch.real]
    types = None if batch.types is None else batch.types.flatten()[batch.real][None]
    return embed(inner, input_ids=ids[None], position_ids=positions[None], token_type_ids=types)[0]


def embed(inner: Any, **inputs: Tensor | None) -> Tensor:
    """The embeddings (B, L, D) that the layers of a Transformers model of BERT's family read."""
    states: Tensor = inner.embeddings(**inputs)
    if hasattr(inner, "embeddings_project"):  # ELECTRA's small models
        states = inner.embeddings_project(states)
    return states


class _Windows:
    """A batch's B windows of at most L subwords as attention with h heads sees them: (B, h, L, d)."""

    def __init__(self, heads: int, batch: Batch) -> None:
        self._batch = batch
        self._heads = heads
        self._real = self._places(batch.real)

    def layer(self, layer: Any, states: Tensor, *, words: bool = False) -> Tensor:
        """The output of a layer for the states (S, D) of all subwords, or (n, D) of words' first subwords."""
        attention = layer.attention.self
        rows, places = (self._first.gather(states), self._words) if words else (states, self._real)
        if torch.is_autocast_enabled(states.device.type):  # once, and not for each of the three products
            states = states.to(torch.get_autocast_dtype(states.device.type))
        queried = self._first.gather(states) if words else states
        read = self._attention(
            places.scatter(self._split(attention.query(queried))),
            self._real.scatter(self._split(attention.key(states))),
            self._real.scatter(self._split(attention.value(states))),
            attention.dropout.p if attention.training else 0.0,
        )
        read = places.gather(read).view(rows.shape)
        attended = layer.attention.output(read, rows)
        result: Tensor = layer.output(layer.intermediate(attended), attended)
        return result

    def _attention(self, queries: Tensor, keys: Tensor, values: Tensor, p: float) -> Tensor:
        """Attention with dropout `p`, of queries, keys and values (B·h·L, d): (B·h·L, d)."""
        windows, length = self._batch.ids.shape
        size = queries.shape[-1]
        if p and queries.device.type == "cpu":
            # Spelt out: torch has no kernel with dropout here, and draws the numbers slowly.
            queries, keys, values = (part.view(-1, length, size) for part in (queries, keys, values))
            scores = torch.baddbmm(self._hidden, queries, keys.transpose(1, 2), alpha=size**-0.5)
            return torch.bmm(dropout(scores.softmax(dim=-1), p), values).view(-1, size)
        queries, keys, values = (
            part.view(windows, self._heads, length, size) for part in (queries, keys, values)
        )
        read = nn.functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=self._seen, dropout_p=p
        )
        return read.reshape(-1, size)

    def _split(self, states: Tensor) -> Tensor:
        """The heads' parts (k·h, d) of states (k, D)."""
        return states.reshape(len(states) * self._heads, -1)

    def _places(self, at: Tensor) -> Places:
        """The indices in (B·h·L) of each head's part of the subwords at these places of (B·L)."""
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
        """(B, 1, 1, L): which subwords are real; None where all are."""
        batch = self._batch
        return batch.mask.bool()[:, None, None] if len(batch.real) < batch.mask.numel() else None

    @cached_property
    def _hidden(self) -> Tensor:
        """(B·h, 1, L): added to the scores before the softmax: -inf where there is padding."""
        bias = torch.zeros(self._batch.mask.shape, device=self._batch.mask.device)
        bias = bias.masked_fill_(self._batch.mask == 0, -torch.inf)
        return bias.repeat_interleave(self._heads, dim=0)[:, None]
