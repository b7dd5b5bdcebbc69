"""Small values of everything that a run records, and runs in every state, for tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core.config import RunConfig
from core.events import Snapshot, SplitResult, TaskScore
from core.metrics import TOTAL, EpochMetrics, StepMetrics
from core.mrn.relations import Relations
from core.store import Owner, RunState, Store

OWNER = Owner(host="here", pid=4242, process_started=1000.25, boot_id="boot-1")


def config(**values: Any) -> RunConfig:
    """An MRN run of the demo corpus."""
    defaults: dict[str, Any] = {"corpus": "demo", "tasks": ("pos", "ner")}
    return RunConfig.build(**(defaults | values))


def step_metrics(step: int, loss: float = 1.0) -> StepMetrics:
    """Four numbers of one step."""
    values = {("pos", "loss"): loss, ("ner", "loss"): loss / 2, (TOTAL, "loss"): loss, (TOTAL, "lr"): 1e-3}
    return StepMetrics(step, step / 10, step * 0.5, values)


def epoch_metrics(step: int, epoch: int, score: float) -> EpochMetrics:
    """The dev scores after one epoch."""
    return EpochMetrics(step, epoch, step * 0.5, {("pos", "score"): score, (TOTAL, "score"): score})


def relations(seed: int = 0, tasks: int = 2, labels: int = 4, features: int = 16, rank: int = 3) -> Relations:
    """Random covariances."""
    draw = np.random.default_rng(seed)
    task, label = draw.normal(size=(tasks, tasks)), draw.normal(size=(labels, labels))
    factor = draw.normal(size=(features, rank))
    return Relations(
        task @ task.T + np.eye(tasks), label @ label.T + np.eye(labels), factor, feature_diagonal=0.1
    )


def snapshot(step: int, seed: int = 0) -> Snapshot:
    """Random covariances at a step."""
    return Snapshot(step, step / 10, relations(seed))


def task_score(task: str, score: float, **values: Any) -> TaskScore:
    """A score of a task with plain labels."""
    defaults: dict[str, Any] = {
        "task": task,
        "score_name": "accuracy",
        "score": score,
        "figures": {"accuracy": score, "seqeval_f1": 0.5},
        "tokens": 3,
        "report": {"NN": {"precision": 1.0, "recall": 0.5, "f1": math.nan, "support": 2}},
    }
    return TaskScore(**(defaults | values))


def split_result(split: str, score: float = 0.75, epoch: int = 2) -> SplitResult:
    """Scores and predictions of two sentences and two tasks."""
    gold = {"pos": [["NN", "VB"], ["NN"]], "ner": [["O", "B-PER"], ["O"]]}
    predicted = {"pos": [["NN", "NN"], ["NN"]], "ner": [["O", "O"], ["O"]]}
    return SplitResult(
        split, epoch, (task_score("pos", score), task_score("ner", score / 2)), predicted, gold
    )


def claimed(store: Store, state: RunState = RunState.RUNNING, **values: Any) -> int:
    """A new run, brought to that state by the moves of its life, its only owner OWNER."""
    (run_id,) = store.add_runs([config(**values)])
    if state is RunState.QUEUED:
        return run_id
    while (run := store.claim(OWNER)) is not None and run.id != run_id:
        pass
    if state is RunState.CANCELLING:
        store.request_stop(run_id)
    elif state is RunState.CANCELLED:
        store.request_stop(run_id)
        store.finish(run_id, RunState.CANCELLED)
    elif state is RunState.LOST:
        store.mark_lost(run_id, "It went away.")
    elif state is not RunState.RUNNING:
        store.finish(run_id, state)
    return run_id
