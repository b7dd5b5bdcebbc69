"""LSTM-s, LSTM-d and SC-LSTM give what their equations give for each sentence alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from core.encoding.batches import Batch
from core.models.encoders.lstm import SCLSTM, LayeredBiLSTM, StackedBiLSTM
from core.models.tagger import Heads
from tests.unit.transformers_alone import Table, batch, gradients

HIDDEN, TASKS = 4, 3
LENGTHS = {"different": (5, 1, 7, 3), "alike": (4, 4), "one subword": (1,)}
Make = Callable[[Table, int, float], StackedBiLSTM]
MAKE: dict[str, Make] = {
    "LSTM-s": lambda below, layers, dropout: StackedBiLSTM(below, HIDDEN, layers, dropout),
    "LSTM-d": lambda below, layers, dropout: LayeredBiLSTM(below, HIDDEN, layers, dropout, (2, 0, 1)),
    "SC-LSTM": lambda below, layers, dropout: SCLSTM(below, HIDDEN, layers, dropout, TASKS),
}
each_kind = pytest.mark.parametrize("kind", MAKE)
each_length = pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)


def make(kind: str, given: Batch, layers: int, dropout: float = 0.0) -> StackedBiLSTM:
    """Over trained states of 5 features, in float64."""
    torch.manual_seed(0)
    return MAKE[kind](Table(*given.ids.shape, 5), layers, dropout).double()


def alone(lstm: nn.Module, sentence: Tensor) -> Tensor:
    """torch's own reading of one sentence."""
    read: Tensor = lstm(sentence[None])[0][0]
    return read


def sc_direction(encoder: SCLSTM, sentence: Tensor, direction: int) -> tuple[Tensor, Tensor]:
    """One direction of the last layer by equations 1 and 2: q (T, L_b, H) and h (L_b, H)."""
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    u, w, b, b_too = (getattr(encoder.lstm[-1], name + ("", "_reverse")[direction]) for name in names)
    c = h = sentence.new_zeros(HIDDEN)
    q = [sentence.new_zeros(HIDDEN) for _ in range(TASKS)]
    shared, by_task = [], []
    for x in sentence.flip(0) if direction else sentence:
        i, f, g, o = (w @ h + u @ x + b + b_too).chunk(4)
        c = i.sigmoid() * g.tanh() + f.sigmoid() * c
        h = o.sigmoid() * c.tanh()
        for k in range(TASKS):
            z = encoder.gate_weight_hh[direction, k] @ q[k] + encoder.gate_weight_ih[direction, k] @ x
            q[k] = (z + encoder.gate_bias[direction, k]).sigmoid() * c.tanh()
        shared.append(h)
        by_task.append(torch.stack(q))
    if direction:
        shared.reverse()
        by_task.reverse()
    return torch.stack(by_task, dim=1), torch.stack(shared)


def expected_states(encoder: StackedBiLSTM, given: Batch) -> Tensor:
    """Of all real subwords (S, D), or (T, S, D), sentence by sentence."""
    whole = []
    for window, length in zip(encoder.below(given), given.lengths.tolist(), strict=True):
        layers = [window[:length]]  # of its real states alone, (L_b, 5)
        for lstm in encoder.lstm:
            layers.append(alone(lstm, layers[-1]))
        if isinstance(encoder, SCLSTM):
            (q, h), (q_back, h_back) = (sc_direction(encoder, layers[-2], way) for way in (0, 1))
            both = torch.cat([h, h_back], dim=1).expand(TASKS, -1, -1)
            whole.append(torch.cat([q, q_back, both], dim=2))
        elif isinstance(encoder, LayeredBiLSTM):
            whole.append(torch.stack([layers[2], layers[3], layers[1]]))  # the order is 2, 0, 1
        else:
            whole.append(layers[-1])
    return torch.cat(whole, dim=-2)


@each_kind
@each_length
def test_states_and_gradients_are_those_of_each_sentence_alone(kind: str, lengths: tuple[int, ...]) -> None:
    """Of all subwords, and of words' first ones."""
    given = batch(lengths, 0)
    encoder = make(kind, given, layers=3)
    expected = expected_states(encoder, given)
    at_words = torch.searchsorted(given.real, given.rows)
    states = encoder(given).flatten(-3, -2)[..., given.real, :]
    assert encoder.features == states.shape[-1]
    for found, right in ((states, expected), (encoder.words(given), expected[..., at_words, :])):
        torch.testing.assert_close(found, right, rtol=0, atol=1e-10)
        towards = torch.randn_like(right)
        (right * towards).sum().backward(retain_graph=True)
        right_gradients = gradients(encoder)
        (found * towards).sum().backward()
        torch.testing.assert_close(gradients(encoder), right_gradients, rtol=0, atol=1e-10)


