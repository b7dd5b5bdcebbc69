"""The kinds of tasks: their labelled items, the order of their labels, their scores and their mistakes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from core.tasks.confusion import (
    Confusion,
    Mistake,
    label_confusion,
    label_mistakes,
    span_confusion,
    span_mistakes,
)
from core.tasks.packed import Packed
from core.tasks.schemes import Scheme, span_order, violations
from core.tasks.scores import (
    PEARSON,
    SECONDARY_SCORES,
    Floats,
    PlainScore,
    TaskScore,
    averages,
    label_score,
    number_score,
    span_score,
)
from core.tasks.spans import Ints, Labels, labels_by_sentence, numbered

Reads = Literal["words", "sentence", "text", "pair"]
Predictions = NDArray[Any]
"""Predictions for N items: label numbers, or the numbers themselves."""


@dataclass(frozen=True)
class TaskFacts:
    """One task as this run has it: labels in the order of the head's rows, and the counts of the data.

    An `auxiliary` task is annotated on training sentences only, and has no scores. `train_tokens` counts what
    has a label of it in training. `scale` are the ends of the training scores of a task of numbers.
    """

    name: str
    scheme: str
    labels: tuple[str, ...]
    score_name: str
    train_sentences: int
    train_tokens: int
    unseen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    illegal: Mapping[str, int] = field(default_factory=dict)
    auxiliary: bool = False
    scale: tuple[float, float] | None = None


class TaskKind(ABC):
    """A kind of task. `scheme` is its stored name.

    reads       what has a label: each word of a sentence, a whole sentence of words, a text, or two texts
    item        one of what is counted: word, sentence, text or pair; `items` is the plural
    examples    what a corpus consists of, in the plural: sentences, texts or pairs
    has_spans   labels are IOB2 tags of spans
    is_number   what is predicted is a number and no label
    role        what the reading report stores that a column of this kind was read as; `role_title` in words
    secondary   the names of the figures that are shown beside the headline
    """

    scheme: ClassVar[Scheme]
    title: ClassVar[str]
    role: ClassVar[str]
    role_title: ClassVar[str]
    reads: ClassVar[Reads] = "words"
    has_spans: ClassVar[bool] = False
    is_number: ClassVar[bool] = False
    secondary: ClassVar[tuple[str, ...]] = ()

    @property
    def item(self) -> str:
        return "word" if self.reads == "words" else self.reads

    @property
    def items(self) -> str:
        return f"{self.item}s"

    @property
    def examples(self) -> str:
        return "sentences" if self.reads == "words" else self.items

    @property
    def row_title(self) -> str:
        """The title of a row of a report by label."""
        return "Type" if self.has_spans else "Label"

    def score_name(self, plain_score: PlainScore = "accuracy") -> str:
        """The name of the headline score. `plain_score` is the run's choice for labels of words."""
        return "accuracy"

    def rows(self, labels: Iterable[str]) -> tuple[str, ...]:
        """The rows of a head, from all labels that occur."""
        return tuple(sorted(set(labels)))

    def forbidden(self, column: Packed) -> int:
        """How many labels the scheme forbids in their places."""
        return 0

    def number(self, rows: Sequence[str]) -> Callable[[str], int | None]:
        """The function that gives a label's row among the rows of the head; None where it has none."""
        return {label: row for row, label in enumerate(rows)}.get

    def scale(self, column: Packed) -> tuple[float, float] | None:
        """The least and the greatest of these numbers; None where labels are none, or there are no labels."""
        return None

    @abstractmethod
    def score(
        self, task: str, gold: Packed, predicted: Predictions, plain_score: PlainScore, *, details: bool
    ) -> TaskScore:
        """The scores of predictions (N,) for the N items of `gold`. Without `details` only the headline."""

    def secondary_scores(self, score: TaskScore) -> dict[str, float | None]:
        """The scores that are shown beside the headline, by title."""
        return {SECONDARY_SCORES[name].title: score.secondary(name) for name in self.secondary}

    def read(self, gold: Labels, predicted: Labels) -> tuple[Packed, Predictions]:
        """Labels of sentences, gold and predicted, in the form of `score`'s arguments.

        Raises ValueError for lengths that differ.
        """
        return numbered(gold, predicted)

    def written(self, gold: Packed, predicted: Predictions) -> list[list[str]]:
        """Predictions (N,) as text, sentence by sentence."""
        return labels_by_sentence(gold, predicted)

    def confusion(self, gold: Labels, predicted: Labels) -> Confusion | None:
        """The matrix of gold and predicted labels; None where no labels can be confused."""
        return label_confusion(gold, predicted)

    def mistakes(self, gold: Sequence[str], predicted: Sequence[str]) -> list[Mistake]:
        """The places where a sentence's predicted labels are not the gold ones."""
        return label_mistakes(gold, predicted)


