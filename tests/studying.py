"""A small study, and workers that train its runs at once, in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.corpora.types import Corpus
from core.evaluation.costs import Cost
from core.events import Sink, SplitResult
from core.store import Store
from core.studies import Method, Setting, Study
from core.studies.analysis import FinalScores, Result, analyse
from core.studies.study import DevByRun, with_runs
from jobs.worker.loop import Worker
from tests import making
from tests.making import OWNER, NoWorkers, run_facts, task_score
from tests.small_training import Ended, prepare

METHODS = (
    Method("mtl", "MTL", ({"paradigm": "mtl"},)),
    Method("stl", "STL", ({"paradigm": "stl"},)),
    Method("mrn", "MRN", tuple({"paradigm": "mrn", "lambda": strength} for strength in (0.01, 0.1, 1.0))),
)


def setting(name: str = "small", **base: Any) -> Setting:
    """All methods on two tasks of the demo corpus."""
    fields = {"corpus": "demo", "tasks": ("pos", "ner"), "alignment": "exact"}
    return Setting(name, name.capitalize(), "one", fields | base, ("pos", "ner"), ("mtl", "stl", "mrn"))


def study(*settings: Setting, **changes: Any) -> Study:
    """Three seeds, two of them for the choice."""
    made = Study("toy", "Toy", "Does it work?", settings or (setting(),), METHODS, "mtl", seeds=(1, 2, 3))
    return replace(made, **changes)


def score_of(run: RunConfig, split: str) -> float:
    """λ = 0.1 is best on dev, λ = 1 on test; seeds differ a little, and not all alike."""
    best = {"dev": 0.1, "test": 1.0}[split]
    gain = 0.0 if run.paradigm != "mrn" else 0.1 if run.lambda_ == best else 0.05
    return 0.6 + gain + run.seed / 100 + (gain * run.seed) / 50


def scored(run: RunConfig, split: str, score: Callable[[RunConfig, str], float] = score_of) -> SplitResult:
    """The scores of this run's tasks, and no predictions."""
    value = score(run, split)
    return SplitResult(split, 1, tuple(task_score(task, value, report={}) for task in run.tasks), {}, {})


def finished(
    store: Store,
    run: RunConfig,
    sweep: str | None = None,
    score: Callable[[RunConfig, str], float] = score_of,
) -> int:
    """A run that succeeded with these scores."""
    return making.finished(store, run, *(scored(run, split, score) for split in ("dev", "test")), sweep=sweep)


def train(config: RunConfig, corpus: Corpus, *, sink: Sink, checkpoint: Checkpoint, **_options: Any) -> Ended:
    """Scores, and nothing else."""
    facts = run_facts()
    sink(replace(facts, tasks=tuple(task for task in facts.tasks if task.name in config.tasks)))
    for split in ("dev", "test"):
        sink(scored(config, split))
    checkpoint.folder.mkdir(parents=True)
    return Ended(False, 1, 1)


class Workers(NoWorkers):
    """An engine whose workers train a few runs at once, in this process, whenever it is asked for workers."""

    def __init__(self, at_once: int = 3, **options: Any) -> None:
        super().__init__("here")
        self._at_once = at_once
        self._options: Mapping[str, Any] = {
            "prepare": prepare,
            "train": train,
            "log_to": lambda _path: contextlib.nullcontext(),
            "beat_s": 10,
        } | options

    def ensure_workers(self, store: Store) -> int:
        """Trains up to `at_once` queued runs; none is left running."""
        worker = Worker(store, OWNER, **self._options)
        with patch("jobs.worker.loop.release_memory"):  # these runs leave nothing, and it takes its time
            return sum(worker.train_next() for _ in range(self._at_once))


def result(study: Study, name: str, *, scores: dict[str, float], dev_best: float = 0.5) -> Result:
    """The setting, all runs finished: each task's score from `scores`, and dev best at λ = `dev_best`."""
    setting_runs = with_runs(study, next(setting for setting in study.settings if setting.name == name))
    runs = list(setting_runs.runs())
    dev = {run: dict.fromkeys(run.tasks, 0.8 + (run.lambda_ == dev_best) / 100) for run in runs}
    # On test another λ would be better.
    test = {run: {task: scores[task] + (run.lambda_ == 1.0) / 100 for task in run.tasks} for run in runs}
    costs = {run: Cost(108_000_000, 108_000_000, 2**31, 60.0, ("cuda",)) for run in runs}
    return analyse(setting_runs, DevByRun(dev), FinalScores(test, costs=costs))


PRINTED = {"ner": 0.9084, "chunk": 0.9149, "pos": 0.9400}
"""What the dissertation prints of MRN in its table 1."""