@pytest.mark.parametrize("task", range(TASKS))
@pytest.mark.parametrize("kind", ["LSTM-d", "SC-LSTM"])
def test_a_drawn_task_has_the_logits_and_gradients_that_it_has_among_all(kind: str, task: int) -> None:
    given = batch(LENGTHS["different"], 0)
    encoder = make(kind, given, layers=3)
    heads = Heads(encoder.features, (2, 3, 4), init="default", dropout=0.0).double()
    rows = heads.slices[task]
    losses = []
    for needed in (given, replace(given, task=task)):
        encoder.zero_grad()
        heads.zero_grad()
        logits = heads(encoder.words(needed), needed.task)
        losses.append(logits[:, rows].square().sum())
        losses[-1].backward()
        learned = {
            name: weight.grad for name, weight in (*encoder.named_parameters(), *heads.named_parameters())
        }
        if needed is given:
            right = learned
    assert not logits[:, [column for column in range(9) if column not in range(rows.start, rows.stop)]].any()
    torch.testing.assert_close(losses[1], losses[0], rtol=0, atol=1e-12)
    for name, gradient in right.items():
        of_drawn = learned[name]
        if of_drawn is None:  # a layer above the task's
            assert gradient is None or not gradient.any()
        else:
            torch.testing.assert_close(of_drawn, gradient, rtol=0, atol=1e-10, msg=name)


@each_kind
def test_padding_changes_nothing_and_learns_nothing(kind: str) -> None:
    given = batch(LENGTHS["different"], 0)
    encoder = make(kind, given, layers=3)
    before = encoder.words(given)
    before.sum().backward()
    padding = given.mask == 0
    assert not gradients(encoder)["below.states"][padding].any()
    with torch.no_grad():
        encoder.get_parameter("below.states")[padding] = 1e3
    assert torch.equal(encoder.words(given), before)


def test_a_gate_learns_from_its_task_alone_and_the_cell_from_all() -> None:
    given = batch(LENGTHS["different"], 0)
    encoder = make("SC-LSTM", given, layers=2)
    for task in range(TASKS):
        encoder.zero_grad()
        encoder.words(given)[task, :, : 2 * HIDDEN].sum().backward()  # q alone
        learned = gradients(encoder)
        for name in ("gate_weight_ih", "gate_weight_hh", "gate_bias"):
            by_task = learned.pop(name).flatten(2).abs().sum(dim=(0, 2))
            assert by_task.nonzero().flatten().tolist() == [task]
        assert all(gradient.any() for gradient in learned.values())


@pytest.mark.parametrize(
    ("layers", "order", "read"),
    [(2, (1, 0), (1, 0)), (3, (0, 1), (1, 2)), (2, (2, 0, 1), (0, 1, 0)), (1, (0, 1, 2), (0, 0, 0))],
)
def test_tasks_read_the_layers_of_their_order(
    layers: int, order: tuple[int, ...], read: tuple[int, ...]
) -> None:
    given = batch(LENGTHS["alike"], 0)
    torch.manual_seed(0)
    encoder = LayeredBiLSTM(Table(*given.ids.shape, 5), HIDDEN, layers, 0.0, order)
    recurrent = [encoder.get_parameter(f"lstm.{layer}.weight_hh_l0") for layer in range(layers)]
    for task, layer in enumerate(read):
        learned = torch.autograd.grad(encoder.words(given)[task].sum(), recurrent, materialize_grads=True)
        assert [bool(gradient.any()) for gradient in learned] == [at <= layer for at in range(layers)]


def test_an_order_names_each_task_once() -> None:
    with pytest.raises(ValueError, match=r"\(0, 2\)"):
        LayeredBiLSTM(Table(1, 1, 5), HIDDEN, 2, 0.0, (0, 2))


@each_kind
def test_a_state_and_a_seed_give_the_same_again(kind: str) -> None:
    given = batch(LENGTHS["different"], 0)
    encoder, other = make(kind, given, 3, dropout=0.5), make(kind, given, 3, dropout=0.5)
    with torch.no_grad():
        for weight in other.parameters():
            weight.zero_()
    other.load_state_dict(encoder.state_dict())
    runs = []
    for module in (encoder, other):
        torch.manual_seed(3)
        words = module.words(given)
        words.sum().backward()
        runs.append((words, gradients(module)))
    assert torch.equal(runs[0][0], runs[1][0])
    assert all(torch.equal(gradient, runs[1][1][name]) for name, gradient in runs[0][1].items())
    assert not torch.equal(encoder.words(given), runs[0][0])  # other states are dropped
    assert torch.equal(encoder.eval().words(given), encoder.words(given))


@each_kind
def test_the_input_of_each_layer_is_dropped(kind: str) -> None:
    given = batch(LENGTHS["different"], 0)
    encoder = make(kind, given, layers=3, dropout=1.0)
    encoder.words(given).sum().backward()
    learned = gradients(encoder)
    assert not learned["below.states"].any()
    assert not any(learned[f"lstm.{layer}.weight_ih_l0"].any() for layer in range(3))
    assert learned["lstm.2.bias_ih_l0"].any()
