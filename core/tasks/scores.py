"""Scores of one task on one split: span F1, accuracy of labels, correlation of numbers.

Two F1 for spans, under two names. `f1_conll` is that of the conlleval script, comparable with published
tables: an I- that continues nothing opens a span. `f1_strict` counts only spans that IOB2 allows.
They are counted from label numbers after every epoch, and equal seqeval's in default and strict mode. The
report by span type of a finished run is seqeval's own. `seqeval_f1` is what seqeval makes of POS tags (it
reads NNP as prefix N and type NP), as the dissertation's POS tables have it.

A score that is 0/0 is undefined: NaN, and never 0. That of spans is undefined where no span is annotated,
whatever was predicted, since it says nothing of a model; that of labels where nothing is annotated; a
correlation where the annotated or the predicted numbers are all the same. Where spans are annotated and none
is found, F1 is 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.config.typed import whole_number
from core.tasks.packed import Packed
from core.tasks.spans import (
    FlatSpans,
    Ints,
    Labels,
    f1_of,
    labels_by_sentence,
    numbered,
    seqeval_spans,
    span_counts,
    span_pair,
)
from core.wording import percent

PEARSON = "pearson"
"""The headline score of numbers."""


@dataclass(frozen=True)
class SecondaryScore:
    """A score that is kept beside the headline: the title of its column, and its range up to 1."""

    title: str
    least: float = 0.0


SECONDARY_SCORES: Mapping[str, SecondaryScore] = {
    "accuracy": SecondaryScore("Accuracy"),
    "precision": SecondaryScore("Precision"),
    "recall": SecondaryScore("Recall"),
    "f1_conll": SecondaryScore("F1"),
    "f1_strict": SecondaryScore("Strict F1"),
    "seqeval_f1": SecondaryScore("seqeval F1"),
    "spearman": SecondaryScore("Spearman", least=-1.0),
}
"""By stored name. Store, exports, records, JSON and pages take every figure from here."""
PlainScore = Literal["accuracy", "seqeval_f1"]
Report = dict[str, dict[str, float]]
Floats = NDArray[np.float64]
REPORT_NUMBERS = ("precision", "recall", "f1", "support")
_SEQEVAL = ("precision", "recall", "f1-score", "support")
_AVERAGES = ("micro avg", "macro avg", "weighted avg")


@dataclass(frozen=True)
class TaskScore:
    """The scores of one task on one split: the headline, and the `figures` of its kind, by name.

    `score_name` names the headline: `f1_conll` for spans, `accuracy` or `seqeval_f1` for labels, `pearson`
    for numbers. Shares are in [0, 1], correlations in [-1, 1]. `tokens` counts the words, texts or pairs that
    were scored. `report` has a row per span type or label: precision, recall, f1, support; where the support
    is 0 the others are undefined (`report_rows`), though seqeval has 0 for them. An undefined score is NaN.
    """

    task: str
    score_name: str
    score: float
    tokens: int
    figures: Mapping[str, float] = field(default_factory=dict)
    report: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def secondary(self, name: str) -> float | None:
        """The figure of that name (one of SECONDARY_SCORES); None where this kind of task has none."""
        return self.figures.get(name)

    @property
    def is_defined(self) -> bool:
        """Whether the headline is a number, and no 0/0."""
        return math.isfinite(self.score)

    def undefined_because(self, where: str) -> str:
        """Why the headline is undefined, where it is: `the dev split has no span of this task`.

        `where` is what was scored: `the dev split`, `the file`.
        """
        if not self.tokens:
            return f"{where} has no label of this task"
        if self.score_name == PEARSON:
            return f"the numbers of {where}, or those predicted, are all the same"
        return f"{where} has no span of this task"


def span_score(task: str, gold: Packed, predicted: Ints, *, details: bool) -> TaskScore:
    """The span F1 of labels predicted for the words of `gold`, (N,) numbers of its names.

    All shares are in [0, 1], or undefined. Without `details` only the headline, accuracy and what comes with
    them for free are computed: enough for an epoch's curve.
    """
    types, *spans = span_pair(gold, predicted)
    counts = span_counts(types, *spans)
    precision, recall, f1_conll = _defined_f1(*counts.sum(axis=0).tolist())
    figures = {
        "accuracy": _accuracy(gold, predicted),
        "precision": precision,
        "recall": recall,
        "f1_conll": f1_conll,
    }
    report: Report = {}
    if details:
        strict = span_counts(*span_pair(gold, predicted, strict=True))
        figures["f1_strict"] = _defined_f1(*strict.sum(axis=0).tolist())[2]
        if find_spec("seqeval") is None:  # a bare GPU machine: the same figures
            report = counted_report(types, counts)
        elif counts.any():
            report = _span_report(gold, predicted)
    return TaskScore(task, "f1_conll", f1_conll, len(predicted), figures, report)


def label_score(
    task: str, gold: Packed, predicted: Ints, *, plain_score: PlainScore = "accuracy", details: bool
) -> TaskScore:
    """The accuracy of labels, or seqeval's F1 where `plain_score` asks for it. See `span_score`."""
    figures = {"accuracy": _accuracy(gold, predicted)}
    if details or plain_score == "seqeval_f1":
        precision, recall, figures["seqeval_f1"] = _seqeval(gold, predicted)
        if plain_score == "seqeval_f1":
            figures |= {"precision": precision, "recall": recall}
    report = counted_report(gold.names, _label_counts(gold, predicted)) if details else {}
    return TaskScore(task, plain_score, figures[plain_score], len(predicted), figures, report)


