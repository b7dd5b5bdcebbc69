"""Two tasks over the same labels, with finished MRN runs whose link can be cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from core.config import RunConfig
from core.events import Snapshot, SplitResult
from core.mrn.relations import Relations
from core.store import Store
from core.tasks import score_task
from core.tasks.kinds import TaskFacts
from tests.making import corpus_folder, finished, run_facts

LABELS = [["N", "V"], ["V", "N"]] * 10


def trained(store: Store, config: RunConfig, wrong: int) -> int:
    """A finished run with relations, that predicts so many sentences wrongly."""
    facts = tuple(TaskFacts(task, "plain", ("N", "V"), "accuracy", 9, 9) for task in config.tasks)
    guess = [["V", "V"] if row < wrong else labels for row, labels in enumerate(LABELS)]
    scores = tuple(score_task(task, "plain", LABELS, guess) for task in config.tasks)
    owners = (("a", "b"), ("a", "b"))
    learned = Relations(np.array([[1, 0.5], [0.5, 1]]), np.eye(2), np.zeros((16, 0)), 1.0)
    return finished(
        store,
        config,
        run_facts(tasks=facts, alignment=str(config.alignment), label_names=("N", "V"), label_owners=owners),
        Snapshot(10, 1.0, learned),
        SplitResult("test", 1, scores, {}, {}),
    )


def corpus(folder: Path, alignment: str) -> RunConfig:
    block = "".join(f"w {a} {a}\nx {b} {b}\n\n" for a, b in LABELS)
    named = corpus_folder(folder, {f"{split}.conll": block for split in ("train", "dev", "test")})
    return RunConfig.build(
        corpus=named, columns="tokens,a,b", tasks="a,b", paradigm="mrn", alignment=alignment
    )
