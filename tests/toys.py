"""A toy corpus as the library holds it: sentences of nine words that each have one label per task."""

from __future__ import annotations

import numpy as np

from core.corpora.types import Corpus, Sentence, Task

__all__ = ["NER", "POS", "WORDS", "corpus", "sentences"]

WORDS = ["EU", "rejects", "German", "call", "to", "boycott", "British", "lamb", "."]
POS = ["N", "V", "J", "N", "T", "V", "J", "N", "."]
NER = ["B-ORG", "O", "B-MISC", "O", "O", "O", "B-MISC", "O", "O"]


def sentences(
    count: int, seed: int, tasks: tuple[str, ...] = ("pos", "ner"), longest: int = 9
) -> list[Sentence]:
    """So many, drawn with that seed, annotated for those tasks."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        picked = rng.integers(0, len(WORDS), rng.integers(2, longest))
        columns = {"pos": tuple(POS[i] for i in picked), "ner": tuple(NER[i] for i in picked)}
        made.append(Sentence(tuple(WORDS[i] for i in picked), {task: columns[task] for task in tasks}))
    return made


def corpus(train: list[Sentence] | None = None, test: list[Sentence] | None = None) -> Corpus:
    """Forty training sentences, ten of development, twelve of test; or those given."""
    return Corpus(
        "toy",
        (Task("pos", "plain", (".", "J", "N", "T", "V")), Task("ner", "iob2", ("O", "B-MISC", "B-ORG"))),
        tuple(train or sentences(40, 0)),
        tuple(sentences(10, 1)),
        tuple(test or sentences(12, 2)),
    )
