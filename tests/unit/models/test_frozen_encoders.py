"""A frozen encoder: loaded only when its files changed, its states kept, its heads trained apart."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
import torch

from core.config import RunConfig
from core.corpora import prepare
from core.encoding.batches import IGNORED, Batch, Batches
from core.encoding.encoded import encode
from core.encoding.tokenizer import load_tokenizer
from core.errors import NoRoom
from core.models.encoders import frozen
from core.models.encoders.frozen import CachedTransformer, shared_transformer
from core.models.encoders.transformer import LazyTransformer, load_transformer
from core.training.setup import TrainingRun, set_up
from core.training.trainer import train_step
from tests.small_disk import fill, small_disk
from tests.tiny import tiny_bert


def lazy(encoder: Path, *, half: bool = False) -> LazyTransformer:
    return LazyTransformer(str(encoder), half=half, device=torch.device("cpu"))


def test_files_that_changed_are_read(tmp_path: Path) -> None:
    encoder = tiny_bert(tmp_path / "encoder")
    first = lazy(encoder)
    inner = first.load().inner
    with torch.no_grad():
        next(inner.parameters()).add_(1)
    inner.save_pretrained(encoder)
    changed = lazy(encoder)
    assert changed.fingerprint != first.fingerprint
    # In another folder the same weights have the same name: their features may lie in the cache.
    assert lazy(copytree(encoder, tmp_path / "elsewhere")).fingerprint == changed.fingerprint


def _batch(encoder: str, *sentences: str) -> Batch:
    tokenizer = load_tokenizer(encoder)
    text = encode([sentence.split() for sentence in sentences], tokenizer, 32)
    blank = np.full((len(text.firsts), 1), IGNORED, dtype=np.int64)
    return next(Batches(text, blank, 8, tokenizer.pad).by_length())


@torch.inference_mode()
def test_the_same_words_are_read_once_and_others_anew(encoder: str) -> None:
    plain = load_transformer(encoder, half=False).eval()
    reads: list[int] = []
    shared = CachedTransformer(load_transformer(encoder, half=False).eval())
    shared.transformer.register_forward_hook(lambda *_: reads.append(1))
    for sentences in (("EU rejects lamb .",), ("EU rejects lamb", "a call"), ("EU rejects lamb .",)):
        batch = _batch(encoder, *sentences)
        torch.testing.assert_close(shared(batch), plain(batch))
    assert len(reads) == 2


@torch.inference_mode()
def test_words_are_kept_apart_from_all_subwords(encoder: str) -> None:
    plain = load_transformer(encoder, half=False).eval()
    shared = CachedTransformer(load_transformer(encoder, half=False).eval())
    batch = _batch(encoder, "EU unwanted lamb", "a call")
    for _ in range(2):
        torch.testing.assert_close(shared(batch), plain(batch))
        torch.testing.assert_close(shared.words(batch), plain(batch).flatten(0, 1)[batch.rows])
    # The same subwords, of which other ones begin words.
    other = dataclasses.replace(batch, rows=batch.rows[:2])
    torch.testing.assert_close(shared.words(other), plain.words(other))


@torch.inference_mode()
def test_a_padding_subword_in_the_text_is_not_padding(encoder: str) -> None:
    shared = CachedTransformer(load_transformer(encoder, half=False).eval())
    padded, written = _batch(encoder, "EU call lamb", "EU"), _batch(encoder, "EU call lamb", "EU [PAD] [SEP]")
    assert padded.ids.shape == written.ids.shape
    plain = load_transformer(encoder, half=False).eval()
    shared(padded)
    torch.testing.assert_close(shared(written), plain(written))


@torch.inference_mode()
def test_only_so_much_is_kept(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shared_transformer(encoder) is shared_transformer(encoder)
    first, second = _batch(encoder, "EU rejects lamb ."), _batch(encoder, "a German lamb .")
    shared = CachedTransformer(load_transformer(encoder, half=False).eval())
    reads: list[int] = []
    shared.transformer.register_forward_hook(lambda *_: reads.append(1))
    monkeypatch.setattr(frozen, "_MOST_BYTES", 1)
    for batch in (first, second, second, first):
        shared(batch)
    assert len(reads) == 3


def prepared(encoder: str, corpus: str, tasks: tuple[str, ...]) -> TrainingRun:
    config = RunConfig.build(
        corpus=corpus, tasks=tasks, encoder=encoder, encoder_training="frozen", max_length=32, dropout=0,
        paradigm="mtl" if len(tasks) > 1 else "stl", device="cpu", precision="fp32",
    )  # fmt: skip
    return set_up(config, prepare(config))


def made(encoder: str, corpus: str, tasks: tuple[str, ...]) -> TrainingRun:
    run = prepared(encoder, corpus, tasks)
    assert run.compute_features(lambda _: None, lambda: False)
    return run


def test_the_mean_over_tasks_scales_each_head_s_gradient(encoder: str) -> None:
    gradients = {}
    for tasks in (("pos", "chunk", "ner"), ("pos",)):
        run = made(encoder, "demo?train=40", tasks)
        run.model.train()
        train_step(run, next(run.epoch(skip=0)))
        gradient = run.model.heads.weight.grad
        assert gradient is not None
        gradients[tasks] = gradient[run.model.heads.slices[0]]
    together, alone = gradients.values()
    torch.testing.assert_close(3 * together, alone)


@pytest.mark.parametrize("fills_up", ["before", "while it is written"])
def test_features_that_do_not_fit_on_the_disk_leave_nothing(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fills_up: str
) -> None:
    with small_disk(tmp_path / "disk", 4) as disk:
        monkeypatch.setenv("MRNLAB_HOME", str(disk))
        run = prepared(encoder, "demo?train=40", ("pos",))
        before = {path for path in disk.rglob("*") if path.is_file()}
        ballast = fill(disk, 5000)
        if fills_up != "before":  # by another program, after the check
            monkeypatch.setattr("core.paths._free", lambda _: 10**9)
        with pytest.raises(NoRoom, match=r"features could not be saved.* needs .* MB in .*, where .* free"):
            run.compute_features(lambda _: None, lambda: False)
        assert {path for path in disk.rglob("*") if path.is_file()} == {*before, ballast}
        ballast.unlink()
        assert run.compute_features(lambda _: None, lambda: False)
