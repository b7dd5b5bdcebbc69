"""Stores with predictions in which one method gains on words that training never saw. Synthetic numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from core.config import RunConfig
from core.corpora import prepare
from core.corpora.types import Sentences
from core.events import SplitResult, TaskFacts
from core.store import Store
from core.tasks import score_task
from tests.making import finished, run_facts

SEEDS = (1, 2, 3, 4, 5)
Wrong = Callable[[str, bool], float]
"""The chance that a word is predicted wrongly, by paradigm and whether training never saw it."""


def plain_error(paradigm: str, is_unseen: bool) -> float:
    """MRN is right with half of the unseen words that MTL gets wrong."""
    return (0.25 if paradigm == "mrn" else 0.5) if is_unseen else 0.08


def fill(
    store: Store,
    config: RunConfig,
    *,
    paradigms: Sequence[str] = ("mtl", "mrn"),
    seeds: Sequence[int] = SEEDS,
    wrong: Wrong = plain_error,
    with_predictions: bool = True,
) -> list[int]:
    """Finished runs of both paradigms, with predictions of dev and test that are wrong by chance."""
    ids = []
    facts = tuple(
        TaskFacts(
            task.name, task.scheme, task.labels, "f1_conll" if task.scheme == "iob2" else "accuracy", 9, 99
        )
        for task in prepare(config).tasks
    )
    for seed in seeds:
        for place, paradigm in enumerate(paradigms):
            run = config.with_(paradigm=paradigm, seed=seed)
            results = _results(run, place, wrong)
            if not with_predictions:
                results = [replace(result, predictions={}, gold={}) for result in results]
            ids.append(finished(store, run, run_facts(tasks=facts), *results))
    return ids


@cache
def _results(run: RunConfig, place: int, wrong: Wrong) -> Sequence[SplitResult]:
    """What a run would have, in dev and test."""
    corpus = prepare(run)
    seen = set(corpus.split("train").tokens.counts())
    random = np.random.default_rng([run.seed, place])
    results = []
    for split in ("dev", "test"):
        gold, predicted = {}, {}
        for task in corpus.tasks:
            sentences = corpus.split(split)
            kept = sentences.where(sentences.annotated([task.name]))
            gold[task.name] = [list(row) for row in kept.column(task.name).rows]
            predicted[task.name] = _guessed(
                kept, gold[task.name], task.labels, seen, run.paradigm, wrong, random
            )
        scores = tuple(
            score_task(task.name, task.scheme, gold[task.name], predicted[task.name]) for task in corpus.tasks
        )
        results.append(SplitResult(split, 1, scores, predicted, gold))
    return results


def _guessed(
    sentences: Sentences,
    gold: Sequence[Sequence[str]],
    labels: Sequence[str],
    seen: set[str],
    paradigm: str,
    wrong: Wrong,
    random: np.random.Generator,
) -> list[list[str]]:
    return [
        [
            str(random.choice([each for each in labels if each != label]))
            if random.random() < wrong(paradigm, word not in seen)
            else label
            for word, label in zip(words, row, strict=len(row) > 1)
        ]
        for words, row in zip(sentences.tokens, gold, strict=True)
    ]
