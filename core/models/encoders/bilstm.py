"""A bidirectional LSTM on top of another encoder (dissertation, sections 2.4 and 6.1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from core.encoding.batches import Batch
from core.models.encoders import Encoder, Part, at_words
from core.models.encoders.fast_bert import Places

WEIGHTS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")


class BiLSTM(nn.Module):
    """Reads the states of `below` in both directions; `hidden` features each, so D = 2 · hidden."""

    part: Part = "bilstm"

    def __init__(self, below: Encoder, hidden: int) -> None:
        super().__init__()
        self.below = below
        self.lstm = nn.LSTM(below.features, hidden, batch_first=True, bidirectional=True)
        self.features = 2 * hidden

    def forward(self, batch: Batch) -> Tensor:
        return read_both_ways(self.lstm, self.below(batch), batch.lengths)

    def words(self, batch: Batch) -> Tensor:
        return at_words(self(batch), batch)


def read_both_ways(lstm: nn.LSTM, states: Tensor, lengths: Tensor) -> Tensor:
    """The output (B, L, 2 · hidden) of a bidirectional LSTM of one layer over states (B, L, ·).

    The backward direction starts at each window's last subword, not in the padding. `lengths` (B,) are in the
    processor's memory.
    """
    read = _read_mirrored if states.device.type == "cpu" else read_packed
    return read(lstm, states, lengths)


def read_packed(lstm: nn.LSTM, states: Tensor, lengths: Tensor) -> Tensor:
    """The output over (B, L, ·) as torch computes it, with the kernels of a GPU."""
    packed = pack_padded_sequence(states, lengths, batch_first=True, enforce_sorted=False)
    read, _ = lstm(packed)
    unpacked: Tensor = pad_packed_sequence(read, batch_first=True, total_length=states.shape[1])[0]
    return unpacked


def mirrored(lengths: Tensor, width: int) -> Tensor:
    """The indices (B, L) of the positions of windows read from their last subword on; L = `width`.

    Padding stays where it is: last in both directions. Mirroring twice changes nothing.
    """
    places, ends = torch.arange(width, device=lengths.device), lengths[:, None]
    return torch.where(places < ends, ends - 1 - places, places)


def _read_mirrored(lstm: nn.LSTM, states: Tensor, lengths: Tensor) -> Tensor:
    """The same with two forward readings, the second of mirrored windows.

    A CPU's own LSTM (oneDNN) takes no packed windows, and is nearly twice as fast as torch's.
    """
    windows, width = states.shape[:2]
    rows = (torch.arange(windows)[:, None] * width + mirrored(lengths, width)).flatten()
    places = Places(rows, len(rows))

    def mirror(states: Tensor) -> Tensor:
        return places.gather(states.flatten(0, 1)).view_as(states)

    return torch.cat([_read(lstm, states, ""), mirror(_read(lstm, mirror(states), "_reverse"))], dim=2)


def _read(lstm: nn.LSTM, states: Tensor, direction: str) -> Tensor:
    """One direction's reading, forwards, of states (B, L, ·): (B, L, hidden)."""
    weights = [getattr(lstm, name + direction) for name in WEIGHTS]
    zeros = states.new_zeros(1, len(states), lstm.hidden_size)
    # has_biases, num_layers, dropout, train, bidirectional, batch_first
    read: Tensor = torch.lstm(states, (zeros, zeros), weights, True, 1, 0.0, lstm.training, False, True)[0]
    return read