def number_score(task: str, gold: Floats, predicted: Floats) -> TaskScore:
    """Pearson's correlation of predicted numbers (N,) with the gold ones, and Spearman's beside it."""
    pearson, spearman = (
        float(score_of_counts(_products(*map(_centred, pair)).sum(axis=0)))
        for pair in ((gold, predicted), (_ranks(gold), _ranks(predicted)))
    )
    return TaskScore(task, PEARSON, pearson, len(predicted), {"spearman": spearman})


def _centred(values: Floats, centre: float | None = None) -> Floats:
    """The values less their mean, or less `centre`: sums of squares of large numbers lose their digits.

    Values that differ by rounding alone are all 0.
    """
    if not len(values):
        return values
    centred = values - (np.mean(values) if centre is None else centre)
    return centred if np.ptp(values) > _ROUNDING * np.max(np.abs(values)) else np.zeros_like(values)


def _defined_f1(gold: int, predicted: int, both: int) -> tuple[float, float, float]:
    """Precision, recall and F1; all undefined where nothing is annotated."""
    return f1_of(gold, predicted, both) if gold else (math.nan,) * 3


def _accuracy(gold: Packed, predicted: Ints) -> float:
    return float(np.mean(gold.numbers == predicted)) if predicted.size else math.nan


def _ranks(values: Floats) -> Floats:
    """The ranks of the values, from 0; equal values share their mean rank."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(sizes) - (sizes + 1) / 2)[group]


def _span_report(gold: Packed, predicted: Ints) -> Report:
    """A row per span type that is annotated or predicted, in the order of their names, by seqeval."""
    from seqeval.metrics import classification_report  # it imports scikit-learn, which takes a second

    labels = (labels_by_sentence(gold, numbers) for numbers in (gold.numbers, predicted))
    rows = classification_report(*labels, output_dict=True, zero_division=0)
    return {
        type_: {number: row[name].item() for number, name in zip(REPORT_NUMBERS, _SEQEVAL, strict=True)}
        for type_, row in rows.items()
        if type_ not in _AVERAGES
    }


def counted_report(names: Sequence[str], counts: Ints) -> Report:
    """A row per name that is annotated or predicted, by name. `counts` (C, 3) are as in `span_counts`."""
    return {
        name: dict(zip(REPORT_NUMBERS, (*f1_of(gold, predicted, both), gold), strict=True))
        for name, (gold, predicted, both) in sorted(zip(names, counts.tolist(), strict=True))
        if gold or predicted
    }


def _label_counts(gold: Packed, predicted: Ints) -> Ints:
    """(labels, 3): how many words have each label annotated, predicted, and both."""
    columns = (gold.numbers, predicted, predicted[gold.numbers == predicted])
    return np.stack([np.bincount(numbers, minlength=len(gold.names)) for numbers in columns], axis=1)


def _seqeval(gold: Packed, predicted: Ints) -> tuple[float, float, float]:
    """Micro-averaged precision, recall and F1 of spans as seqeval reads them, in default mode."""
    true, guess = seqeval_spans(gold, gold.numbers), seqeval_spans(gold, predicted)
    return _defined_f1(len(true.end), len(guess.end), int(guess.among(true).sum()))


Counts = NDArray[np.int64] | Floats


def sentence_counts(score_name: str, gold: Labels, predicted: Labels) -> Counts:
    """The counts that each sentence (row) adds to a score.

    The score of any set of sentences is `score_of_counts` of the sum of their rows. Raises ValueError where
    lengths differ.

    Three columns: how many items are annotated, how many predicted, how many both. Items are spans
    (`f1_conll`, `seqeval_f1`) or words (`accuracy`, where every word is predicted). Of numbers (`pearson`)
    the six columns of `_products`.
    """
    packed, guess = numbered(gold, predicted)
    if score_name == PEARSON:
        pair = [np.array([float(text) for (text,) in rows]) for rows in (gold, predicted)]
        # One centre for all systems: a test over sentences exchanges their predictions.
        return _products(*(_centred(numbers, float(np.mean(pair[0]))) for numbers in pair))
    if score_name == "accuracy":
        right = np.bincount(
            _sentences(packed.lengths)[packed.numbers == guess], minlength=len(packed.lengths)
        )
        return np.stack([packed.lengths, packed.lengths, right], axis=1)
    if score_name == "seqeval_f1":
        return _by_sentence(
            seqeval_spans(packed, packed.numbers), seqeval_spans(packed, guess), packed.lengths + 1
        )
    _, true, predicted_spans = span_pair(packed, guess)
    return _by_sentence(true, predicted_spans, packed.lengths)


def _products(gold: Floats, predicted: Floats) -> Floats:
    """(N, 6): 1, x, y, x², y² and xy of N pairs of numbers. Their sums give Pearson's correlation."""
    return np.stack([np.ones_like(gold), gold, predicted, gold**2, predicted**2, gold * predicted], axis=1)


