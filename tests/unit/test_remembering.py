"""A frozen encoder that several taggers share."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from core.encoding.batches import IGNORED, Batch, Batches
from core.encoding.encoded import encode
from core.encoding.tokenizer import load_tokenizer
from core.models.encoders import frozen
from core.models.encoders.frozen import CachedTransformer, shared_transformer
from core.models.encoders.transformer import load_transformer
from tests.tiny import tiny_bert


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_bert(tmp_path_factory.mktemp("encoder")))


def _batch(folder: str, *sentences: str) -> Batch:
    tokenizer = load_tokenizer(folder)
    text = encode([sentence.split() for sentence in sentences], tokenizer, 32)
    blank = np.full((len(text.firsts), 1), IGNORED, dtype=np.int64)
    return next(Batches(text, blank, 8, tokenizer.pad).by_length())


@torch.inference_mode()
def test_the_same_words_are_read_once_and_others_anew(folder: str) -> None:
    plain = load_transformer(folder, half=False).eval()
    reads: list[int] = []
    shared = CachedTransformer(load_transformer(folder, half=False).eval())
    shared.transformer.register_forward_hook(lambda *_: reads.append(1))
    for sentences in (("EU rejects lamb .",), ("EU rejects lamb", "a call"), ("EU rejects lamb .",)):
        batch = _batch(folder, *sentences)
        torch.testing.assert_close(shared(batch), plain(batch))
    assert len(reads) == 2


@torch.inference_mode()
def test_words_are_kept_apart_from_all_subwords(folder: str) -> None:
    plain = load_transformer(folder, half=False).eval()
    shared = CachedTransformer(load_transformer(folder, half=False).eval())
    batch = _batch(folder, "EU unwanted lamb", "a call")
    for _ in range(2):
        torch.testing.assert_close(shared(batch), plain(batch))
        torch.testing.assert_close(shared.words(batch), plain(batch).flatten(0, 1)[batch.rows])
    # The same subwords, of which other ones begin words.
    other = dataclasses.replace(batch, rows=batch.rows[:2])
    torch.testing.assert_close(shared.words(other), plain.words(other))


@torch.inference_mode()
def test_a_padding_subword_in_the_text_is_not_padding(folder: str) -> None:
    shared = CachedTransformer(load_transformer(folder, half=False).eval())
    padded, written = _batch(folder, "EU call lamb", "EU"), _batch(folder, "EU call lamb", "EU [PAD] [SEP]")
    assert padded.ids.shape == written.ids.shape
    plain = load_transformer(folder, half=False).eval()
    shared(padded)
    torch.testing.assert_close(shared(written), plain(written))


@torch.inference_mode()
def test_only_so_much_is_kept(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shared_transformer(folder) is shared_transformer(folder)
    first, second = _batch(folder, "EU rejects lamb ."), _batch(folder, "a German lamb .")
    shared = CachedTransformer(load_transformer(folder, half=False).eval())
    reads: list[int] = []
    shared.transformer.register_forward_hook(lambda *_: reads.append(1))
    monkeypatch.setattr(frozen, "_MOST_BYTES", 1)
    for batch in (first, second, second, first):
        shared(batch)
    assert len(reads) == 3
