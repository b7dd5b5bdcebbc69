"""A training's layers as CUDA graphs: recorded kernels that the GPU starts by itself (docs/adr/0042).

A small step waits for the processor to start a thousand kernels. A graph of one pass is a single start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.func import functional_call

_MULTIPLE = 16
"""Windows are filled up to a multiple of so many subwords, so that few shapes are recorded."""
_MOST = 32
"""Shapes that are recorded. Others, of batches cut by subwords, are computed as they come."""


Shape = tuple[int, int]


class RecordedShapes:
    """The shapes of a training that are recorded: the first _MOST that it meets.

    Other shapes draw their dropout without padding. A resumed training must record the same shapes to draw
    the same numbers, so they are part of its state.
    """

    def __init__(self) -> None:
        self._shapes: dict[Shape, None] = {}

    def admits(self, shape: Shape) -> bool:
        """Whether this shape is recorded: it was admitted before, or there is room."""
        if len(self._shapes) < _MOST:
            self._shapes[shape] = None
        return shape in self._shapes

    @property
    def state(self) -> list[Shape]:
        """The shapes, in the order in which they were met."""
        return list(self._shapes)

    def load(self, state: Iterable[Sequence[int]]) -> None:
        """Put the shapes of a saved state in place of these."""
        self._shapes = dict.fromkeys((windows, length) for windows, length in state)


class RecordedLayers:
    """The layers of an encoder laid out as BERT's, in training on a GPU.

    A backward pass follows each forward pass. All graphs share their memory and the gradients they
    write: both passes over a batch are done before the next batch.
    """

    def __init__(self, layers: nn.Module, shapes: RecordedShapes) -> None:
        self._layers, self._shapes = layers, shapes
        self._weights = dict(layers.named_parameters())
        self._gradients = [torch.empty_like(weight) for weight in self._weights.values()]
        self._pool = torch.cuda.graph_pool_handle()
        self._passes: dict[Shape, _Passes] = {}

    def __call__(self, states: Tensor, mask: Tensor) -> Tensor:
        """The states (B, L, D) after the layers, of states (B, L, D) with this mask (B, L)."""
        windows, length = mask.shape
        shape = windows, -(-length // _MULTIPLE) * _MULTIPLE
        if not self._shapes.admits(shape):
            return _compute(self._layers, self._weights, states, mask)
        if shape not in self._passes:
            zeros = torch.zeros(*shape, states.shape[-1], dtype=states.dtype, device=states.device)
            self._passes[shape] = _Passes(self._layers, self._weights, self._gradients, zeros, self._pool)
        weights = self._weights.values()
        replayed: Tensor = _Replay.apply(self._passes[shape], states, mask, *weights)  # type: ignore[no-untyped-call] # torch's own
        return replayed


class _Passes:
    """Both passes over batches of one shape. Recording them draws no random numbers of the training."""

    def __init__(
        self,
        layers: nn.Module,
        weights: Mapping[str, Tensor],
        gradients: list[Tensor],
        states: Tensor,
        pool: Any,
    ) -> None:
        device = states.device
        self._states = states.requires_grad_()
        self._mask = torch.ones(states.shape[:2], dtype=torch.bool, device=device)
        self._gradients = gradients
        self._forward, self._backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        drawn = torch.cuda.get_rng_state(device)
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        half, is_half = torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cuda")
        # A graph must cast each weight itself, and not find it cast by the step that is being recorded.
        with torch.autocast("cuda", half, enabled=is_half, cache_enabled=False):
            with torch.cuda.stream(stream):
                # Gradients of a weight are put together on the stream that first read it, which was another.
                read_here = {name: weight.detach().requires_grad_() for name, weight in weights.items()}
                inputs = [states, *read_here.values()]
                # Once without recording: libraries allocate memory at their first call.
                output = _compute(layers, read_here, states, self._mask)
                torch.autograd.grad(output, inputs, torch.zeros_like(output))
            with torch.cuda.graph(self._forward, pool, stream, "thread_local"):
                output = _compute(layers, read_here, states, self._mask)
            self._upstream = torch.zeros_like(output)
            with torch.cuda.graph(self._backward, pool, stream, "thread_local"):
                self._into_states, *into_weights = torch.autograd.grad(output, inputs, self._upstream)
                torch._foreach_copy_(gradients, into_weights)
        self._output = output.detach()
        torch.cuda.set_rng_state(drawn, device)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """The output (B, L, D), until the next pass."""
        length = mask.shape[1]
        self._states[:, :length].copy_(states)
        self._mask.zero_()[:, :length].copy_(mask)
        self._forward.replay()
        return self._output[:, :length]

    def backward(self, gradient: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The gradients of the states and of each weight, until the next pass."""
        length = gradient.shape[1]
        self._upstream.zero_()[:, :length].copy_(gradient)
        self._backward.replay()
        return self._into_states[:, :length], [gradient.detach() for gradient in self._gradients]


class _Replay(Function):
    @staticmethod
    def forward(ctx: Any, passes: _Passes, states: Tensor, mask: Tensor, *_weights: Tensor) -> Tensor:
        ctx.passes = passes
        return passes.forward(states, mask)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        into_states, into_weights = ctx.passes.backward(gradient)
        return None, into_states, None, *into_weights


def _compute(layers: nn.Module, weights: Mapping[str, Tensor], states: Tensor, mask: Tensor) -> Tensor:
    read = {"attention_mask": square(mask)}
    computed: Tensor = functional_call(layers, dict(weights), (states,), read).last_hidden_state
    return computed


def square(mask: Tensor) -> Tensor:
    """A mask (B, L) as (B, 1, L, L), which Transformers takes as it is.

    It asks a GPU whether the other one has padding, and waits for the answer.
    """
    return mask.bool()[:, None, None, :].expand(-1, -1, mask.shape[1], -1)
