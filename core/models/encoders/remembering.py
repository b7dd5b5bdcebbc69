"""A frozen transformer that all taggers over it share, and that reads the same words once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache

from torch import Tensor, nn

from core.encoding.batches import Batch
from core.models.encoders.transformer import Transformer, load_transformer

__all__ = ["Remembering", "shared_transformer"]

_MOST_BYTES = 64_000_000


class Remembering(nn.Module):
    """Gives the states of a transformer, those of the last batches from memory.

    A sentence shown with the labels of eight runs over one frozen encoder is so encoded once. For inference
    on the CPU; several threads may call it.
    """

    def __init__(self, transformer: Transformer) -> None:
        super().__init__()
        self.transformer = transformer
        self.features = transformer.features
        self._states: OrderedDict[tuple[object, ...], Tensor] = OrderedDict()
        self._lock = threading.Lock()

    def forward(self, batch: Batch) -> Tensor:
        """The states (B, L, D) of all subwords."""
        return self._remembered(batch, self.transformer, ())

    def words(self, batch: Batch) -> Tensor:
        """The states (n, D) of words' first subwords."""
        return self._remembered(batch, self.transformer.words, batch.rows.numpy().tobytes())

    def _remembered(self, batch: Batch, compute: Callable[[Batch], Tensor], asked: object) -> Tensor:
        # The mask too: a text may hold the padding subword itself.
        key = (batch.ids.shape, batch.ids.numpy().tobytes(), batch.mask.numpy().tobytes(), asked)
        with self._lock:
            if key not in self._states:
                self._states[key] = compute(batch)
            self._states.move_to_end(key)
            states = self._states[key]
            while len(self._states) > 1 and sum(kept.nbytes for kept in self._states.values()) > _MOST_BYTES:
                self._states.popitem(last=False)
            return states


@lru_cache(maxsize=2)
def shared_transformer(encoder: str) -> Remembering:
    """The named encoder as it was pre-trained, one in memory for all who ask. Raises EncoderError."""
    return Remembering(load_transformer(encoder, half=False).eval())
