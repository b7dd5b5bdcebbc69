"""Sentences of words and whole texts, encoded together: a text or a pair of texts is one word of EncodedText.

A sentence of words that is also read as a whole has one word more, in front. A text is one window, cut off
where it is too long. The two texts of a pair stand together in one window, with what the tokenizer puts
between them, or apart in two windows, the second right behind the first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.corpora.readers.splitting import split_words
from core.corpora.types import Sentence, Sentences
from core.encoding.encoded import (
    EncodedText,
    TextWindows,
    encode,
    encode_cached,
    join_texts,
    no_texts,
    text_key,
)
from core.encoding.tokenizer import Tokenizer, split_different
from core.encoding.words import WordTokenizer
from core.tasks.packed import offsets, packed


def word_forms(sentence: Sentence) -> Sequence[str]:
    """The words that an encoder over words reads of a sentence, a text or a pair of texts."""
    if not sentence.whole:
        return sentence.tokens
    return [*_split(sentence.tokens), *_split(sentence.second or ())]


def _split(words: Sequence[str]) -> Sequence[str]:
    """The words of a text with punctuation split off: word vectors know no `film.`."""
    return split_words(" ".join(words)) or words


def encode_sentences(
    sentences: Iterable[Sentence],
    tokenizer: Tokenizer,
    max_length: int,
    *,
    together: bool,
    cache: Path | None,
) -> tuple[EncodedText, str]:
    """The sentences as windows of at most `max_length` subwords, and a key of the encoded text.

    `together` says whether a pair's texts share a window. `cache` is a folder for sentences of words, where
    they are kept. Raises ValueError where the frame leaves no room.
    """
    sentences = Sentences.of(sentences)
    words = sentences.tokens
    if any(traits.whole for traits in sentences.traits):
        text, key = _encode_groups(sentences, tokenizer, max_length, together=together)
    elif cache is not None:
        text, key = encode_cached(words, tokenizer, max_length, cache)
    else:
        text, key = encode(words, tokenizer, max_length), text_key(words, tokenizer, max_length)
    is_read_whole = sentences.has_text_item
    # The key is that of the windows, which stay the same: so do the cached states of a frozen encoder.
    return (_with_text_items(text, is_read_whole) if is_read_whole.any() else text), key


def _encode_groups(
    sentences: Sequence[Sentence], tokenizer: Tokenizer, max_length: int, *, together: bool
) -> tuple[EncodedText, str]:
    """Neighbouring sentences of words, and neighbouring whole texts, encoded together, and their key."""
    parts: list[EncodedText] = []
    keys: list[str] = []
    for whole, group in groupby(sentences, key=lambda sentence: sentence.whole):
        part = list(group)
        words = [sentence.tokens for sentence in part]
        seconds = [sentence.second or () for sentence in part]
        parts.append(
            _encode_texts(part, tokenizer, max_length, together=together)
            if whole
            else encode(words, tokenizer, max_length)
        )
        keys += [text_key(column, tokenizer, max_length) for column in (words, seconds)]
        keys.append(f"{whole}{together}")
    return join_texts(parts), hashlib.sha256("".join(keys).encode()).hexdigest()[:32]


def _with_text_items(text: EncodedText, is_read_whole: NDArray[np.bool_]) -> EncodedText:
    """The same windows, where some of the s sentences of words (s,) are also read as a whole.

    A sentence of several windows is represented by the first: its text has lost its end.
    """
    before = text.sentences[:-1][is_read_whole]  # the words that the new items precede
    first_window = np.searchsorted(text.words, before, side="right") - 1
    windows_of_sentence = np.bincount(text.sentence_of_window, minlength=len(is_read_whole))
    begins = np.zeros(text.windows, dtype=bool)
    begins[first_window] = True
    texts = text.texts or no_texts(text)
    shortened = texts.shortened.copy()
    shortened[first_window] = windows_of_sentence[is_read_whole] > 1
    return replace(
        text,
        firsts=np.insert(text.firsts, before, 0),
        words=text.words + offsets(begins.astype(np.int64)),
        sentences=text.sentences + offsets(is_read_whole.astype(np.int64)),
        texts=replace(texts, whole=texts.whole | begins, shortened=shortened),
    )


def _encode_texts(
    texts: Sequence[Sentence], tokenizer: Tokenizer, max_length: int, *, together: bool
) -> EncodedText:
    """Whole texts and pairs as windows, one word each."""
    room = max_length - tokenizer.frame
    if room - len(tokenizer.between) < 2:
        raise ValueError(f"max_length {max_length} leaves no room for a text")
    read: list[Sequence[str]] = [words for text in texts for words in (text.tokens, text.second or ())]
    if isinstance(tokenizer, WordTokenizer):  # a subword tokenizer splits what stands between spaces itself
        read = list(map(_split, read))
    words = packed(read)
    all_pieces = split_different(words, tokenizer).take(words.numbers)
    pieces = np.split(all_pieces.ids, offsets(all_pieces.counts)[words.offsets][1:])
    prefix, between, suffix = (
        np.asarray(ids, dtype=np.int32) for ids in (tokenizer.prefix, tokenizer.between, tokenizer.suffix)
    )
    windows: list[NDArray[np.int32]] = []
    second, follows, shortened, items = [], [], [], []
    for index, text in enumerate(texts):
        a, b = pieces[2 * index : 2 * index + 2]
        if text.second is not None and together:
            kept_a, kept_b = _share(len(a), len(b), room - len(between))
            begins = len(prefix) + kept_a + len(between)
            windows.append(np.concatenate([prefix, a[:kept_a], between, b[:kept_b], suffix]))
            second.append(begins if tokenizer.has_types else len(windows[-1]))
            shortened.append(kept_a + kept_b < len(a) + len(b))
            follows.append(False)
            items.append(1)
            continue
        for ids in (a,) if text.second is None else (a, b):
            windows.append(np.concatenate([prefix, ids[:room], suffix]))
            second.append(len(windows[-1]))
            shortened.append(len(ids) > room)
            follows.append(ids is b)
            items.append(0 if ids is b else 1)
    return EncodedText(
        ids=np.concatenate(windows),
        offsets=offsets(np.array([len(window) for window in windows])),
        firsts=np.zeros(len(texts), dtype=np.int32),
        words=offsets(np.array(items)),
        sentences=np.arange(len(texts) + 1),
        texts=TextWindows(
            whole=np.ones(len(windows), dtype=bool),
            second=np.array(second, dtype=np.int64),
            follows=np.array(follows, dtype=bool),
            shortened=np.array(shortened, dtype=bool),
        ),
    )


def _share(a: int, b: int, most: int) -> tuple[int, int]:
    """How many subwords of two texts of these lengths are kept where `most` fit, the longer one cut first."""
    if a + b <= most:
        return a, b
    shorter = min(a, b, most // 2)
    return (shorter, most - shorter) if a <= b else (most - shorter, shorter)
