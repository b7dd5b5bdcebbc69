"""Scores of one task on one split: span F1 for spans, token accuracy for plain labels (spec/mrn.md, Scoring).

Two F1 for spans, under two names. `f1_conll` is that of the conlleval script, comparable with published
tables: an I- that continues nothing opens a span. `f1_strict` counts only spans that IOB2 allows.
They are counted by `core.evaluation.span_counts`, and equal to seqeval's in default and strict mode.
`seqeval_f1` is what seqeval makes of POS tags (it reads NNP as prefix N and type NP); the dissertation's POS
tables hold it, and it serves for nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.corpora.types import Scheme
from core.errors import MRNLabError
from core.evaluation.span_counts import SpanCounts, f1_of, span_counts
from core.training.events import TaskScore

__all__ = ["PlainScore", "score_name", "score_task"]

PlainScore = Literal["accuracy", "seqeval_f1"]
Labels = Sequence[Sequence[str]]
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

    All shares are in [0, 1]; where nothing can be counted (no span, no word) they are 0. Without `details`
    only the headline, accuracy and what comes with them for free are computed: enough for an epoch's curve.

    Raises ValueError where lengths differ, MRNLabError where seqeval is needed and absent.
    """
    _check_lengths(task, gold, predicted)
    flat_gold = np.array([label for labels in gold for label in labels], dtype=object)
    flat_predicted = np.array([label for labels in predicted for label in labels], dtype=object)
    accuracy = float(np.mean(flat_gold == flat_predicted)) if flat_gold.size else 0.0
    name = score_name(scheme, plain_score)
    precision = recall = f1_conll = f1_strict = seqeval_f1 = None
    report: Report = {}
    if scheme == "iob2":
        counts = span_counts(gold, predicted)
        precision, recall, f1_conll = f1_of(_all(counts))
        if details:
            f1_strict = f1_of(_all(span_counts(gold, predicted, strict=True)))[2]
            report = _report(counts)
    else:
        if details or plain_score == "seqeval_f1":
            precision, recall, seqeval_f1 = _seqeval(gold, predicted)
            if plain_score == "accuracy":
                precision = recall = None
        if details:
            report = _label_report(flat_gold, flat_predicted)
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
        tokens=int(flat_gold.size),
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


def _all(counts: Mapping[str, SpanCounts]) -> SpanCounts:
    return sum(counts.values(), SpanCounts(0, 0, 0))


def _report(counts: Mapping[str, SpanCounts]) -> Report:
    """A row per span type that is annotated or predicted, in the order of their names."""
    rows = {type_: (f1_of(own), own.gold) for type_, own in counts.items()}
    return {
        type_: {"precision": precision, "recall": recall, "f1": f1, "support": support}
        for type_, ((precision, recall, f1), support) in rows.items()
    }


def _label_report(gold: NDArray[np.object_], predicted: NDArray[np.object_]) -> Report:
    """A row per label that is annotated or predicted, in the order of their names."""
    if not gold.size:
        return {}
    labels, codes = np.unique(np.concatenate([gold, predicted]).astype(str), return_inverse=True)
    true, guess = codes[: gold.size], codes[gold.size :]
    hits = np.bincount(true[true == guess], minlength=len(labels))
    support = np.bincount(true, minlength=len(labels))
    guesses = np.bincount(guess, minlength=len(labels))
    # A count of 0 divides a 0, so 1 in its place gives 0.
    precision = hits / np.maximum(guesses, 1)
    recall = hits / np.maximum(support, 1)
    f1 = 2 * hits / np.maximum(guesses + support, 1)
    return {
        str(label): {
            "precision": float(precision[place]),
            "recall": float(recall[place]),
            "f1": float(f1[place]),
            "support": int(support[place]),
        }
        for place, label in enumerate(labels)
    }


def _seqeval(gold: Labels, predicted: Labels) -> tuple[float, float, float]:
    """Micro-averaged precision, recall and F1 of what seqeval takes for spans, in default mode."""
    if not any(map(len, gold)):
        return 0.0, 0.0, 0.0
    _need_seqeval()
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

    with warnings.catch_warnings():
        # It warns of each POS tag; that it misreads them is known, and wanted here.
        warnings.filterwarnings("ignore", message=".* seems not to be NE tag", category=UserWarning)
        precision, recall, f1, _ = precision_recall_fscore_support(
            _lists(gold), _lists(predicted), average="micro", zero_division=0
        )
    return float(precision), float(recall), float(f1)


def _need_seqeval() -> None:
    if find_spec("seqeval") is None:
        raise MRNLabError("Scoring needs the package seqeval; install it with: pip install seqeval")


def _lists(labels: Labels) -> list[list[str]]:
    """seqeval takes lists only."""
    return [list(one) for one in labels]