def _sentences(lengths: Ints) -> Ints:
    """(N,): the sentence of each word."""
    return np.repeat(np.arange(len(lengths)), lengths)


def _by_sentence(true: FlatSpans, predicted: FlatSpans, lengths: Ints) -> Counts:
    """Annotated, predicted and common spans of each sentence: the one that a span ends in."""
    sentence = _sentences(lengths)
    ends = (true.end, predicted.end, predicted.end[predicted.among(true)])
    return np.stack([np.bincount(sentence[end - 1], minlength=len(lengths)) for end in ends], axis=1)


def score_of_counts(counts: NDArray[Any]) -> NDArray[np.float64]:
    """F1 (of words: accuracy) of summed counts (..., 3), or Pearson's correlation of sums (..., 6).

    NaN where it is undefined.
    """
    if counts.shape[-1] == len(_PEARSON_SUMS):
        return _pearson(counts)
    annotated = np.asarray(counts[..., 0])
    score = np.full(annotated.shape, math.nan)
    np.divide(2.0 * counts[..., 2], annotated + counts[..., 1], out=score, where=annotated > 0)
    return score


_PEARSON_SUMS = ("1", "x", "y", "x²", "y²", "xy")
_ROUNDING = 1e-12
_FLAT = 1e-12  # a variance below this share of the mean square comes from rounding


