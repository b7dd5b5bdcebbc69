"""Draws of sentences that are the same for the same seed.

Every draw has a stream of its own, made from the run's seed, the draw's purpose and the part of the corpus,
so no draw changes another.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import numpy as np

from core.corpora.types import Sentence


def stream(seed: int, purpose: str, part: str) -> np.random.Generator:
    """The random numbers of that draw."""
    # crc32 rather than hash(): Python salts the latter anew in every process.
    return np.random.default_rng(np.random.SeedSequence([seed, zlib.crc32(f"{purpose}/{part}".encode())]))


def parts(sentences: Sequence[Sentence]) -> list[tuple[str, list[Sentence]]]:
    """The sentences by the corpus they came from, in order."""
    by_part: dict[str, list[Sentence]] = {}
    for sentence in sentences:
        by_part.setdefault(sentence.part, []).append(sentence)
    return list(by_part.items())


def draw(
    sentences: Sequence[Sentence], number: int, numbers: np.random.Generator
) -> tuple[list[Sentence], list[Sentence]]:
    """`number` sentences drawn without replacement, and the others; both in the corpus's order."""
    drawn = np.zeros(len(sentences), dtype=bool)
    drawn[numbers.choice(len(sentences), size=number, replace=False)] = True
    pairs = list(zip(sentences, drawn, strict=True))
    return [s for s, is_drawn in pairs if is_drawn], [s for s, is_drawn in pairs if not is_drawn]


def shuffled(sentences: Sequence[Sentence], numbers: np.random.Generator) -> list[Sentence]:
    """The sentences in random order."""
    return [sentences[index] for index in numbers.permutation(len(sentences))]


def until(sentences: Iterable[Sentence], words: int) -> list[Sentence]:
    """The first sentences, whole, up to the one that reaches so many words; all where they have fewer."""
    taken: list[Sentence] = []
    count = 0
    for sentence in sentences:
        if count >= words:
            break
        taken.append(sentence)
        count += sentence.words
    return taken


def words_of(sentences: Iterable[Sentence]) -> int:
    """How many words the sentences have."""
    return sum(sentence.words for sentence in sentences)
