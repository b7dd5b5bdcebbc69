"""Draws of sentences that are the same for the same seed.

Every draw has a stream of its own, made from the run's seed, the draw's purpose and the part of the corpus,
so no draw changes another.
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from core.corpora.types import Sentences


def stream(seed: int, purpose: str, part: str) -> np.random.Generator:
    """The random numbers of that draw."""
    # crc32 rather than hash(): Python salts the latter anew in every process.
    return np.random.default_rng(np.random.SeedSequence([seed, zlib.crc32(f"{purpose}/{part}".encode())]))


def parts(sentences: Sentences) -> list[tuple[str, NDArray[np.int64]]]:
    """The indices of the sentences by the corpus they came from, in order."""
    part = sentences.by_traits(lambda traits: traits.part)
    return [(name, np.flatnonzero(part == name)) for name in dict.fromkeys(part.tolist())]


def draw(
    sentences: NDArray[np.int64], number: int, numbers: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """`number` sentences drawn without replacement, and the others: indices, in the corpus's order."""
    drawn = np.zeros(len(sentences), dtype=bool)
    drawn[numbers.choice(len(sentences), size=number, replace=False)] = True
    return sentences[drawn], sentences[~drawn]


def sentences_for(words: NDArray[np.int64], budget: int) -> int:
    """How many sentences, from the first on, reach a budget of words; all where these are too few."""
    reached = int(np.searchsorted(np.cumsum(words), budget)) + 1
    return min(reached, len(words))
