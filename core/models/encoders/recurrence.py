"""A bidirectional LSTM over windows of different lengths, for a processor.

The equations and the weights are those of `torch.nn.LSTM` (gates in its order: input, forget, cell, output).
There each direction goes its own way, and the gradient of the recurrent weights is summed up step by step,
a matrix as large as they are each time. Here both directions go together, what does not depend on the step
before is computed for all steps at once, and that gradient is one product at the end.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from core.models.encoders.places import Places

__all__ = ["read_both_ways"]

_WAYS = ("", "_reverse")
"""How torch marks the weights of each direction."""


def read_both_ways(lstm: nn.LSTM, states: Tensor, lengths: Tensor, width: int) -> Tensor:
    """The outputs (S, 2H) of one bidirectional layer for states (S, D), windows one after the other.

    `lengths` (B,) are the windows' numbers of states, the longest `width`, in the processor's memory. The
    outputs stand where the states do.
    """
    order, sizes = _steps(lengths, width)
    places = [Places(own, len(states)) for own in order]
    gates = torch.stack(
        [
            nn.functional.linear(
                own.pick(states),
                getattr(lstm, f"weight_ih_l0{way}"),
                getattr(lstm, f"bias_ih_l0{way}") + getattr(lstm, f"bias_hh_l0{way}"),
            )
            for own, way in zip(places, _WAYS, strict=True)
        ]
    )
    weights = torch.stack([getattr(lstm, f"weight_hh_l0{way}") for way in _WAYS])
    outputs: Tensor = _Recurrence.apply(gates, weights, sizes)  # type: ignore[no-untyped-call] # torch's own
    return torch.cat([own.spread(way) for own, way in zip(places, outputs, strict=True)], dim=1)


def _steps(lengths: Tensor, width: int) -> tuple[Tensor, list[int]]:
    """Which state each direction reads in which order (2, S), and how many windows go on at each step.

    At each step come the windows that are not yet over, the longest first. The second direction begins with
    each window's last state.
    """
    longest = lengths.argsort(descending=True, stable=True)
    own = lengths[longest]
    starts = (lengths.cumsum(0) - lengths)[longest]
    goes_on = torch.arange(width)[:, None] < own
    step, window = goes_on.nonzero(as_tuple=True)
    first = starts[window]
    order = torch.stack([first + step, first + own[window] - 1 - step])
    return order, goes_on.sum(dim=1).tolist()


class _Recurrence(Function):
    """Outputs (2, S, H) from what the inputs give to the gates (2, S, 4H), and weights (2, 4H, H)."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, weights: Tensor, sizes: list[int]) -> Tensor:
        gates = given.clone()
        hidden = weights.shape[2]
        outputs, cells, squashed = (gates.new_empty(*gates.shape[:2], hidden) for _ in range(3))
        across = weights.transpose(1, 2)
        before, start = slice(0, 0), 0
        for size in sizes:
            now = slice(start, start + size)
            at = gates[:, now]
            if start:
                at.baddbmm_(outputs[:, before.start : before.start + size], across)
            inward, forget, cell, outward = at.chunk(4, dim=2)
            at[..., : 2 * hidden].sigmoid_()
            cell.tanh_()
            outward.sigmoid_()
            torch.mul(inward, cell, out=cells[:, now])
            if start:
                cells[:, now].addcmul_(forget, cells[:, before.start : before.start + size])
            torch.tanh(cells[:, now], out=squashed[:, now])
            torch.mul(outward, squashed[:, now], out=outputs[:, now])
            before, start = now, now.stop
        ctx.save_for_backward(gates, weights, outputs, cells, squashed)
        ctx.sizes = sizes
        return outputs

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        gates, weights, outputs, cells, squashed = ctx.saved_tensors
        sizes: list[int] = ctx.sizes
        first = sizes[0]
        earlier = _earlier(sizes)
        inward, forget, cell, outward = gates.chunk(4, dim=2)
        # What each gate's gradient is per gradient of the cell, or, for the last, of the output.
        slopes = torch.empty_like(gates)
        of_inward, of_forget, of_cell, of_outward = slopes.chunk(4, dim=2)
        of_inward.copy_(cell * inward * (1 - inward))
        of_forget[:, :first] = 0
        of_forget[:, first:] = cells.index_select(1, earlier) * (forget * (1 - forget))[:, first:]
        of_cell.copy_(inward * (1 - cell * cell))
        of_outward.copy_(squashed * outward * (1 - outward))
        through = outward * (1 - squashed * squashed)  # of the cell per gradient of the output

        hidden = weights.shape[2]
        towards_output = gradient.new_zeros(2, 0, hidden)
        towards_cell = towards_output
        stop = gates.shape[1]
        for size in reversed(sizes):
            now = slice(stop - size, stop)
            output = gradient[:, now].clone()
            output[:, : towards_output.shape[1]] += towards_output
            own = output * through[:, now]
            own[:, : towards_cell.shape[1]] += towards_cell
            at = slopes[:, now]
            at[..., : 3 * hidden].view(2, size, 3, hidden).mul_(own[:, :, None])
            at[..., 3 * hidden :].mul_(output)
            if now.start:
                towards_cell = own * forget[:, now]
                towards_output = torch.bmm(at, weights)
            stop = now.start
        to_weights = torch.bmm(slopes[:, first:].transpose(1, 2), outputs.index_select(1, earlier))
        return slopes, to_weights, None


def _earlier(sizes: list[int]) -> Tensor:
    """Where the step before stands, of all that stand in no first step."""
    counts = torch.tensor(sizes)
    return torch.arange(sizes[0], sum(sizes)) - counts[:-1].repeat_interleave(counts[1:])
