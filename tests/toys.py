"""A toy corpus as the library holds it: sentences of nine words that each have one label per task."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.config import RunConfig
from core.corpora.types import Corpus, Sentence, Task

__all__ = ["NER", "POS", "WORDS", "config", "corpus", "sentences"]

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


def config(encoder: str, **changes: Any) -> RunConfig:
    """Three epochs of five steps on the toy corpus with that encoder, unless `changes` say otherwise."""
    values: dict[str, Any] = {
        "corpus": "toy",
        "tasks": "pos,ner",
        "encoder": encoder,
        "epochs": 3,
        "batch_size": 8,
        "max_length": 32,
        "lr_encoder": 2e-3,
        "lr_heads": 2e-2,
        "device": "cpu",
        "precision": "fp32",
    }
    values |= changes
    if values.get("encoder_training") == "frozen":
        del values["lr_encoder"]
    return RunConfig.build(**values)
