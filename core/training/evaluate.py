"""Predict the labels of a split, and score them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from core.config import RunConfig
from core.encoding.batches import IGNORED, SUBWORDS_TO_PREDICT
from core.events import SplitResult, TaskFacts, TaskScore
from core.models.encoders.transformer import in_float32
from core.models.tagger import MultiTaskTagger
from core.tasks import KINDS, TaskKind
from core.tasks.packed import Packed
from core.tasks.scores import PlainScore
from core.tasks.spans import labels_by_sentence
from core.training.data import SplitData, labelled_items


@dataclass(frozen=True)
class Predicted:
    """The predictions of a split: label numbers (N, T), or predicted numbers, of every word or text.

    Also each task's mean loss over the labelled ones (T,).
    """

    numbers: NDArray[Any]
    losses: NDArray[np.float64]


@torch.inference_mode()
def predict(model: MultiTaskTagger, split: SplitData, device: torch.device) -> Predicted:
    """The most probable label of every word for every task: each word belongs to exactly one window.

    Computed in float32, as the saved model tags.
    """
    model.eval()
    tasks = model.tasks
    number = torch.int64 if split.batches.scores is None else torch.float64
    numbers = torch.full((len(split.labels), tasks), -1, dtype=number, device=device)
    sums = torch.zeros(tasks, dtype=torch.float64, device=device)
    counts = torch.zeros(tasks, dtype=torch.int64, device=device)
    with in_float32(model):
        for cpu_batch in split.batches.by_length(SUBWORDS_TO_PREDICT[device.type]):
            batch = cpu_batch.to(device)
            logits = model(batch)
            batch_sums, batch_counts = model.losses(logits, batch)
            sums += batch_sums
            counts += batch_counts
            best = model.best(logits, batch).to(number)
            if batch.tasks is None:
                numbers[batch.words] = best
            else:  # each word as read for its task
                read_for = batch.tasks.repeat_interleave(cpu_batch.counts.to(device))
                numbers[batch.words, read_for] = best.gather(1, read_for[:, None])[:, 0]
    losses = torch.where(counts > 0, sums / counts, torch.nan)
    return Predicted(numbers.cpu().numpy(), losses.cpu().numpy())


@dataclass(frozen=True, eq=False)
class _Column:
    """A task on a split: its column of the predictions, and its annotated words with their gold labels.

    The words are numbers (n,) in the sentences that it is annotated on; gold labels have the head's first.
    """

    task: TaskFacts
    index: int
    words: NDArray[np.int64]
    gold: Packed

    @property
    def kind(self) -> TaskKind:
        return KINDS[self.task.scheme]

    def predictions(self, predicted: Predicted) -> NDArray[Any]:
        """The predicted label numbers, or numbers (n,)."""
        numbers: NDArray[Any] = predicted.numbers[self.words, self.index]
        return numbers if self.kind.is_number else numbers.astype(np.int64)

    def perfect_score(self, plain_score: PlainScore) -> TaskScore:
        gold, own = self.gold, self.gold.numbers
        if self.kind.is_number:
            own = np.array(list(map(float, gold.names)))[own]
        return self.kind.score(self.task.name, gold, own, plain_score, details=False)


class Scorer:
    """Scores predictions of one split, task by task, over the sentences that each task is annotated on.

    Gold labels are numbered once, since every epoch predicts the same words. Auxiliary tasks have no scores.
    A gold label that training never saw is an error, whatever was predicted.
    """

    def __init__(self, config: RunConfig, name: str, split: SplitData, facts: Sequence[TaskFacts]) -> None:
        self._plain_score = config.pos_score
        self._name = name
        self._columns = [
            _column(split, index, task) for index, task in enumerate(facts) if not task.auxiliary
        ]

    @property
    def has_labels(self) -> bool:
        """Whether the split is annotated for any task."""
        return any(len(column.words) for column in self._columns)

    @property
    def has_defined(self) -> bool:
        """Whether some prediction gives the task a defined score."""
        return len(self.undefined) < len(self._columns)

    @cached_property
    def undefined(self) -> Mapping[str, str]:
        """By task why its score on this split is undefined for every prediction."""
        perfect = {column.task.name: column.perfect_score(self._plain_score) for column in self._columns}
        where = f"the {self._name} split"
        return {
            task: score.undefined_because(where) for task, score in perfect.items() if not score.is_defined
        }

    def headlines(self, predicted: Predicted) -> tuple[TaskScore, ...]:
        """Each task's score without details: enough for an epoch's curve."""
        return self._scores(predicted, details=False)

    def result(self, predicted: Predicted, epoch: int) -> SplitResult:
        """The scores with details, and the labels themselves."""
        gold = {
            column.task.name: labels_by_sentence(column.gold, column.gold.numbers) for column in self._columns
        }
        labels = {
            column.task.name: column.kind.written(column.gold, column.predictions(predicted))
            for column in self._columns
        }
        return SplitResult(self._name, epoch, self._scores(predicted, details=True), labels, gold)

    def _scores(self, predicted: Predicted, *, details: bool) -> tuple[TaskScore, ...]:
        return tuple(
            column.kind.score(
                column.task.name,
                column.gold,
                column.predictions(predicted),
                self._plain_score,
                details=details,
            )
            for column in self._columns
        )


def _column(split: SplitData, index: int, task: TaskFacts) -> _Column:
    labels = split.sentences.column(task.name).rows
    words = labelled_items(split.sentences, task.name)
    numbers, names = split.labels[words, index], task.labels
    if KINDS[task.scheme].is_number:
        names, numbers = tuple(labels.names), labels.numbers.astype(np.int64)
    elif len(unseen := np.flatnonzero(numbers == IGNORED)):
        unknown = [labels.names[number] for number in labels.numbers[unseen].tolist()]
        names = (*names, *dict.fromkeys(unknown))
        numbers[unseen] = list(map(names.index, unknown))
    return _Column(task, index, words, Packed(names, numbers, labels.offsets))
