"""Stacks of bidirectional LSTMs: one representation for all tasks, or one per task (Lu et al., 2019).

`StackedBiLSTM` is the paper's LSTM-s, `LayeredBiLSTM` its LSTM-d and `SCLSTM` its SC-LSTM. A new encoder over
words is a class here with a line in `word_stack`, and a line in `core.registry.WORD_ENCODERS`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd import Function

from core.config import RunConfig
from core.encoding.batches import Batch
from core.models.encoders import Encoder, Part, at_words
from core.models.encoders.bilstm import WEIGHTS, mirrored, read_both_ways
from core.models.encoders.fast_bert import Dropout, Places
from core.models.encoders.word_inputs import WordInputs


def word_stack(config: RunConfig, inputs: WordInputs) -> StackedBiLSTM:
    """The layers that a run's encoder over words puts on its inputs."""
    hidden, dropout = int(config.bilstm_hidden or 0), config.input_dropout or 0.0
    layers = int(config.lstm_layer_count or 1)
    if config.encoder == "lstm-d":
        order = [config.tasks.index(task) for task in config.task_order or config.tasks]
        return LayeredBiLSTM(inputs, hidden, layers, dropout, order)
    if config.encoder == "sc-lstm":
        return SCLSTM(inputs, hidden, layers, dropout, len(config.tasks))
    if config.window is not None:
        return WindowedBiLSTM(inputs, hidden, config.window, dropout)
    return StackedBiLSTM(inputs, hidden, layers, dropout)