class Spans(TaskKind):
    scheme = "iob2"
    title = "Spans"
    role = "spans"
    role_title = "spans of words"
    has_spans = True
    secondary = ("precision", "recall", "f1_strict", "accuracy")

    def score_name(self, plain_score: PlainScore = "accuracy") -> str:
        return "f1_conll"

    def rows(self, labels: Iterable[str]) -> tuple[str, ...]:
        return span_order(labels)

    def forbidden(self, column: Packed) -> int:
        return violations(column)

    def score(
        self, task: str, gold: Packed, predicted: Ints, plain_score: PlainScore, *, details: bool
    ) -> TaskScore:
        return span_score(task, gold, predicted, details=details)

    def confusion(self, gold: Labels, predicted: Labels) -> Confusion:
        return span_confusion(gold, predicted)

    def mistakes(self, gold: Sequence[str], predicted: Sequence[str]) -> list[Mistake]:
        return span_mistakes(gold, predicted)


class WordLabels(TaskKind):
    scheme = "plain"
    title = "Labels of words"
    role = "labels"
    role_title = "labels of words"
    secondary = ("precision", "recall", "accuracy")

    def score_name(self, plain_score: PlainScore = "accuracy") -> str:
        return plain_score

    def score(
        self, task: str, gold: Packed, predicted: Ints, plain_score: PlainScore, *, details: bool
    ) -> TaskScore:
        return label_score(task, gold, predicted, plain_score=plain_score, details=details)


class _TextTask(TaskKind):
    """Labels of whole texts."""

    def score(
        self, task: str, gold: Packed, predicted: Ints, plain_score: PlainScore, *, details: bool
    ) -> TaskScore:
        return label_score(task, gold, predicted, details=details)

    def secondary_scores(self, score: TaskScore) -> dict[str, float | None]:
        return {"Macro F1": averages(score).get("macro", {}).get("f1")}


class SentenceLabels(_TextTask):
    """Labels of sentences of words, as the intent of a request beside its slots."""

    scheme = "sentence"
    title = "Label of a sentence"
    role = "sentence label"
    role_title = "label of a sentence"
    reads = "sentence"


class TextLabels(_TextTask):
    scheme = "text"
    title = "Label of a text"
    role = "text label"
    role_title = "label of a text"
    reads = "text"


class PairLabels(_TextTask):
    scheme = "pair"
    title = "Label of a pair of texts"
    role = "pair label"
    role_title = "label of a pair"
    reads = "pair"


class PairScores(TaskKind):
    scheme = "score"
    title = "Number of a pair of texts"
    role = "number"
    role_title = "number of a pair"
    reads = "pair"
    is_number = True
    secondary = ("spearman",)

    def score_name(self, plain_score: PlainScore = "accuracy") -> str:
        return PEARSON

    def rows(self, labels: Iterable[str]) -> tuple[str, ...]:
        return ("score",)

    def number(self, rows: Sequence[str]) -> Callable[[str], int | None]:
        return lambda text: 0

    def scale(self, column: Packed) -> tuple[float, float] | None:
        numbers = list(map(float, column.counts()))
        return (min(numbers), max(numbers)) if numbers else None

    def score(
        self, task: str, gold: Packed, predicted: Floats, plain_score: PlainScore, *, details: bool
    ) -> TaskScore:
        return number_score(task, np.array(list(map(float, gold.names)))[gold.numbers], predicted)

    def read(self, gold: Labels, predicted: Labels) -> tuple[Packed, Predictions]:
        packed, _ = numbered(gold, predicted)
        return packed, np.array([float(text) for row in predicted for text in row])

    def written(self, gold: Packed, predicted: Predictions) -> list[list[str]]:
        return [[f"{value:.9g}"] for value in predicted.tolist()]

    def confusion(self, gold: Labels, predicted: Labels) -> None:
        return None

    def mistakes(self, gold: Sequence[str], predicted: Sequence[str]) -> list[Mistake]:
        return []


KINDS: dict[str, TaskKind] = {
    kind.scheme: kind
    for kind in (Spans(), WordLabels(), SentenceLabels(), TextLabels(), PairLabels(), PairScores())
}
"""By stored name."""


def kind_of(tasks: Iterable[TaskFacts], task: str, score_name: str) -> TaskKind:
    """The kind of a task among the stored tasks of its run; without it the first with that headline."""
    for facts in tasks:
        if facts.name == task:
            return KINDS[facts.scheme]
    return next((kind for kind in KINDS.values() if kind.score_name() == score_name), KINDS["plain"])


def tasks_reading(schemes: Mapping[str, str], *reads: Reads) -> dict[str, str]:
    """The tasks that read one of `reads`, each with its stored kind."""
    return {task: scheme for task, scheme in schemes.items() if KINDS[scheme].reads in reads}


def score_task(
    task: str,
    scheme: str,
    gold: Labels,
    predicted: Labels,
    *,
    plain_score: PlainScore = "accuracy",
    details: bool = True,
) -> TaskScore:
    """The scores of `predicted` against `gold`: the labels of each sentence, the same lengths in both.

    Raises ValueError where lengths differ.
    """
    kind = KINDS[scheme]
    return kind.score(task, *kind.read(gold, predicted), plain_score, details=details)
