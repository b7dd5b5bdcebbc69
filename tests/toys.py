"""A toy corpus as the library holds it: sentences of nine words that each have one label per task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from core.config import RunConfig
from core.corpora.assembly import assemble
from core.corpora.types import Corpus, Sentence, Split, Task

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


TEXT_TASKS = ("mood", "same", "alike")
"""A label of a text, a label of a pair and a number of a pair."""


def texts(count: int, seed: int) -> list[Sentence]:
    """So many texts of each of TEXT_TASKS: `mood` follows words, `same` and `alike` words in common."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        mood = ("good", "bad")[int(rng.integers(2))]
        known = WORDS[:4] if mood == "good" else WORDS[4:]
        words = tuple(known[i] for i in rng.integers(0, 4, rng.integers(2, 9)))
        made.append(Sentence(words, {"mood": (mood,)}, "moods", whole=True))
    for _ in range(count):
        first = tuple(WORDS[i] for i in rng.permutation(len(WORDS))[:4])
        kept = int(rng.integers(0, 5))
        others = [word for word in WORDS if word not in first]
        second = first[:kept] + tuple(others[: 4 - kept])
        labels = {"same": ("yes" if kept > 2 else "no",)}
        made.append(Sentence(first, labels, "pairs", whole=True, second=second))
        made.append(replace(made[-1], labels={"alike": (f"{1.25 * kept:g}",)}, part="numbers"))
    return made


def text_corpus(count: int = 40, tasks: Sequence[str] = ("pos", *TEXT_TASKS)) -> Corpus:
    """Texts, pairs and sentences of words in one corpus, those of these tasks."""
    shares: list[tuple[Split, int, int]] = [("train", count, 10), ("dev", 8, 11), ("test", 12, 12)]
    splits: dict[Split, list[Sentence]] = {
        split: [
            sentence
            for sentence in (*sentences(share, seed, ("pos",)), *texts(share, seed))
            if not sentence.labels.keys().isdisjoint(tasks)
        ]
        for split, share, seed in shares
    }
    return assemble("texts", splits, schemes=dict(zip(TEXT_TASKS, ("text", "pair", "score"), strict=True)))