class StackedBiLSTM(nn.Module):
    """LSTM-s: `layers` bidirectional LSTMs on top of each other; all tasks read the last, D = 2 · hidden.

    The states that enter a layer, those of `below` too, are dropped with probability `dropout`.
    """

    part: Part = "bilstm"

    def __init__(self, below: Encoder, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.below = below
        self.lstm = nn.ModuleList(
            nn.LSTM(size, hidden, batch_first=True, bidirectional=True)
            for size in (below.features, *itertools.repeat(2 * hidden, layers - 1))
        )
        self.dropout = Dropout(dropout)
        self.features = 2 * hidden

    def forward(self, batch: Batch) -> Tensor:
        return self._read(batch, len(self.lstm))[-1]

    def words(self, batch: Batch) -> Tensor:
        return at_words(self(batch), batch)

    def _read(self, batch: Batch, layers: int) -> list[Tensor]:
        """The states (B, L, ·) of `below` and of each of the lowest `layers`."""
        states: list[Tensor] = [self.below(batch)]
        for lstm in self.lstm[:layers]:
            dropped = self.dropout(states[-1])
            states.append(read_both_ways(cast(nn.LSTM, lstm), dropped, batch.lengths))
        return states


class LayeredBiLSTM(StackedBiLSTM):
    """LSTM-d: each task reads a layer of its own (Søgaard and Goldberg, 2016), D = 2 · hidden.

    `order` has the T tasks from the lowest layer to the last. With more layers than tasks the lowest serve no
    task, with fewer the first tasks share the lowest: the last task reads the last layer always. Raises
    ValueError where `order` is no order of tasks 0 … T-1.
    """

    def __init__(
        self, below: Encoder, hidden: int, layers: int, dropout: float, order: Sequence[int]
    ) -> None:
        super().__init__(below, hidden, layers, dropout)
        if sorted(order) != list(range(len(order))):
            raise ValueError(f"no order of {len(order)} tasks: {tuple(order)}")
        self._layer = [max(0, layers - len(order) + order.index(task)) for task in range(len(order))]

    def forward(self, batch: Batch) -> Tensor:
        layers = self._layer[_tasks(batch)]
        _, *states = self._read(batch, 1 + max(layers))
        return torch.stack([states[layer] for layer in layers])


def _tasks(batch: Batch) -> slice:
    """A slice of the tasks that a batch needs states for."""
    return slice(None) if batch.task is None else slice(batch.task, batch.task + 1)


class WindowedBiLSTM(StackedBiLSTM):
    """The states of one bidirectional LSTM over a window of `size` words around each word.

    D = 2 · hidden (Bettgenhäuser et al., 2020, section 4). Windows end where the sentence does.

    Forwards the word ends what is read: h(i, s), the state at word i after the s words before it, is one step
    from h(i-1, s-1). So all words take a step together, and no word is read once for each window.
    """

    def __init__(self, below: Encoder, hidden: int, size: int, dropout: float) -> None:
        super().__init__(below, hidden, 1, dropout)
        self._beside = size // 2

    def _read(self, batch: Batch, layers: int) -> list[Tensor]:
        inputs: Tensor = self.below(batch)
        words = self.dropout(inputs).flatten(0, 1)[batch.real]
        lengths = batch.lengths.to(words.device)
        ends = lengths.cumsum(0)
        has_left, has_right = words.new_ones(2, len(words), 1)
        has_left[ends - lengths] = 0
        has_right[ends - 1] = 0
        states = torch.cat(
            [self._run(words, "", has_left, 1), self._run(words, "_reverse", has_right, -1)], dim=1
        )
        everywhere = states.new_zeros(batch.ids.numel(), self.features)
        return [inputs, everywhere.index_copy(0, batch.real, states).view(*batch.ids.shape, -1)]

    def _run(self, words: Tensor, direction: str, has_neighbour: Tensor, shift: int) -> Tensor:
        """One direction's states (S, hidden) of S words (S, ·), `shift` words behind the one read before."""
        lstm = cast(nn.LSTM, self.lstm[0])
        weight_ih, weight_hh, *biases = (getattr(lstm, name + direction) for name in WEIGHTS)
        read = nn.functional.linear(words, weight_ih, sum(biases))  # of each word once, whatever its windows
        h = c = words.new_zeros(len(words), lstm.hidden_size)
        for step in range(self._beside + 1):
            gates = read
            if step:
                h, c = (state.roll(shift, 0) * has_neighbour for state in (h, c))
                gates = torch.addmm(read, h, weight_hh.t())
            i, f, g, o = gates.chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h


class SCLSTM(StackedBiLSTM):
    """SC-LSTM: in the last layer, `tasks` output gates look at the memory of one shared cell; D = 4 · hidden.

    In each direction task k has q^k_t = o^k_t ∘ tanh(c_t) with o^k_t = σ(W_k q^k_{t-1} + U_k x_t + b_k),
    beside the shared h_t (equations 1 and 2). It reads q^k ⊕ h (equation 3): q^k of both directions, then h
    of both. Lower layers pass on h. A gate learns from its task alone; the shared cell learns from all tasks,
    through h_t and through c_t.
    """

    def __init__(self, below: Encoder, hidden: int, layers: int, dropout: float, tasks: int) -> None:
        super().__init__(below, hidden, layers, dropout)
        self.features = 4 * hidden
        size = self._shared.input_size
        self.gate_weight_ih = nn.Parameter(torch.empty(2, tasks, hidden, size))  # U_k, by direction
        self.gate_weight_hh = nn.Parameter(torch.empty(2, tasks, hidden, hidden))  # W_k
        self.gate_bias = nn.Parameter(torch.empty(2, tasks, hidden))  # b_k
        for weight in (self.gate_weight_ih, self.gate_weight_hh, self.gate_bias):
            nn.init.uniform_(weight, -(hidden**-0.5), hidden**-0.5)  # as nn.LSTM's own

    def forward(self, batch: Batch) -> Tensor:
        places = torch.arange(batch.ids.numel(), device=batch.ids.device)
        return self._at(batch, places).view(-1, *batch.ids.shape, self.features)

    def words(self, batch: Batch) -> Tensor:
        return self._at(batch, batch.rows)

    @property
    def _shared(self) -> nn.LSTM:
        return cast(nn.LSTM, self.lstm[-1])

    def _at(self, batch: Batch, rows: Tensor) -> Tensor:
        """Each task's states (T, m, D) at m different places of the flattened (B·L)."""
        inputs = self.dropout(self._read(batch, len(self.lstm) - 1)[-1])
        windows, width = batch.ids.shape
        window = torch.arange(windows, device=rows.device)[:, None]
        forwards = torch.arange(width, device=rows.device).expand(windows, width)
        # When each direction reads a place (2, B, L); mirrored windows are read forwards, too.
        times = torch.stack([forwards, mirrored(batch.mask.sum(dim=1), width)])
        order = (window * width + times).transpose(1, 2).flatten(1)
        read = [Places(places, windows * width).gather(inputs.flatten(0, 1)) for places in order]
        shared, by_task = self._run([states.view(width, windows, -1) for states in read], _tasks(batch))

        def at_rows(states: Tensor) -> Tensor:
            """The states at the rows (k, m, 2, H) from k kinds of states (L, 2, k, B, H)."""
            kinds, hidden = states.shape[2], states.shape[4]
            time, direction = times.flatten(1).t()[rows], torch.arange(2, device=rows.device)
            kind = torch.arange(kinds, device=rows.device)[:, None, None]
            at = ((time * 2 + direction) * kinds + kind) * windows + (rows // width)[:, None]
            picked = Places(at.flatten(), states.numel() // hidden).gather(states.flatten(0, 3))
            return picked.view(kinds, len(rows), 2, hidden)

        task_states = at_rows(by_task)
        return torch.cat([task_states, at_rows(shared[:, :, None]).expand_as(task_states)], dim=2).flatten(2)

    def _run(self, read: Sequence[Tensor], tasks: slice) -> tuple[Tensor, Tensor]:
        """The shared states (L, 2, B, H) and the tasks' (L, 2, T, B, H) from both directions' (L, B, ·)."""
        linear = nn.functional.linear
        inputs, recurrents, biases = (
            weight[:, tasks] for weight in (self.gate_weight_ih, self.gate_weight_hh, self.gate_bias)
        )
        both = self._shared.all_weights  # of both directions: input, recurrent, and two biases
        states: tuple[Tensor, Tensor] = _SharedCell.apply(  # type: ignore[no-untyped-call] # torch's own
            *(linear(x, weight, b + c) for x, (weight, _, b, c) in zip(read, both, strict=True)),
            torch.stack([recurrent for _, recurrent, _, _ in both]),
            *(
                linear(x, weight.flatten(0, 1), bias.flatten()).unflatten(2, bias.shape).transpose(1, 2)
                for x, weight, bias in zip(read, inputs, biases, strict=True)
            ),
            recurrents,
        )
        return states


class _SharedCell(Function):
    """The shared cell's h (L, 2, B, H) and the tasks' q (L, 2, T, B, H), directions and tasks at once.

    `forwards` and `backwards` (L, B, 4H) are what the inputs add to the shared cell's gates i, f, g, o, and
    `weight` (2, 4H, H) has the recurrent weights; the tasks' output gates have (L, T, B, H) and (2, T, H, H).

    Only what has to goes step by step: a product with the last states and the activations, and on the way
    back a product with the next step's gradients. On a CPU this is about as quick as oneDNN's LSTM, which
    keeps c_t to itself. Tables with L + 1 rows begin with the states before the first step, zero, or end with
    the gradients behind the last, zero.
    """

    @staticmethod
    def forward(
        ctx: Any,
        forwards: Tensor,
        backwards: Tensor,
        weight: Tensor,
        task_forwards: Tensor,
        task_backwards: Tensor,
        task_weight: Tensor,
    ) -> tuple[Tensor, Tensor]:
        gates = torch.stack([forwards, backwards], dim=1)
        steps, _, windows, _ = gates.shape
        c = gates.new_zeros(steps + 1, 2, windows, weight.shape[2])
        h, tanh_c = torch.zeros_like(c), torch.empty_like(c[1:])
        transposed = weight.transpose(1, 2)
        tables = (gates, c[:-1], c[1:], tanh_c, h[:-1], h[1:])
        for step_gates, last_c, step_c, step_tanh, last_h, step_h in zip(*tables, strict=True):
            step_gates.baddbmm_(last_h, transposed)
            i, f, g, o = step_gates.chunk(4, dim=-1)
            i.sigmoid_()
            f.sigmoid_()
            g.tanh_()
            o.sigmoid_()
            torch.mul(f, last_c, out=step_c).addcmul_(i, g)
            torch.tanh(step_c, out=step_tanh)
            torch.mul(o, step_tanh, out=step_h)

        task_gates = torch.stack([task_forwards, task_backwards], dim=1).contiguous()
        q = gates.new_zeros(steps + 1, *task_gates.shape[1:])
        transposed = task_weight.flatten(0, 1).transpose(1, 2)
        flat = (task_gates.flatten(1, 2), q[:-1].flatten(1, 2))
        for flat_gates, last_q, step_gates, step_tanh, step_q in zip(
            *flat, task_gates, tanh_c[:, :, None], q[1:], strict=True
        ):
            flat_gates.baddbmm_(last_q, transposed).sigmoid_()
            torch.mul(step_gates, step_tanh, out=step_q)
        ctx.save_for_backward(gates, c, tanh_c, h, task_gates, q, weight, task_weight)
        return h[1:], q[1:]

    @staticmethod
    def backward(ctx: Any, grad_h: Tensor, grad_q: Tensor) -> tuple[Tensor, ...]:
        gates, c, tanh_c, h, task_gates, q, weight, task_weight = ctx.saved_tensors
        # Gradients of gates before their activation: first only the slopes, then step by step the product.
        dz, dq = torch.empty_like(q), torch.empty_like(task_gates)
        dz[-1].zero_()
        torch.mul(task_gates, 1 - task_gates, out=dz[:-1]).mul_(tanh_c[:, :, None])
        step_dz, step_dq = dz.flatten(1, 2).unbind(), dq.flatten(1, 2).unbind()
        last_weight = task_weight.flatten(0, 1)
        for t, step_grad in reversed(list(enumerate(grad_q.flatten(1, 2)))):
            torch.baddbmm(step_grad, step_dz[t + 1], last_weight, out=step_dq[t])
            step_dz[t].mul_(step_dq[t])

        i, f, g, o = gates.chunk(4, dim=-1)
        slope = 1 - tanh_c * tanh_c
        dc = torch.zeros_like(c)
        torch.mul(dq.mul_(task_gates).sum(dim=2), slope, out=dc[1:])
        to_c = slope.mul_(o)
        da = gates.new_empty(len(c), *gates.shape[1:])
        da[-1].zero_()
        da_i, da_f, da_g, da_o = da[:-1].chunk(4, dim=-1)
        torch.mul(i, 1 - i, out=da_i).mul_(g)
        torch.mul(f, 1 - f, out=da_f).mul_(c[:-1])
        torch.mul(i, 1 - g * g, out=da_g)
        torch.mul(o, 1 - o, out=da_o).mul_(tanh_c)
        dh = torch.empty_like(c[0])
        step_da, step_dc = da.unbind(), dc.unbind()
        by_gate = da.unflatten(3, (4, -1))
        to_ifg, to_o = by_gate[..., :3, :].unbind(), by_gate[..., 3, :].unbind()
        for t, (step_grad, step_to_c, step_f) in reversed(list(enumerate(zip(grad_h, to_c, f, strict=True)))):
            torch.baddbmm(step_grad, step_da[t + 1], weight, out=dh)
            step_dc[t + 1].addcmul_(dh, step_to_c)
            step_dc[t].addcmul_(step_dc[t + 1], step_f)
            to_ifg[t].mul_(step_dc[t + 1][..., None, :])
            to_o[t].mul_(dh)
        shared = (*da[:-1].unbind(dim=1), _weight_gradient(da, h))
        return (*shared, *dz[:-1].unbind(dim=1), _weight_gradient(dz, q))


def _weight_gradient(gates: Tensor, states: Tensor) -> Tensor:
    """Σ_t gates_t ⊗ states_{t-1} of tables (L + 1, …, B, ·), over the windows, too: (…, ·, ·)."""
    by_cell = [table[:-1].movedim(0, -3).flatten(-3, -2) for table in (gates, states)]
    return by_cell[0].mT @ by_cell[1]
