"""Predict the labels of a split, and score them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from core.config import RunConfig
from core.encoding.batches import AT_ONCE, IGNORED
from core.evaluation.scores import score_numbers
from core.evaluation.spans import Gold
from core.models.tagger import MultiTaskTagger
from core.records import SplitResult, TaskFacts, TaskScore
from core.training.setup import SplitData


@dataclass(frozen=True)
class Predicted:
    """Label numbers (N, T) of every word of a split, and each task's mean loss over labelled words (T,)."""

    numbers: NDArray[np.int64]
    losses: NDArray[np.float64]


@torch.inference_mode()
def predict(model: MultiTaskTagger, split: SplitData, device: torch.device) -> Predicted:
    """The most probable label of every word for every task: each word belongs to exactly one window."""
    model.eval()
    tasks = len(model.heads.slices)
    numbers = torch.full((len(split.labels), tasks), -1, dtype=torch.int64, device=device)
    sums = torch.zeros(tasks, dtype=torch.float64, device=device)
    counts = torch.zeros(tasks, dtype=torch.int64, device=device)
    for cpu_batch in split.batches.by_length(AT_ONCE[device.type]):
        batch = cpu_batch.to(device)
        logits = model(batch)
        batch_sums, batch_counts = model.losses(logits, batch)
        sums += batch_sums
        counts += batch_counts
        numbers[batch.words] = model.best(logits, batch)
    losses = torch.where(counts > 0, sums / counts, torch.nan)
    return Predicted(numbers.cpu().numpy(), losses.cpu().numpy())


@dataclass(frozen=True, eq=False)
class _Column:
    """A task on a split: its column of the predictions, the numbers (n,) of the words in sentences that it is
    annotated on, and their gold labels, those of its head first.
    """

    task: TaskFacts
    index: int
    words: NDArray[np.int64]
    gold: Gold

    def predictions(self, predicted: Predicted) -> NDArray[np.int64]:
        """The predicted label numbers (n,)."""
        numbers: NDArray[np.int64] = predicted.numbers[self.words, self.index]
        return numbers


class Scorer:
    """Scores predictions of one split, task by task, over the sentences that each task is annotated on.

    Gold labels are numbered once, since every epoch predicts the same words. Auxiliary tasks have no scores.
    A gold label that training never saw is an error, whatever was predicted.
    """

    def __init__(self, config: RunConfig, name: str, split: SplitData, facts: Sequence[TaskFacts]) -> None:
        self._score = partial(score_numbers, plain_score=config.pos_score)
        self._name = name
        self._columns = [
            _column(split, index, task) for index, task in enumerate(facts) if not task.auxiliary
        ]

    def headlines(self, predicted: Predicted) -> tuple[TaskScore, ...]:
        """Each task's score without details: enough for an epoch's curve."""
        return self._scores(predicted, details=False)

    def result(self, predicted: Predicted, epoch: int) -> SplitResult:
        """The scores with details, and the labels themselves."""
        gold = {column.task.name: _labels(column.gold, column.gold.numbers) for column in self._columns}
        labels = {
            column.task.name: _labels(column.gold, column.predictions(predicted)) for column in self._columns
        }
        return SplitResult(self._name, epoch, self._scores(predicted, details=True), labels, gold)

    def _scores(self, predicted: Predicted, *, details: bool) -> tuple[TaskScore, ...]:
        return tuple(
            self._score(
                column.task.name,
                column.task.scheme,
                column.gold,
                column.predictions(predicted),
                details=details,
            )
            for column in self._columns
        )


def _column(split: SplitData, index: int, task: TaskFacts) -> _Column:
    annotated = [task.name in sentence.labels for sentence in split.sentences]
    lengths = np.diff(split.text.sentences)
    words = np.flatnonzero(np.repeat(annotated, lengths))
    numbers, names = split.labels[words, index], task.labels
    if len(unseen := np.flatnonzero(numbers == IGNORED)):
        flat = [label for sentence in split.sentences for label in sentence.labels.get(task.name, ())]
        labels = [flat[place] for place in unseen.tolist()]
        names = (*names, *dict.fromkeys(labels))
        numbers[unseen] = list(map(names.index, labels))
    return _Column(task, index, words, Gold(names, numbers, lengths[annotated]))


def _labels(gold: Gold, numbers: NDArray[np.int64]) -> list[list[str]]:
    """The labels of each sentence."""
    flat = np.asarray(gold.names, dtype=object)[numbers].tolist()
    return [flat[start:end] for start, end in itertools.pairwise([0, *np.cumsum(gold.lengths).tolist()])]