def _pearson(sums: NDArray[Any]) -> NDArray[np.float64]:
    n, x, y, xx, yy, xy = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    n = np.maximum(n, 1)
    spread_x, spread_y = xx - x * x / n, yy - y * y / n
    varies = (spread_x > _FLAT * xx) & (spread_y > _FLAT * yy)
    correlation = np.full(varies.shape, math.nan)
    scale = np.sqrt(np.where(varies, spread_x * spread_y, 1.0))
    np.divide(xy - x * y / n, scale, out=correlation, where=varies)
    return np.clip(correlation, -1.0, 1.0)


def percent_sign(score_names: Iterable[str]) -> str:
    """The suffix of a hundred times a score, or a mean of scores, with these names: `%` or nothing.

    It is nothing where one of them is a correlation, which is no share, or none is known.
    """
    names = set(score_names)
    return "%" if names and PEARSON not in names else ""


def scale_text(score_names: Iterable[str]) -> str:
    """The scale of a table of scores with these names, times a hundred: `in percent`."""
    names = set(score_names)
    if PEARSON not in names:
        return "in percent"
    return "Pearson × 100" if names == {PEARSON} else "in percent, Pearson × 100"


def score_text(score: float | None, *score_names: str) -> str:
    """A score, or a mean of scores, with these names, for people: `89.79%`.

    A correlation is `89.79`, a hundred times its value; a dash where it is undefined.
    """
    text = percent(score)
    return text if score is None or math.isnan(score) else text + percent_sign(score_names)


def rarer_half_f1(report: Mapping[str, Mapping[str, float]]) -> float | None:
    """The mean F1 of the rarer half (rounded down) of the annotated labels or span types.

    A mean over all words hides them. None where fewer than two are annotated.

    `report` is that of a TaskScore: a row per label with `f1` and `support`. Of equally rare labels the first
    by name count.
    """
    annotated = sorted((row["support"], label) for label, row in report.items() if row["support"])
    rarer = [label for _, label in annotated[: len(annotated) // 2]]
    return math.fsum(report[label]["f1"] for label in rarer) / len(rarer) if rarer else None


def report_rows(report: Mapping[str, Mapping[str, float]]) -> Report:
    """The rows of a TaskScore's report; all scores of labels without annotation are undefined.

    Where all labels are whole numbers they are in the order of these: 2 before 10.
    """
    undefined = dict.fromkeys(REPORT_NUMBERS[:3], math.nan)
    numbers = {label: whole_number(label) for label in report}
    in_order = list(report)
    if None not in numbers.values():
        in_order.sort(key=lambda label: numbers[label] or 0)
    rows = {label: report[label] for label in in_order}
    return {label: {**row} if row["support"] else {**row, **undefined} for label, row in rows.items()}


def averages(score: TaskScore) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 in [0, 1] and support of a score, by `micro`, `macro` and `weighted`.

    The score is a TaskScore or stored; these are the last rows of scikit-learn's and seqeval's
    classification_report. Empty without report.

    `micro` counts all labels (span types) together, `macro` is their plain mean, `weighted` their mean
    weighted by support. For plain labels micro is the accuracy, since each word has exactly one label.
    What is not annotated has no figure and counts in no mean; scikit-learn and seqeval count it as 0.
    """
    if not score.report:
        return {}
    rows = [row for row in score.report.values() if row["support"]]
    support = sum(row["support"] for row in rows)
    is_spans = score.score_name == "f1_conll"
    micro = ("precision", "recall", "f1_conll") if is_spans else ("accuracy",) * 3
    numbers = (*(score.figures.get(name, math.nan) for name in micro), support)
    rows_by_average = {"micro": dict(zip(REPORT_NUMBERS, numbers, strict=True))}
    for name, weights in (("macro", [1.0] * len(rows)), ("weighted", [row["support"] for row in rows])):
        total = sum(weights)
        rows_by_average[name] = {
            number: math.fsum(row[number] * weight for row, weight in zip(rows, weights, strict=True)) / total
            if total
            else math.nan
            for number in REPORT_NUMBERS[:3]
        } | {"support": support}
    return rows_by_average
