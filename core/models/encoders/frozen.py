"""A frozen encoder: its states are computed once, kept on disk, and looked up while heads train."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from core.encoding.batches import IGNORED, SUBWORDS_TO_PREDICT, Batch, Batches
from core.encoding.encoded import EncodedText
from core.models.encoders.transformer import LazyTransformer, Transformer, load_transformer
from core.paths import written_whole

_MOST_BYTES = 64_000_000
"""Bytes of states that a CachedTransformer keeps."""


class FrozenFeatures(nn.Module):
    """Looks up the states of a split's subwords in the split's table (S, D).

    The states are float32 whatever the table's numbers.
    """

    table: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = features
        self.register_buffer("table", torch.zeros(0, features), persistent=False)

    def forward(self, batch: Batch) -> Tensor:
        return self.table[batch.places].float()

    def words(self, batch: Batch) -> Tensor:
        return self.table[batch.places.flatten()[batch.rows]].float()


class FeatureTables:
    """The states of whole splits, computed once and kept on disk.

    A frozen encoder computes them, or the layers below the trained ones.

    Files are keyed by the encoder's weights and precision, by the layers left out and by the text, so that
    any run over the same encoder and sentences finds them, and need not compute them. The heads of a frozen
    encoder read float32; layers that are trained read float16, which costs no score (docs/performance.md).

    Those are the states `for_training`. Others are what a saved model computes, to be scored as it tags:
    computed in float32, and kept so.
    """

    def __init__(self, encoder: LazyTransformer, pad: int, cache: Path, device: torch.device) -> None:
        self._encoder, self._pad, self._cache, self._device = encoder, pad, cache, device
        self._tables: dict[tuple[str, bool], Tensor] = {}

    def what(self) -> str:
        """The name of the computed states in notes."""
        top = self._encoder.top
        layers = "layer" if top == 1 else f"{top} layers"
        return f"states below the last {layers}" if top else "frozen encoder's features"

    def release(self) -> None:
        """Forget the encoder, once all states are computed."""
        self._encoder.release()

    def table(self, text: EncodedText, text_key: str, *, for_training: bool) -> Tensor:
        """This text's states (S, D) on the device; computed now where they are missing."""
        if not self.has(text, text_key, for_training=for_training):
            self.compute(text, text_key, for_training=for_training)
        return self._tables[text_key, for_training]

    def has(self, text: EncodedText, text_key: str, *, for_training: bool) -> bool:
        """Whether this text's states are in memory, or on disk from an earlier run."""
        if (text_key, for_training) not in self._tables:
            shape = len(text.ids), self._encoder.features
            table = _read(self._path(text_key, for_training), shape, self._type(for_training))
            if table is None:
                return False
            self._keep(text_key, for_training, table)
        return True

    def compute(
        self,
        text: EncodedText,
        text_key: str,
        should_stop: Callable[[], bool] = lambda: False,
        *,
        for_training: bool,
    ) -> bool:
        """Compute this text's states and keep them; False, with nothing kept, if stopped.

        `should_stop` is asked before each batch. Raises NoRoom where the disk has none for them.
        """
        table = self._states(text, should_stop, for_training)
        if table is None:
            return False
        values = table.numpy()
        target = written_whole(self._path(text_key, for_training), values.nbytes, "The cache of features")
        with target as path, path.open("wb") as file:
            # Not by `np.save`, whose error on a full disk lacks the system's number.
            np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(values))
            file.write(values.data)
        self._keep(text_key, for_training, table)
        return True

    def _keep(self, text_key: str, for_training: bool, table: Tensor) -> None:
        """On the device at once: splits change twice an epoch, tables need not move again."""
        self._tables[text_key, for_training] = table.to(self._device)

    def _type(self, for_training: bool) -> np.dtype[Any]:
        return np.dtype(np.float16 if self._encoder.top and for_training else np.float32)

    def _path(self, text_key: str, for_training: bool) -> Path:
        encoder, below = self._encoder, ""
        if encoder.top:
            below = f"below{encoder.top}-" if for_training else f"below{encoder.top}-exact-"
        fingerprint = encoder.fingerprint if for_training else encoder.exact_fingerprint
        return self._cache / f"{fingerprint}-{below}{text_key}.npy"

    @torch.no_grad()
    def _states(
        self, text: EncodedText, should_stop: Callable[[], bool], for_training: bool
    ) -> Tensor | None:
        encoder = self._encoder.load()
        encoder.half_precision = self._encoder.half and for_training
        device = next(encoder.parameters()).device
        table = torch.from_numpy(np.zeros((len(text.ids), self._encoder.features), self._type(for_training)))
        no_labels = np.full((len(text.firsts), 0), IGNORED, dtype=np.int64)
        for batch in Batches(text, no_labels, 1, self._pad).by_length(SUBWORDS_TO_PREDICT[device.type]):
            if should_stop():
                return None
            states = encoder(batch.to(device)).cpu()
            kept = batch.mask.bool()
            table[batch.places[kept]] = states[kept].to(table.dtype)
        return table


def _read(path: Path, shape: tuple[int, int], type_: np.dtype[Any]) -> Tensor | None:
    """The table in that file; None where there is none, or one of another type or cut off while written."""
    if not path.is_file():
        return None
    try:
        # Mapped: read where looked up, and in memory once for all workers. Copy on write: the file stays.
        table: NDArray[Any] = np.load(path, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    same = table.shape == shape and table.dtype == type_
    return torch.from_numpy(table) if same else None


class CachedTransformer(nn.Module):
    """A transformer that keeps the states of its last batches, for inference on the CPU.

    A sentence shown with the labels of eight runs over one frozen encoder is encoded once. Several threads
    may call it.
    """

    def __init__(self, transformer: Transformer) -> None:
        super().__init__()
        self.transformer = transformer
        self.features = transformer.features
        self._states: dict[tuple[object, ...], Tensor] = {}  # oldest first
        self._lock = threading.Lock()

    def forward(self, batch: Batch) -> Tensor:
        return self._cached(batch, self.transformer, ())

    def words(self, batch: Batch) -> Tensor:
        return self._cached(batch, self.transformer.words, batch.rows.numpy().tobytes())

    def _cached(self, batch: Batch, compute: Callable[[Batch], Tensor], rows: object) -> Tensor:
        # The mask too: a text may hold the padding subword itself.
        types = b"" if batch.types is None else batch.types.numpy().tobytes()
        key = (batch.ids.shape, batch.ids.numpy().tobytes(), batch.mask.numpy().tobytes(), types, rows)
        with self._lock:
            states = self._states.pop(key) if key in self._states else compute(batch)
            self._states[key] = states
            while len(self._states) > 1 and sum(kept.nbytes for kept in self._states.values()) > _MOST_BYTES:
                del self._states[next(iter(self._states))]
            return states


@lru_cache(maxsize=2)
def shared_transformer(encoder: str) -> CachedTransformer:
    """The named encoder as it was pre-trained, one in memory for all that use it. Raises EncoderError."""
    return CachedTransformer(load_transformer(encoder, half=False).eval())
