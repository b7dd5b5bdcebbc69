"""Task embeddings: a shared transformer with an input for the task (TEA-BERT, section 4.1).

Every injection adds a vector of the task to states of the model, through hooks on the modules of Transformers
that compute them. The packed path of `fast_bert` calls the same modules, so that there is no second model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from core.encoding.batches import Batch
from core.errors import EncoderError
from core.models.encoders.fast_bert import packs
from core.models.encoders.transformer import Transformer

_ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "elu": nn.functional.elu,
    "tanh": torch.tanh,
    "selu": nn.functional.selu,
}
_PARTS = ("query", "key", "value")
_KEY = 1


@dataclass(frozen=True)
class _Reading:
    """The task of each row of states while a batch is read: (S,) without padding, else (B, 1).

    The queries of the last layer may be the words' alone.
    """

    states: Tensor
    last_queries: Tensor


_READING: ContextVar[_Reading] = ContextVar("reading")
"""The tasks of the batch that this thread reads; several threads may tag with one model."""


class TaskEmbeddedTransformer(nn.Module):
    """A transformer that reads each window for the task in `batch.tasks`.

    An injection gives, with one vector E_task a task and matrices W of each layer's Q, K and V,

    input             Ê = E + E_task, for the output E of the model's embeddings
    attention         Q̂ = Q + Q_task, with vectors of their own for Q, K and V of every layer
    projected         Q̂ = Q + W_task · E_task
    elu, tanh, selu   Q̂ = W_proj · f(Q + W_task · E_task)

    and the same of K and V. Without f what is added to K changes nothing but rounding: all keys of a window
    share it, and so do all scores of a query. It is there as published.

    The paper does not say what these weights start from. Here vectors are drawn from a normal distribution
    with the deviation of BERT's own embeddings (`initializer_range`, 0.02), so small that pre-trained states
    hardly change. From zeros the first step would be that of a model without them, but W_task would have no
    gradient, all tasks the same states, and vectors no cosine. W_task starts as any linear layer does, W_proj
    as the identity: MiniLM's states then begin at a cosine of 0.80 (tanh), 0.87 (elu) and 0.97 (selu) with
    the pre-trained ones; with a random W_proj it is 0.51 to 0.55.

    Raises EncoderError where the transformer has no modules to inject into.
    """

    task_vectors: nn.Parameter

    def __init__(self, transformer: Transformer, tasks: int, injection: str) -> None:
        super().__init__()
        inner = transformer.inner
        self.transformer = transformer
        self.features = transformer.features
        self.injection = injection
        self._activation = _ACTIVATIONS.get(injection)
        places, width = _at_input(inner) if injection == "input" else _in_attention(inner, injection)
        self._biases = tuple(places)
        self._last_query = None if injection == "input" else len(places) - len(_PARTS)
        for index, module in enumerate(places.values()):
            module.register_forward_hook(partial(self._inject, index))

        shape = (tasks, len(places), width) if injection == "attention" else (tasks, width)
        deviation = float(getattr(inner.config, "initializer_range", 0.02))
        self.task_vectors = nn.Parameter(torch.empty(shape).normal_(std=deviation))
        projected = injection not in ("input", "attention")
        self.projections = _matrices(len(places) if projected else 0, width)
        self.outputs = _matrices(len(places) if self._activation else 0, width)
        for output in self.outputs.parameters():
            nn.init.eye_(output)

    def forward(self, batch: Batch) -> Tensor:
        return self._read(self.transformer, batch, words=False)

    def words(self, batch: Batch) -> Tensor:
        return self._read(self.transformer.words, batch, words=True)

    @property
    def added_parameters(self) -> int:
        """The number of weights that the injection adds to the transformer."""
        own = (self.task_vectors, *self.projections.parameters(), *self.outputs.parameters())
        return sum(weight.numel() for weight in own)

    @property
    def note(self) -> str:
        return f"Task embeddings ({self.injection}) add {self.added_parameters:,} weights."

    @property
    def folds(self) -> bool:
        """Whether the vectors are only added to outputs of layers, and could be part of their biases."""
        state = self.transformer.inner.state_dict()
        return self._activation is None and all(bias in state for bias in self._biases)

    @torch.no_grad()
    def folded_state(self, task: int) -> dict[str, Tensor]:
        """The state of a Transformers model that computes the same for that task. Needs `folds`."""
        state: dict[str, Tensor] = dict(self.transformer.inner.state_dict())
        for index, bias in enumerate(self._biases):
            state[bias] = state[bias] + self._vectors(index)[task]
        return state

    def _read(self, read: Callable[[Batch], Tensor], batch: Batch, *, words: bool) -> Tensor:
        """The output of the transformer for the batch, with the task of every row known to the hooks."""
        if batch.tasks is None:
            raise ValueError("a batch for task embeddings must say the task of each window")
        states = last_queries = batch.tasks[:, None]
        if self.transformer.computes_packed(batch):
            length = batch.ids.shape[1]
            states = batch.tasks[batch.real // length]
            last_queries = batch.tasks[batch.rows // length] if words else states
        before = _READING.set(_Reading(states, last_queries))
        try:
            return read(batch)
        finally:
            _READING.reset(before)

    def _inject(self, index: int, _module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
        reading = _READING.get()
        tasks = reading.last_queries if index == self._last_query else reading.states
        # Of the output's type: embeddings stay float32 where linear layers compute in bfloat16.
        with_task = output + nn.functional.embedding(tasks, self._vectors(index).to(output.dtype))
        if self._activation is None:
            return with_task
        activated: Tensor = self.outputs[index](self._activation(with_task))
        return activated

    def _vectors(self, index: int) -> Tensor:
        """The vectors (T, d) added for each task at this location."""
        if self.injection == "attention":
            return self.task_vectors[:, index]
        if self.injection == "input":
            return self.task_vectors
        projected: Tensor = self.projections[index](self.task_vectors)
        return projected


def embed_tasks(
    transformer: Transformer, tasks: int, injection: str | None
) -> Transformer | TaskEmbeddedTransformer:
    """The transformer with task embeddings of that injection; as it is where this is `none` or unset."""
    if injection in (None, "none"):
        return transformer
    return TaskEmbeddedTransformer(transformer, tasks, injection)


def task_vectors(model: nn.Module) -> Tensor | None:
    """The vectors (T, d) by which a model distinguishes its tasks; None where it has no task embeddings.

    Those of all queries and values side by side where each has its own; those of keys change nothing.
    """
    for module in model.modules():
        if isinstance(module, TaskEmbeddedTransformer):
            vectors = module.task_vectors.detach()
            if module.injection == "attention":
                places = [index for index in range(vectors.shape[1]) if index % len(_PARTS) != _KEY]
                vectors = vectors[:, places]
            return vectors.flatten(1).clone()
    return None


def cosine_similarities(vectors: Tensor) -> Tensor:
    """The cosine of each two rows (T, T); 0 where a row is zero."""
    unit = nn.functional.normalize(vectors, dim=1)
    return unit @ unit.T


def _matrices(count: int, width: int) -> nn.ModuleList:
    return nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(count))


def _at_input(inner: Any) -> tuple[dict[str, nn.Module], int]:
    """The embeddings by the bias of their last layer, and their number of features.

    ELECTRA's small models have fewer features there than in the states.
    """
    embeddings = getattr(inner, "embeddings", nn.Identity())
    norms = [(name, part) for name, part in embeddings.named_modules() if isinstance(part, nn.LayerNorm)]
    if not norms:
        raise EncoderError(
            f"No task embeddings fit an encoder of type {inner.config.model_type}: it has no embeddings that "
            "end in a LayerNorm. Set task_embedding to none."
        )
    name, norm = norms[-1]
    return {f"embeddings.{name}.bias": embeddings}, norm.normalized_shape[0]


def _in_attention(inner: Any, injection: str) -> tuple[dict[str, nn.Module], int]:
    """Every layer's linear layers for queries, keys and values, by their biases, and their features."""
    if not packs(inner):
        raise EncoderError(
            f"The task embedding '{injection}' needs layers laid out as BERT's, which an encoder of type "
            f"{inner.config.model_type} does not have. Set task_embedding to input."
        )
    places = {
        f"encoder.layer.{number}.attention.self.{part}.bias": getattr(layer.attention.self, part)
        for number, layer in enumerate(inner.encoder.layer)
        for part in _PARTS
    }
    return places, int(inner.config.hidden_size)
