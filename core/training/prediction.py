"""Predict a split and score it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from core.config import RunConfig
from core.evaluation.scores import score_task
from core.models.tagger import MultiTaskTagger
from core.training.data import SplitData
from core.training.events import SplitResult, TaskFacts

__all__ = ["Predicted", "predict", "score"]

_TIMES = 4
"""Batches as many times as large as in training: no gradients are kept."""


@dataclass(frozen=True)
class Predicted:
    """Label numbers (N, T) of every word of a split, and each task's mean loss over labelled words (T,)."""

    numbers: NDArray[np.int64]
    losses: NDArray[np.float64]


@torch.no_grad()
def predict(model: MultiTaskTagger, split: SplitData, device: torch.device) -> Predicted:
    """The most probable label of every word for every task: each belongs to one window, none is left out."""
    model.eval()
    tasks = len(model.heads.slices)
    numbers = torch.full((len(split.labels), tasks), -1, dtype=torch.int64, device=device)
    sums = torch.zeros(tasks, dtype=torch.float64, device=device)
    counts = torch.zeros(tasks, dtype=torch.int64, device=device)
    for batch in split.batches.by_length(_TIMES):
        moved = batch.to(device)
        logits = model(moved)
        task_sums, task_counts = model.losses(logits, moved.labels)
        sums += task_sums
        counts += task_counts
        best = [logits[:, rows].argmax(dim=1) for rows in model.heads.slices]
        numbers[moved.words] = torch.stack(best, dim=1)
    losses = torch.where(counts > 0, sums / counts, torch.nan)
    return Predicted(numbers.cpu().numpy(), losses.cpu().numpy())


def score(
    config: RunConfig,
    name: str,
    split: SplitData,
    facts: Sequence[TaskFacts],
    predicted: Predicted,
    epoch: int,
    *,
    details: bool = True,
) -> SplitResult:
    """The scores of a prediction, task by task, over the sentences that each task is annotated on.

    Auxiliary tasks have none.
    Labels are compared by name: a gold label that training never saw is an error, whatever was predicted.
    Without `details` only the headlines, which is enough for an epoch's curve.
    """
    starts = split.text.sentences
    scores, golds, guesses = [], {}, {}
    for index, task in enumerate(facts):
        if task.auxiliary:
            continue
        names = np.asarray(task.labels, dtype=object)
        labelled = [k for k, sentence in enumerate(split.sentences) if task.name in sentence.labels]
        words = names[predicted.numbers[:, index]]
        guess = [words[starts[k] : starts[k + 1]].tolist() for k in labelled]
        gold = [list(split.sentences[k].labels[task.name]) for k in labelled]
        golds[task.name], guesses[task.name] = gold, guess
        scores.append(
            score_task(task.name, task.scheme, gold, guess, plain_score=config.pos_score, details=details)
        )
    return SplitResult(name, epoch, tuple(scores), guesses, golds)
