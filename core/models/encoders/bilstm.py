"""A bidirectional LSTM on top of another encoder (dissertation, sections 2.4 and 6.1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from core.encoding.batches import Batch
from core.models.encoders import Encoder, at_words

_WEIGHTS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")


class BiLSTM(nn.Module):
    """Reads the states of `below` in both directions; `hidden` features each, so D = 2 · hidden."""

    def __init__(self, below: Encoder, hidden: int) -> None:
        super().__init__()
        self.below = below
        self.lstm = nn.LSTM(below.features, hidden, batch_first=True, bidirectional=True)
        self.features = 2 * hidden

    def forward(self, batch: Batch) -> Tensor:
        """The states (B, L, D). Those of padding mean nothing."""
        states = self.below(batch)
        # The backward direction starts at each window's last subword, not in the padding.
        read = self._read_mirrored if states.device.type == "cpu" else self._read_packed
        return read(states, batch.lengths)

    def words(self, batch: Batch) -> Tensor:
        """The states (n, D) of words' first subwords; the others are read to know them."""
        return at_words(self(batch), batch)

    def _read_packed(self, states: Tensor, lengths: Tensor) -> Tensor:
        """As torch reads (B, L, D), with the kernels of a GPU."""
        packed = pack_padded_sequence(states, lengths, batch_first=True, enforce_sorted=False)
        read, _ = self.lstm(packed)
        unpacked: Tensor = pad_packed_sequence(read, batch_first=True, total_length=states.shape[1])[0]
        return unpacked

    def _read_mirrored(self, states: Tensor, lengths: Tensor) -> Tensor:
        """The same with two forward readings, the second of mirrored windows: padding is last for both.

        A CPU's own LSTM (oneDNN) takes no packed windows, and is nearly twice as fast as torch's.
        """
        width = states.shape[1]
        places, ends = torch.arange(width), lengths[:, None]
        mirrored = torch.where(places < ends, ends - 1 - places, places)
        rows = (torch.arange(len(lengths))[:, None] * width + mirrored).flatten()

        def mirror(windows: Tensor) -> Tensor:
            return windows.flatten(0, 1).index_select(0, rows).view_as(windows)

        return torch.cat([self._read(states, ""), mirror(self._read(mirror(states), "_reverse"))], dim=2)

    def _read(self, states: Tensor, direction: str) -> Tensor:
        """One direction's reading, forwards, of states (B, L, ·): (B, L, hidden)."""
        weights = [getattr(self.lstm, name + direction) for name in _WEIGHTS]
        zeros = states.new_zeros(1, len(states), self.lstm.hidden_size)
        # has_biases, num_layers, dropout, train, bidirectional, batch_first
        read: Tensor = torch.lstm(states, (zeros, zeros), weights, True, 1, 0.0, self.training, False, True)[
            0
        ]
        return read
