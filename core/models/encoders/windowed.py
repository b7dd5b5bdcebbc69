"""A BiLSTM that reads each word in a window of a few words (Bettgenhäuser et al., 2020, section 4)."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from core.encoding.batches import Batch
from core.models.encoders import Encoder
from core.models.encoders.bilstm import WEIGHTS
from core.models.encoders.lstm import StackedBiLSTM


class WindowedBiLSTM(StackedBiLSTM):
    """One bidirectional LSTM over each word's own window of `size` words, the word in its middle: the states
    of that word, D = 2 · hidden. Windows end where the sentence does.

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
