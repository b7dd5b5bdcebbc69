"""Sentences of dev and test that training, or the other, shows too: their scores are partly of memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from core.corpora.types import SPLITS, Corpus, Sentences, Split
from core.tasks.packed import Packed

_COMPARED: tuple[tuple[Split, Split], ...] = (("dev", "train"), ("test", "train"), ("dev", "test"))
_ROWS_AT_ONCE = 1 << 14
_STEP, _FIRST, _SECOND = map(np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
"""The constants of splitmix64 (Steele, Lea and Flood, 2014), which makes one random number of another."""


@dataclass(frozen=True)
class Repeat:
    """How many of the `total` sentences of `split` have the words of a sentence of the split `inside`."""

    split: Split
    inside: Split
    count: int
    total: int
    unit: str = "sentences"

    @property
    def sentence(self) -> str:
        """`15 of 20 test sentences are in train, word for word.`"""
        return repeats_note([self])


def repeats(corpus: Corpus) -> tuple[Repeat, ...]:
    """The dev and test sentences that are in train, and those of dev in test, by their words; none of 0.

    Capitals count, labels do not; of a pair both texts are compared. The words are compared by 64-bit hashes.
    """
    train, dev, test = (corpus.split(split) for split in SPLITS)
    train = train.where(np.isin(_outlines(train), np.concatenate([_outlines(dev), _outlines(test)])))
    keys = {split: _keys(each) for split, each in zip(SPLITS, (train, dev, test), strict=True)}
    counted = (
        Repeat(split, inside, int(np.isin(keys[split], keys[inside]).sum()), len(keys[split]), _unit(corpus))
        for split, inside in _COMPARED
    )
    return tuple(repeat for repeat in counted if repeat.count)


def repeats_note(same: Collection[Repeat]) -> str:
    """A sentence on the repeats of one split in another, of several runs: their least and greatest number."""
    first = next(iter(same))
    counts = sorted({repeat.count for repeat in same})
    totals = sorted({repeat.total for repeat in same})
    number, total = (
        f"{some[0]:,} to {some[-1]:,}" if len(some) > 1 else f"{some[0]:,}" for some in (counts, totals)
    )
    verb = "is" if counts == [1] else "are"
    return f"{number} of {total} {first.split} {first.unit} {verb} in {first.inside}, word for word."


def repeats_notes(repeats_of_runs: Iterable[Repeat], split: str) -> tuple[str, ...]:
    """What the repeats of several runs are and mean for the scores on that split."""

    def key(repeat: Repeat) -> tuple[Split, Split, str]:
        return repeat.split, repeat.inside, repeat.unit

    concerned = sorted((each for each in repeats_of_runs if split in (each.split, each.inside)), key=key)
    return tuple(
        f"{repeats_note(list(same))} {_CONSEQUENCES[inside]}"
        for (_, inside, _), same in groupby(concerned, key)
    )


_CONSEQUENCES: dict[Split, str] = {
    "train": "Their scores are partly of memory, for all configurations alike.",
    "test": "Models are not trained on dev, so this hardly matters.",
}


def _unit(corpus: Corpus) -> str:
    splits = [corpus.split(split) for split in ("train", "dev", "test")]
    if not all(sentences.by_traits(lambda traits: traits.whole).all() for sentences in splits):
        return "sentences"
    return "pairs" if any(len(sentences.second.at) for sentences in splits) else "texts"


def _outlines(sentences: Sentences) -> NDArray[np.uint64]:
    """(s,) a hash of the first and last word of each sentence and of its length: few are equal by chance."""
    rows = sentences.tokens
    hashes = _hashes(rows)
    has_words = rows.lengths > 0
    outlines = rows.lengths.astype(np.uint64)
    for place in (rows.offsets[:-1], rows.offsets[1:] - 1):
        outlines = _mixed(outlines * _STEP)
        outlines[has_words] += hashes[rows.numbers[place[has_words]]]
    return outlines


def _hashes(rows: Packed) -> NDArray[np.uint64]:
    return np.array([hash(name) for name in rows.names], dtype=np.int64).view(np.uint64)


def _keys(sentences: Sentences) -> NDArray[np.uint64]:
    """(s,) a hash of the words of each sentence, of both texts of a pair."""
    keys = _row_keys(sentences.tokens)
    keys[sentences.second.at] += _mixed(_row_keys(sentences.second.rows) + _FIRST)
    return keys


def _row_keys(rows: Packed) -> NDArray[np.uint64]:
    """(s,) the sum over the texts of each row of a hash of text and place."""
    hashes = _hashes(rows)
    keys = np.zeros(len(rows), dtype=np.uint64)
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        offsets = rows.offsets[first : first + _ROWS_AT_ONCE + 1]
        numbers = rows.numbers[offsets[0] : offsets[-1]]
        lengths = np.diff(offsets)
        place = np.arange(len(numbers)) - np.repeat(offsets[:-1] - offsets[0], lengths)
        mixed = _mixed(hashes[numbers] + (place + 1).astype(np.uint64) * _STEP)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
        keys[first : first + len(lengths)] = np.diff(sums[offsets - offsets[0]])
    return keys


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The values, each made a random number that depends on all of its bits."""
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))
