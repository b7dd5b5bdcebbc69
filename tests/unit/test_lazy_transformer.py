"""A frozen encoder's weights are read once, and again only when its files have changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from core.errors import EncoderError
from core.models.encoders.transformer import LazyTransformer, load_transformer
from tests.tiny import tiny_bert


def lazy(encoder: Path, home: Path, *, half: bool = False) -> LazyTransformer:
    home.mkdir(exist_ok=True)
    return LazyTransformer(str(encoder), half=half, device=torch.device("cpu"), cache=home)


def test_known_files_are_not_read_again(tmp_path: Path) -> None:
    encoder = tiny_bert(tmp_path / "encoder")
    first = lazy(encoder, tmp_path / "home")
    loaded = load_transformer(str(encoder), half=False)
    assert first.features == loaded.features
    assert first.parameters == sum(weight.numel() for weight in loaded.parameters())
    assert first.load() is first.load()
    assert lazy(encoder, tmp_path / "home", half=True).fingerprint != first.fingerprint
    weights = encoder / "model.safetensors"
    before = weights.stat()
    weights.write_bytes(b"0" * before.st_size)
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    again = lazy(encoder, tmp_path / "home")
    assert (again.features, again.fingerprint, again.parameters) == (
        first.features, first.fingerprint, first.parameters,
    )  # fmt: skip
    with pytest.raises(EncoderError, match="cannot be loaded"):
        again.load()


def test_files_that_changed_are_read(tmp_path: Path) -> None:
    encoder = tiny_bert(tmp_path / "encoder")
    first = lazy(encoder, tmp_path / "home")
    inner = first.load().inner
    with torch.no_grad():
        next(inner.parameters()).add_(1)
    inner.save_pretrained(encoder)
    changed = lazy(encoder, tmp_path / "home")
    assert changed.fingerprint != first.fingerprint
    # Elsewhere the same weights are known by the same name: their features may lie in the cache.
    assert lazy(encoder, tmp_path / "elsewhere").fingerprint == changed.fingerprint
