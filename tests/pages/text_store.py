"""Corpora of texts and pairs, and finished runs on them. Synthetic: for tests of the pages only."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np

from core.config import RunConfig
from core.corpora import load
from core.events import SplitResult, TaskFacts
from core.store import Store
from core.tasks import KINDS, score_task
from tests.making import finished, run_facts

TASKS = ("mood", "same", "alike")
SCHEMES = {"mood": "text", "same": "pair", "alike": "score"}
_TRAIN, _TEST = 40, 20


def text_folders(home: Path) -> str:
    """The name of a corpus joined from three folders: labels of texts, labels of pairs, numbers of pairs."""
    for task, scheme in SCHEMES.items():
        (home / task).mkdir(parents=True)
        head = {"text": "text\tlabel", "pair": "text1\ttext2\tlabel", "score": "text1\ttext2\tscore"}[scheme]
        for split, count in (("train", _TRAIN), ("test", _TEST)):
            rows = [_row(scheme, split, number) for number in range(count)]
            (home / task / f"{split}.tsv").write_text("\n".join([head, *rows]) + "\n")
    return "joined:" + "+".join(str(home / task) for task in TASKS)


def _row(scheme: str, split: str, number: int) -> str:
    first = f"This is {split} text {number} of ten good words here ."
    if scheme == "text":
        return f"{first}\t{('bad', 'good')[number % 2]}"
    label = f"{number % 11 / 2:g}" if scheme == "score" else str(number % 2)
    return f"{first}\tAnd its other half , {number} .\t{label}"


def text_config(corpus: str, **values: Any) -> RunConfig:
    """A run of MTL on all three tasks."""
    defaults = {"corpus": corpus, "tasks": TASKS, "paradigm": "mtl", "encoder_training": "full"}
    return RunConfig.build(**(defaults | values))


def text_run(config: RunConfig, share: float) -> int:
    """A run that ended well, with about this share of labels right and numbers that are as near."""
    corpus = load(config.corpus)
    facts = tuple(
        TaskFacts(
            task,
            SCHEMES[task],
            corpus.task(task).labels,
            KINDS[SCHEMES[task]].score_name(),
            train_sentences=_TRAIN,
            train_tokens=_TRAIN,
            scale=corpus.task(task).scale,
        )
        for task in config.tasks
    )
    random = np.random.default_rng([config.seed, len(config.paradigm), int(1000 * share)])
    gold = {
        task: [list(sentence.labels[task]) for sentence in corpus.test if task in sentence.labels]
        for task in config.tasks
    }
    predicted = {
        task: [[_guess(SCHEMES[task], label, share, random)] for (label,) in of_task]
        for task, of_task in gold.items()
    }
    scores = tuple(score_task(task, SCHEMES[task], gold[task], predicted[task]) for task in config.tasks)
    recorded = run_facts(tasks=facts, total_steps=30, label_names=(), label_owners=())
    with contextlib.closing(Store.open()) as store:
        return finished(store, config, recorded, SplitResult("test", 1, scores, predicted, gold))


def _guess(scheme: str, label: str, share: float, random: np.random.Generator) -> str:
    if scheme == "score":
        return f"{float(label) + 4 * (1 - share) * random.normal():.4f}"
    others = {"good": "bad", "bad": "good", "0": "1", "1": "0"}
    return label if random.random() < share else others[label]
