"""A BiLSTM reads each window alone, whatever its padding holds, as torch's LSTM does over packed windows."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd import backward
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from core.encoding.batches import Batch
from core.models.encoders import BiLSTM

LENGTHS = torch.tensor([5, 9, 1, 9, 3])


class Given(nn.Module):
    """States as they were given."""

    features = 6

    def __init__(self, states: Tensor) -> None:
        super().__init__()
        self.states = nn.Parameter(states)

    def forward(self, batch: Batch) -> Tensor:
        return self.states

    def words(self, batch: Batch) -> Tensor:
        raise AssertionError("a BiLSTM reads every subword")


def batch() -> Batch:
    """Windows of these lengths, every subword a word."""
    mask = torch.arange(int(LENGTHS.max())) < LENGTHS[:, None]
    real = mask.flatten().nonzero().flatten()
    none = torch.zeros(0, dtype=torch.int64)
    return Batch(
        ids=none,
        mask=mask.long(),
        places=none,
        real=real,
        lengths=LENGTHS,
        rows=real,
        words=real,
        labels=none,
    )


def packed(encoder: BiLSTM, states: Tensor) -> Tensor:
    """What torch's own LSTM says over packed windows."""
    windows = pack_padded_sequence(states, LENGTHS, batch_first=True, enforce_sorted=False)
    read: Tensor = pad_packed_sequence(encoder.lstm(windows)[0], batch_first=True)[0]
    return read.flatten(0, 1)[batch().rows]


def test_states_and_gradients_are_those_of_packed_windows() -> None:
    torch.manual_seed(1)
    states = torch.randn(len(LENGTHS), int(LENGTHS.max()), Given.features)
    below = Given(states)
    encoder = BiLSTM(below, hidden=7)
    weights = torch.randn(int(LENGTHS.sum()), encoder.features)
    found, gradients = [], []
    for mine in (True, False):
        encoder.zero_grad()
        found.append(encoder.words(batch()) if mine else packed(encoder, below.states))
        backward((found[-1] * weights).sum())
        gradients.append(
            [parameter.grad.clone() for parameter in encoder.parameters() if parameter.grad is not None]
        )
    torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=1e-6)
    assert len(gradients[0]) == 1 + 8
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_padding_changes_nothing() -> None:
    torch.manual_seed(2)
    states = torch.randn(len(LENGTHS), int(LENGTHS.max()), Given.features)
    below = Given(states)
    encoder = BiLSTM(below, hidden=7)
    expected = encoder.words(batch())
    with torch.no_grad():
        below.states[batch().mask == 0] = 1e6
    torch.testing.assert_close(encoder.words(batch()), expected, rtol=0, atol=0)
