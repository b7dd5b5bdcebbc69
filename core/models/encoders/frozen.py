"""A frozen encoder: its states are computed once, kept on disk, and looked up while heads train."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from core.encoding.batches import IGNORED, Batch, Batches
from core.encoding.encoded import EncodedText
from core.models.encoders.transformer import Transformer

__all__ = ["FrozenFeatures", "encoder_fingerprint", "frozen_states"]

_BATCH = 64  # windows encoded at once


class FrozenFeatures(nn.Module):
    """Looks up the states of a split's subwords in a table (S, D). `use` changes the split."""

    table: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = features
        self.register_buffer("table", torch.zeros(0, features), persistent=False)

    def use(self, table: Tensor) -> None:
        """Look states up in this table (S, D) from now on."""
        self.table = table.to(self.table.device)

    def forward(self, batch: Batch) -> Tensor:
        states: Tensor = self.table[batch.places].float()
        return states


def encoder_fingerprint(encoder: Transformer) -> str:
    """Fingerprint of an encoder's weights and of the precision it computes in."""
    digest = hashlib.sha256(str(encoder._half).encode())
    for name, value in encoder.inner.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]


@torch.no_grad()
def frozen_states(
    encoder: Transformer, fingerprint: str, text: EncodedText, text_key: str, pad: int, cache: Path
) -> Tensor:
    """States (S, D) of every subword of the text, float16, from the cache where they were computed before."""
    path = cache / f"{fingerprint}-{text_key}.npy"
    if path.is_file():
        try:
            stored: NDArray[np.float16] = np.load(path, allow_pickle=False)
            if stored.shape == (len(text.ids), encoder.features):
                return torch.from_numpy(stored)
        except (OSError, ValueError, EOFError):
            pass  # a cut-off file is computed and written anew below
    device = next(encoder.parameters()).device
    encoder.eval()
    table = torch.zeros(len(text.ids), encoder.features, dtype=torch.float16)
    no_labels = np.full((len(text.firsts), 0), IGNORED, dtype=np.int64)
    for batch in Batches(text, no_labels, _BATCH, pad).by_length():
        states = encoder(batch.to(device)).cpu()
        kept = batch.mask.bool()
        table[batch.places[kept]] = states[kept].half()
    temporary = path.with_name(f"{path.stem}.{os.getpid()}.tmp.npy")
    np.save(temporary, table.numpy(), allow_pickle=False)
    temporary.replace(path)
    return table
