"""Scores of one task on one split: span F1 for spans, token accuracy for plain labels.

Two F1 for spans, under two names. `f1_conll` is that of the conlleval script, comparable with published
tables: an I- that continues nothing opens a span. `f1_strict` counts only spans that IOB2 allows.
They are counted by `core.evaluation.span_counts`, and equal to seqeval's in default and strict mode.
`seqeval_f1` is what seqeval makes of POS tags (it reads NNP as prefix N and type NP); the dissertation's POS
tables hold it, and it serves for nothing else.

Scores are counted from labels' numbers: a training has them, and its gold labels are numbered once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from core.corpora.types import Scheme
from core.evaluation.gold import Gold, Ints, Labels, numbered
from core.evaluation.seqeval_spans import seqeval_spans
from core.evaluation.span_counts import Notation, SpanCounts, counts_by_type, f1_of
from core.training.events import TaskScore

__all__ = ["PlainScore", "score_name", "score_numbers", "score_task"]

PlainScore = Literal["accuracy", "seqeval_f1"]
Report = dict[str, dict[str, float]]


def score_name(scheme: str, plain_score: PlainScore = "accuracy") -> str:
    """The name of the headline score of a task of that scheme."""
    return "f1_conll" if scheme == "iob2" else plain_score


def score_task(
    task: str,
    scheme: Scheme | str,
    gold: Labels,
    predicted: Labels,
    *,
    plain_score: PlainScore = "accuracy",
    details: bool = True,
) -> TaskScore:
    """The scores of `predicted` against `gold`: a sequence of labels per sentence, the same lengths in both.

    See `score_numbers`. Raises ValueError where lengths differ.
    """
    _check_lengths(task, gold, predicted)
    known, guess = numbered(gold, predicted)
    return score_numbers(task, scheme, known, guess, plain_score=plain_score, details=details)


def score_numbers(
    task: str,
    scheme: Scheme | str,
    gold: Gold,
    predicted: Ints,
    *,
    plain_score: PlainScore = "accuracy",
    details: bool = True,
) -> TaskScore:
    """The scores of labels predicted for the words of `gold`, (N,) numbers of its names.

    All shares are in [0, 1]; where nothing can be counted (no span, no word) they are 0. Without `details`
    only the headline, accuracy and what comes with them for free are computed: enough for an epoch's curve.
    """
    right = gold.numbers == predicted
    accuracy = float(np.mean(right)) if right.size else 0.0
    name = score_name(scheme, plain_score)
    precision = recall = f1_conll = f1_strict = seqeval_f1 = None
    report: Report = {}
    if scheme == "iob2":
        counts = _span_counts(gold, predicted)
        precision, recall, f1_conll = f1_of(_all(counts))
        if details:
            f1_strict = f1_of(_all(_span_counts(gold, predicted, strict=True)))[2]
            report = _report(counts)
    else:
        if details or plain_score == "seqeval_f1":
            precision, recall, seqeval_f1 = _seqeval(gold, predicted)
            if plain_score == "accuracy":
                precision = recall = None
        if details:
            report = _label_report(gold, predicted)
    headlines = {"accuracy": accuracy, "f1_conll": f1_conll, "seqeval_f1": seqeval_f1}
    headline = headlines[name]
    assert headline is not None  # computed above for every name that score_name gives
    return TaskScore(
        task=task,
        score_name=name,
        score=headline,
        accuracy=accuracy,
        precision=precision,
        recall=recall,
        f1_conll=f1_conll,
        f1_strict=f1_strict,
        seqeval_f1=seqeval_f1,
        tokens=int(right.size),
        report=report,
    )


def _check_lengths(task: str, gold: Labels, predicted: Labels) -> None:
    if len(gold) != len(predicted):
        raise ValueError(f"{task}: {len(gold)} sentences of gold labels, {len(predicted)} of predicted ones")
    for number, (true, guess) in enumerate(zip(gold, predicted, strict=True), start=1):
        if len(true) != len(guess):
            raise ValueError(
                f"{task}, sentence {number}: {len(true)} gold labels and {len(guess)} predicted ones"
            )


def _span_counts(gold: Gold, predicted: Ints, *, strict: bool = False) -> Mapping[str, SpanCounts]:
    notation = Notation.of(gold.names)
    true, guess = (
        notation.spans(numbers, gold.first, strict=strict) for numbers in (gold.numbers, predicted)
    )
    return counts_by_type(notation.types, true, guess)


def _all(counts: Mapping[str, SpanCounts]) -> SpanCounts:
    return sum(counts.values(), SpanCounts(0, 0, 0))


def _report(counts: Mapping[str, SpanCounts]) -> Report:
    """A row per span type that is annotated or predicted, in the order of their names."""
    rows = {type_: (f1_of(own), own.gold) for type_, own in counts.items() if own.gold or own.predicted}
    return {
        type_: {"precision": precision, "recall": recall, "f1": f1, "support": support}
        for type_, ((precision, recall, f1), support) in rows.items()
    }


def _label_report(gold: Gold, predicted: Ints) -> Report:
    """A row per label that is annotated or predicted, in the order of their names."""
    true, labels = gold.numbers, len(gold.names)
    hits = np.bincount(true[true == predicted], minlength=labels)
    support = np.bincount(true, minlength=labels)
    guesses = np.bincount(predicted, minlength=labels)
    # A count of 0 divides a 0, so 1 in its place gives 0.
    precision = hits / np.maximum(guesses, 1)
    recall = hits / np.maximum(support, 1)
    f1 = 2 * hits / np.maximum(guesses + support, 1)
    return {
        label: {
            "precision": float(precision[place]),
            "recall": float(recall[place]),
            "f1": float(f1[place]),
            "support": int(support[place]),
        }
        for label, place in sorted(zip(gold.names, range(labels), strict=True))
        if support[place] or guesses[place]
    }


def _seqeval(gold: Gold, predicted: Ints) -> tuple[float, float, float]:
    """Micro-averaged precision, recall and F1 of what seqeval takes for spans, in default mode."""
    true, guess = seqeval_spans(gold, gold.numbers), seqeval_spans(gold, predicted)
    both = int(guess.among(true).sum())
    return f1_of(SpanCounts(len(true.end), len(guess.end), both))
