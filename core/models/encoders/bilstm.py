"""A bidirectional LSTM on top of another encoder (dissertation, section 2.4 and 6.1)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from core.encoding.batches import Batch
from core.models.encoders.base import Encoder, at_words

__all__ = ["BiLSTM"]


class BiLSTM(nn.Module):
    """Reads the states of `below` in both directions; `hidden` features each, so D = 2 · hidden."""

    def __init__(self, below: Encoder, hidden: int) -> None:
        super().__init__()
        self.below = below
        self.lstm = nn.LSTM(below.features, hidden, batch_first=True, bidirectional=True)
        self.features = 2 * hidden

    def forward(self, batch: Batch) -> Tensor:
        states = self.below(batch)
        # Packed, so that the backward direction starts at each window's last subword, not in the padding.
        packed = pack_padded_sequence(states, batch.lengths, batch_first=True, enforce_sorted=False)
        read, _ = self.lstm(packed)
        unpacked: Tensor = pad_packed_sequence(read, batch_first=True, total_length=states.shape[1])[0]
        return unpacked

    def words(self, batch: Batch) -> Tensor:
        """The states (n, D) of words' first subwords; the others are read to know them."""
        return at_words(self(batch), batch)
