"""The BiLSTM reads as torch's does, with the same gradients, and knows where each window ends."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from core.encoding.batches import Batch
from core.models.encoders.bilstm import BiLSTM


class Table(nn.Module):
    """States (B, L, D) that are trained, for any batch of the right size."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.features = shape[-1]
        self.states = nn.Parameter(torch.randn(shape))

    def forward(self, batch: Batch) -> Tensor:
        return self.states

    def words(self, batch: Batch) -> Tensor:
        return self.states.flatten(0, 1)[batch.rows]


def batch(lengths: tuple[int, ...]) -> Batch:
    sizes = torch.tensor(lengths)
    mask = torch.arange(max(lengths)) < sizes[:, None]
    real = mask.flatten().nonzero().flatten()
    rows = real[::2]
    return Batch(mask.long(), mask.long(), mask.long(), real, sizes, rows, rows, rows[:, None])


@pytest.mark.parametrize(
    "lengths",
    [(4, 1, 7, 7, 2), (3, 3), (1,)],
    ids=["different", "alike", "one"],
)
def test_states_and_gradients_are_those_of_torch(lengths: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    given = batch(lengths)
    encoder = BiLSTM(Table(*given.ids.shape, 5), 6)
    expected = encoder._read_packed(encoder.below(given), given.lengths).flatten(0, 1)[given.real]
    towards = torch.randn_like(expected)
    (expected * towards).sum().backward()
    right = {name: weight.grad for name, weight in encoder.named_parameters()}
    encoder.zero_grad()
    found = encoder(given).flatten(0, 1)[given.real]
    (found * towards).sum().backward()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    for name, weight in encoder.named_parameters():
        torch.testing.assert_close(weight.grad, right[name], rtol=0, atol=1e-5, msg=name)
    torch.testing.assert_close(encoder.words(given), encoder(given).flatten(0, 1)[given.rows])


def test_gradients_are_those_of_small_differences() -> None:
    given = batch((3, 1, 2))
    encoder = BiLSTM(Table(3, 3, 2), 2).double()
    weights = dict(encoder.named_parameters())

    def words(*values: Tensor) -> Tensor:
        states: Tensor = torch.func.functional_call(
            encoder, dict(zip(weights, values, strict=True)), (given,)
        )
        return states[0]

    assert torch.autograd.gradcheck(words, tuple(weights.values()))
