"""A bidirectional LSTM on top of another encoder (dissertation, section 2.4 and 6.1)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from core.encoding.batches import Batch
from core.models.encoders.base import Encoder
from core.models.encoders.places import Places
from core.models.encoders.recurrence import read_both_ways

__all__ = ["BiLSTM"]


class BiLSTM(nn.Module):
    """Reads the states of `below` in both directions; `hidden` features each, so D = 2 · hidden."""

    def __init__(self, below: Encoder, hidden: int) -> None:
        super().__init__()
        self.below = below
        self.lstm = nn.LSTM(below.features, hidden, batch_first=True, bidirectional=True)
        self.features = 2 * hidden

    def forward(self, batch: Batch) -> Tensor:
        places = Places(batch.real, batch.ids.numel())
        return places.spread(self._read(batch, places)).view(*batch.ids.shape, -1)

    def words(self, batch: Batch) -> Tensor:
        """The states (n, D) of words' first subwords; the others are read to know them."""
        places = Places(batch.real, batch.ids.numel())
        read = self._read(batch, places)
        return Places(places.rows[batch.rows], len(read)).pick(read)

    def _read(self, batch: Batch, places: Places) -> Tensor:
        """The states (S, D) of the real subwords, which are at these places in the flattened (B·L)."""
        below = self.below(batch)
        if below.device.type != "cpu":
            return places.pick(self._read_packed(below, batch.lengths).flatten(0, 1))
        return read_both_ways(self.lstm, places.pick(below.flatten(0, 1)), batch.lengths, below.shape[1])

    def _read_packed(self, states: Tensor, lengths: Tensor) -> Tensor:
        """As torch reads (B, L, D), with the kernels of a GPU."""
        # Packed, so that the backward direction starts at each window's last subword, not in the padding.
        packed = pack_padded_sequence(states, lengths, batch_first=True, enforce_sorted=False)
        read, _ = self.lstm(packed)
        unpacked: Tensor = pad_packed_sequence(read, batch_first=True, total_length=states.shape[1])[0]
        return unpacked
