"""A pre-trained transformer that is loaded only once somebody needs its weights."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from core.models.encoders.trained_rows import weight_count
from core.models.encoders.transformer import Transformer, load_transformer
from core.models.sources import locate, signature

__all__ = ["LazyTransformer"]


@dataclass(frozen=True)
class _Known:
    """What runs over a frozen encoder must know of it even where all of its features are in the cache."""

    features: int
    fingerprint: str
    parameters: int

    def __post_init__(self) -> None:
        if min(self.features, self.parameters) <= 0 or not re.fullmatch("[0-9a-f]{16}", self.fingerprint):
            raise ValueError(f"no encoder has {self}")


class LazyTransformer:
    """The named encoder as it was pre-trained: its numbers of `features` and `parameters`, and the
    `fingerprint` of its weights and precision. `load` gives the encoder itself, in memory from then on.

    The three are remembered in the folder `cache` for as long as the encoder's files are as they were, so
    that they are read once and not for each of a thousand runs. Raises as `load_transformer`.
    """

    def __init__(self, encoder: str, *, half: bool, device: torch.device, cache: Path) -> None:
        self._encoder, self._half, self._device = encoder, half, device
        self._loaded: Transformer | None = None
        files = signature(locate(encoder))
        path = None if files is None else cache / f"{files}-{'bf16' if half else 'fp32'}.json"
        known = None if path is None else _remembered(path)
        if known is None:
            loaded = self.load()
            known = _Known(loaded.features, _fingerprint(loaded), weight_count(loaded))
            if path is not None:
                _remember(path, known)
        self.features, self.fingerprint, self.parameters = known.features, known.fingerprint, known.parameters

    def load(self) -> Transformer:
        """The encoder on the device, in the mode of prediction."""
        if self._loaded is None:
            self._loaded = load_transformer(self._encoder, half=self._half).to(self._device).eval()
        return self._loaded


def _fingerprint(encoder: Transformer) -> str:
    """Of an encoder's weights and of the precision that it computes in."""
    digest = hashlib.sha256(str(encoder.half_precision).encode())
    for name, value in encoder.inner.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]


def _remembered(path: Path) -> _Known | None:
    """None where nothing is remembered there, or nothing that can be read."""
    try:
        return _Known(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _remember(path: Path, known: _Known) -> None:
    """Written beside and renamed: two workers may do so at once."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(asdict(known)), encoding="utf-8")
    temporary.replace(path)
