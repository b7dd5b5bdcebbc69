"""Words, subwords, windows and batches: no word is lost, whatever its length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.encoding.batches import IGNORED, Batches, EpochOrder
from core.encoding.encoded import EncodedText, cut, encode, encode_cached
from core.encoding.tokenizer import SubwordTokenizer, load_tokenizer
from tests.tiny import tiny_bert


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> SubwordTokenizer:
    return load_tokenizer(str(tiny_bert(tmp_path_factory.mktemp("bert"))))


@given(st.lists(st.integers(1, 12), max_size=60), st.integers(1, 20))
def test_every_word_belongs_to_one_window_that_reads_it(lengths: list[int], budget: int) -> None:
    windows = cut(lengths, budget)
    owned = [word for window in windows for word in range(window.own_start, window.own_stop)]
    assert owned == list(range(len(lengths)))
    for window in windows:
        assert window.start <= window.own_start <= window.own_stop <= window.stop
        size = sum(lengths[window.start : window.stop])
        assert size <= budget or window.stop - window.start == 1


def test_windows_overlap_and_split_their_overlap() -> None:
    first, second = cut([1] * 12, 8)
    assert second.start == first.stop - 2
    assert first.own_stop == second.own_start == first.stop - 1


def test_first_subword_is_where_it_says(bert: SubwordTokenizer) -> None:
    text = encode([["EU", "unwanted", "call"], ["lamb"]], bert, 16)
    first = text.ids[text.offsets[0] : text.offsets[1]]
    names = bert.inner.convert_ids_to_tokens(first.tolist())
    assert names == ["[CLS]", "EU", "un", "##want", "##ed", "call", "[SEP]"]
    assert text.firsts.tolist() == [1, 2, 5, 1]
    assert text.sentences.tolist() == [0, 3, 4]


def test_cache_returns_what_was_encoded(bert: SubwordTokenizer, tmp_path: Path) -> None:
    """And makes a damaged file anew."""
    sentences = [["EU", "unwanted"], ["call"] * 40]
    first, key = encode_cached(sentences, bert, 16, tmp_path)
    path = tmp_path / f"{key}.npz"
    for content in (path.read_bytes(), path.read_bytes()[:40]):
        path.write_bytes(content)
        again, same = encode_cached(sentences, bert, 16, tmp_path)
        assert same == key
        for name in ("ids", "offsets", "firsts", "words", "sentences"):
            np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert encode_cached(sentences, bert, 12, tmp_path)[1] != key
    assert encode_cached([["EU", "unwanted call"], ["call"] * 40], bert, 16, tmp_path)[1] != key


def _batches(text: EncodedText, size: int = 3) -> Batches:
    labels = np.arange(len(text.firsts))[:, None]
    return Batches(text, labels, size, 0)


def test_every_word_is_in_one_batch_with_its_own_label(bert: SubwordTokenizer) -> None:
    text = encode([["EU"] * n for n in (1, 40, 5, 2, 9, 30, 1)], bert, 16)
    batches = _batches(text)
    for run in (batches.by_length(), batches.shuffled(np.random.default_rng(0))):
        seen = []
        count = 0
        for batch in run:
            count += 1
            seen.extend(batch.words.tolist())
            assert batch.labels[:, 0].tolist() == batch.words.tolist()
            first = batch.ids.flatten()[batch.rows]
            assert first.tolist() == text.ids[batch.places.flatten()[batch.rows]].tolist()
            assert batch.mask.flatten()[batch.rows].all()
            assert batch.real.tolist() == batch.mask.flatten().nonzero().flatten().tolist()
            assert batch.lengths.tolist() == batch.mask.sum(dim=1).tolist()
        assert sorted(seen) == list(range(len(text.firsts)))
        assert count == len(batches)


def test_order_comes_from_the_seed(bert: SubwordTokenizer) -> None:
    batches = _batches(encode([["EU"] * n for n in range(1, 20)], bert, 32))
    first = [batch.words.tolist() for batch in batches.shuffled(np.random.default_rng(1))]
    assert first == [batch.words.tolist() for batch in batches.shuffled(np.random.default_rng(1))]
    assert first != [batch.words.tolist() for batch in batches.shuffled(np.random.default_rng(2))]


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=60),
    st.integers(8, 60),
    st.integers(0, 3),
    st.integers(0, 99),
)
def test_a_budget_is_kept_in_every_pass(sizes: list[int], budget: int, skip: int, seed: int) -> None:
    """As many batches in every pass as said before, none dearer than the budget but a single window."""
    text = _plain_text(sizes)
    batches = Batches(text, np.arange(len(text.firsts))[:, None], 16, 0, budget)
    rng = np.random.default_rng(seed)
    for _ in range(2):
        state = rng.bit_generator.state
        made = list(batches.shuffled(rng))
        assert len(made) == len(batches)
        assert sorted(word for batch in made for word in batch.words.tolist()) == list(range(sum(sizes)))
        for batch in made:
            assert batch.ids.numel() <= budget or len(batch.ids) == 1
        again = np.random.default_rng()
        again.bit_generator.state = state
        assert [batch.words.tolist() for batch in batches.shuffled(again, skip)] == [
            batch.words.tolist() for batch in made[skip:]
        ]


@pytest.mark.parametrize("by_size", [False, True])
def test_drawn_tasks_have_batches_of_their_own(by_size: bool) -> None:
    """An epoch has each task's sentences once, with that task's labels alone; tasks come in a drawn order."""
    text = _plain_text([2] * 30)
    labels = np.stack([np.arange(60), np.full(60, IGNORED)], axis=1)
    labels[:20, 1] = 7
    order = EpochOrder(tasks=(np.arange(30), np.arange(10)), by_size=by_size)
    batches = Batches(text, labels, 2, 0, epoch_order=order)
    assert len(batches) == 20
    made = list(batches.shuffled(np.random.default_rng(0)))
    tasks = [int((batch.labels != IGNORED).any(dim=0).nonzero()) for batch in made]
    assert sorted(tasks) == [0] * 15 + [1] * 5
    assert tasks != sorted(tasks)
    for task, words in ((0, 60), (1, 20)):
        seen = [batch.words[batch.labels[:, task] != IGNORED] for batch in made]
        assert sorted(torch.cat(seen).tolist()) == list(range(words))
    again = list(batches.shuffled(np.random.default_rng(0), skip=7))
    assert [batch.words.tolist() for batch in again] == [batch.words.tolist() for batch in made[7:]]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=6), st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_smoothing_shares_the_batches_of_an_epoch(sizes: list[int], exponent: float) -> None:
    counts = EpochOrder(smoothing=exponent).counts(sizes)
    assert min(counts) >= 1
    assert sum(counts) == sum(sizes) or (sum(counts) > sum(sizes) and 1 in counts)
    powers = [size**exponent for size in sizes]
    for count, power in zip(counts, powers, strict=True):
        wanted = sum(sizes) * power / sum(powers)
        assert abs(count - wanted) < 1 or (count == 1 > wanted)
    if exponent == 1:
        assert list(counts) == sizes


def test_a_smoothed_epoch_repeats_small_tasks_and_cuts_large_ones() -> None:
    text = _plain_text([2] * 40)
    labels = np.stack([np.arange(80), np.full(80, IGNORED)], axis=1)
    labels[:10, 1] = 7
    order = EpochOrder(tasks=(np.arange(40), np.arange(5)), by_size=True, smoothing=0.0)
    batches = Batches(text, labels, 5, 0, epoch_order=order)
    assert batches.per_part == (5, 4)
    rng = np.random.default_rng(0)
    state = rng.bit_generator.state
    made = list(batches.shuffled(rng))
    small = [batch.words[batch.labels[:, 1] != IGNORED].tolist() for batch in made]
    assert [sorted(words) for words in small if words] == [list(range(10))] * 4
    seen: set[int] = set()
    for _ in range(20):  # what is left out changes from epoch to epoch
        for batch in batches.shuffled(rng):
            seen |= set(batch.words[batch.labels[:, 0] != IGNORED].tolist())
    assert seen == set(range(80))
    rng.bit_generator.state = state
    again = list(batches.shuffled(rng, skip=4))
    assert [batch.words.tolist() for batch in again] == [batch.words.tolist() for batch in made[4:]]


def _plain_text(sizes: list[int]) -> EncodedText:
    """A window of so many words, each one subword, for each size, between two of a frame."""
    offsets = np.cumsum([0, *(size + 2 for size in sizes)])
    words = np.cumsum([0, *sizes])
    return EncodedText(
        ids=np.arange(offsets[-1], dtype=np.int32),
        offsets=offsets,
        firsts=np.concatenate([np.arange(1, size + 1) for size in sizes]).astype(np.int32),
        words=words,
        sentences=words,
    )


def test_sentences_of_a_budget_are_mixed_anew() -> None:
    """The windows of one length do not meet in the same batches in every pass."""
    text = _plain_text([4] * 40)
    batches = Batches(text, np.arange(len(text.firsts))[:, None], 16, 0, 24)
    rng = np.random.default_rng(0)
    first, second = ({frozenset(b.words.tolist()) for b in batches.shuffled(rng)} for _ in range(2))
    assert len(first) == 10
    assert len(first & second) < 3


def test_labels_that_do_not_fit_are_refused(bert: SubwordTokenizer) -> None:
    text = encode([["EU", "call"]], bert, 16)
    with pytest.raises(ValueError, match="labels for 1 words, but the text has 2"):
        Batches(text, np.full((1, 1), IGNORED), 2, 0)
