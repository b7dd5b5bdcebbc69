"""Runs with scores, and their table, for tests of what Compare says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from core.config import RunConfig
from core.results.table import ResultTable, tabulate
from core.store import Store
from core.store.types import Run, RunState, StoredScore
from core.tasks.scores import Report

TASKS = ("pos", "ner")


def config(paradigm: str = "mrn", seed: int = 1, **more: Any) -> RunConfig:
    """A run of the demo corpus over a frozen encoder."""
    tasks = more.pop("tasks", ("pos",) if paradigm == "stl" else TASKS)
    values = {"corpus": "demo", "encoder_training": "frozen", **more}
    return RunConfig.build(paradigm=paradigm, seed=seed, tasks=tasks, **values)


def score(
    run_id: int, task: str, value: float, split: str = "test", report: Report | None = None
) -> StoredScore:
    """A stored score of that value."""
    name = "f1_conll" if task == "ner" else "accuracy"
    figures = dict.fromkeys(("accuracy", "precision", "recall", "f1_conll", "f1_strict"), value)
    return StoredScore(
        task, name, value, 10, figures, report=report or {}, run_id=run_id, split=split, epoch=1
    )


def succeeded(configs: Sequence[RunConfig]) -> list[Run]:
    """Runs of these configurations that have succeeded."""
    store = Store.open("sqlite://")
    runs = [store.run(run_id) for run_id in store.add_runs(configs)]
    return [replace(run, state=RunState.SUCCEEDED) for run in runs]


def tabled(
    values: dict[RunConfig, float], tasks: tuple[str, ...] = ("ner",)
) -> tuple[list[Run], ResultTable]:
    """Runs of these configurations, with that score on their tasks."""
    runs = succeeded(list(values))
    scores = [
        score(run.id, task, value, split)
        for run, value in zip(runs, values.values(), strict=True)
        for task in run.config.tasks
        if task in tasks
        for split in ("test", "dev")
    ]
    return runs, tabulate(runs, scores, "test", tasks)
