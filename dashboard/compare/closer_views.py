"""Label by label: precision, recall and F1 of two configurations, over seeds, and how they differ."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.evaluation import holm, randomisation_test
from core.evaluation.confusion import NOTHING, OTHER_WORDS, Confusion, confusion, summed
from core.evaluation.scores import Counts, sentence_counts
from core.evaluation.statistics import MeanSD, PairedDifference, paired_difference, summary
from core.store.records import StoredScore
from dashboard.compare.views import Tested
from jobs.results import ResultCell

Report = Mapping[str, Mapping[str, float]]
_NUMBERS = ("precision", "recall", "f1")


@dataclass(frozen=True)
class ClassRow:
    """One label. `a` and `b` hold precision, recall and F1 in [0, 1] over seeds, `difference` is that of F1
    and `p` its p over seeds, corrected for all labels (Holm).
    """

    label: str
    support: int
    a: Mapping[str, MeanSD]
    b: Mapping[str, MeanSD]
    difference: PairedDifference | None
    p: float | None


def reports(cell: ResultCell, task: str, scores: Iterable[StoredScore]) -> dict[int, Report]:
    """Each seed's report on that task."""
    by_run = {score.run_id: score.report for score in scores if score.task == task}
    return {seed: by_run[run_id] for seed, run_id in cell.run_ids.items() if by_run.get(run_id)}


def classes(a: Mapping[int, Report], b: Mapping[int, Report]) -> list[ClassRow]:
    """A row per label that either has, the most annotated first. Seeds in which a label was neither annotated
    nor predicted do not count for it.
    """
    a, b = ({seed: _known(report) for seed, report in side.items()} for side in (a, b))
    labels = dict.fromkeys(label for side in (a, b) for report in side.values() for label in report)
    rows = [_row(label, a, b) for label in labels]
    tested = [place for place, row in enumerate(rows) if row.p is not None]
    for place, p_value in zip(tested, holm([row.p for row in rows if row.p is not None]), strict=True):
        rows[place] = replace(rows[place], p=p_value)
    return sorted(rows, key=lambda row: (-row.support, row.label))


def _known(report: Report) -> Report:
    """Without labels of which a number is none."""
    return {label: one for label, one in report.items() if all(math.isfinite(one[name]) for name in _NUMBERS)}


def _row(label: str, a: Mapping[int, Report], b: Mapping[int, Report]) -> ClassRow:
    sides = [{seed: report[label] for seed, report in side.items() if label in report} for side in (a, b)]
    found = paired_difference(*({seed: one["f1"] for seed, one in side.items()} for side in sides))
    support = max(int(one["support"]) for side in sides for one in side.values())
    told = [
        {name: summary(one[name] for one in side.values()) for name in _NUMBERS} if side else {}
        for side in sides
    ]
    return ClassRow(label, support, told[0], told[1], found, None if found is None else found.p)


CLASS_COLUMNS = ("label", "support", "configuration", "precision", "recall", "f1", "f1_sd", "seeds")


def class_records(rows: Sequence[ClassRow], names: tuple[str, str]) -> list[dict[str, object]]:
    """A record of CLASS_COLUMNS per label and configuration, scores in [0, 1]."""
    return [
        {
            "label": row.label,
            "support": row.support,
            "configuration": name,
            **{number: told[number].mean for number in _NUMBERS},
            "f1_sd": told["f1"].sd,
            "seeds": told["f1"].n,
        }
        for row in rows
        for name, told in zip(names, (row.a, row.b), strict=True)
        if told
    ]


# What is taken for what, by one configuration or by one more than by another; and in which sentences.


Labels = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Errors:
    """The confusions of one configuration on one task, summed over its seeds."""

    table: Confusion
    seeds: int

    def count(self, gold: str, predicted: str) -> float:
        """How often that was taken for that, per seed."""
        table = self.table
        if gold not in table.gold or predicted not in table.predicted:
            return 0.0
        return float(table.counts[table.gold.index(gold), table.predicted.index(predicted)]) / self.seeds

    def annotated(self, label: str) -> float:
        """How often it is annotated, per seed."""
        table = self.table
        return float(table.counts[table.gold.index(label)].sum()) / self.seeds if label in table.gold else 0.0


@dataclass(frozen=True)
class Matrix:
    """Shares of what is annotated (rows), in percent, by what was predicted (columns); NaN on the diagonal.
    Predictions where nothing is annotated are shares of the annotated spans of the predicted type.

    `right` is the share that is right, row by row (NaN for what is nothing). `signed`: a difference of two
    configurations in points. `told` says each cell in words.
    """

    gold: tuple[str, ...]
    predicted: tuple[str, ...]
    shares: NDArray[np.float64]
    right: tuple[float, ...]
    told: tuple[tuple[str, ...], ...]
    signed: bool


@dataclass(frozen=True)
class Confused:
    """A mistake, and how often each of two configurations makes it per seed."""

    gold: str
    predicted: str
    a: float
    b: float


def errors(parts: Sequence[Confusion]) -> Errors | None:
    """The sum over seeds; None where no predictions are known."""
    return Errors(summed(parts), len(parts)) if parts else None


def matrix(found: Errors) -> Matrix:
    """One configuration's confusions."""
    rows, columns = found.table.gold, found.table.predicted
    shares, right = _shares(found, rows, columns)
    told = tuple(
        tuple(
            f"{_annotated(gold)} → {_predicted(guess)}: {found.count(gold, guess):.1f} per seed, "
            f"{shares[y, x]:.2f}% of the annotated {guess if gold == NOTHING else gold}"
            for x, guess in enumerate(columns)
        )
        for y, gold in enumerate(rows)
    )
    return Matrix(rows, columns, _without_diagonal(shares, rows, columns), right, told, False)


def difference_matrix(a: Errors, b: Errors) -> Matrix:
    """How much more often, in points, the first makes each mistake."""
    whole = summed([a.table, b.table])
    rows, columns = whole.gold, whole.predicted
    (one, right_a), (other, right_b) = (_shares(side, rows, columns) for side in (a, b))
    told = tuple(
        tuple(
            f"{_annotated(gold)} → {_predicted(guess)}: {a.count(gold, guess):.1f} and "
            f"{b.count(gold, guess):.1f} per seed"
            for guess in columns
        )
        for gold in rows
    )
    right = tuple(np.subtract(right_a, right_b))
    return Matrix(rows, columns, _without_diagonal(one - other, rows, columns), right, told, True)


def _shares(
    found: Errors, rows: Sequence[str], columns: Sequence[str]
) -> tuple[NDArray[np.float64], tuple[float, ...]]:
    """Percent of what is annotated. What was invented is measured against the annotated spans of its type."""
    shares = np.zeros((len(rows), len(columns)))
    for y, gold in enumerate(rows):
        for x, guess in enumerate(columns):
            base = found.annotated(guess if gold == NOTHING else gold)
            shares[y, x] = 100 * found.count(gold, guess) / base if base else 0.0
    right = tuple(
        float(shares[y, columns.index(gold)]) if gold in columns and gold != NOTHING else float("nan")
        for y, gold in enumerate(rows)
    )
    return shares, right


def _without_diagonal(
    shares: NDArray[np.float64], rows: Sequence[str], columns: Sequence[str]
) -> NDArray[np.float64]:
    kept = shares.copy()
    for y, gold in enumerate(rows):
        if gold in columns:
            kept[y, columns.index(gold)] = np.nan
    return kept


def _annotated(label: str) -> str:
    return "nothing" if label == NOTHING else label


def _predicted(label: str) -> str:
    return {NOTHING: "nothing (missed)", OTHER_WORDS: "other words (wrong boundary)"}.get(label, label)


def confused(a: Errors, b: Errors | None) -> list[Confused]:
    """Every mistake that either makes, the most frequent first."""
    whole = summed([a.table, *([b.table] if b else [])])
    found = []
    for y, x in zip(*np.nonzero(whole.counts), strict=True):
        gold, guess = whole.gold[y], whole.predicted[x]
        if gold != guess:
            theirs = b.count(gold, guess) if b else 0.0
            found.append(Confused(gold, guess, a.count(gold, guess), theirs))
    return sorted(found, key=lambda one: (-one.a - one.b, one.gold, one.predicted))


def places(scheme: str, gold: Labels, predicted: Labels, mistake: tuple[str, str]) -> Iterator[int]:
    """The sentences in which this mistake is made, in their order."""
    for place, (row, found) in enumerate(zip(gold, predicted, strict=True)):
        if list(row) != list(found) and Errors(confusion(scheme, [row], [found]), 1).count(*mistake):
            yield place


# From stored predictions to a test over sentences.


@dataclass(frozen=True)
class Counted:
    """A run's counts by sentence on one task, and the mark of the sentences they were counted on."""

    counts: Counts
    sentences: str


def counted(score_name: str, gold: Labels, predicted: Labels) -> Counted:
    """The counts of `sentence_counts`. Sentences are told apart by their annotations."""
    mark = hashlib.blake2b(json.dumps(gold).encode(), digest_size=16).hexdigest()
    return Counted(sentence_counts(score_name, gold, predicted), mark)


def tested(pairs: Sequence[tuple[Counted | None, Counted | None]]) -> Tested:
    """The test over the seeds (pairs) of which both predictions are known; else why there is none."""
    if not pairs:
        return "no common seed"
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return "no predictions stored"
    if len({one.sentences for pair in known for one in pair}) > 1:
        return "different sentences"
    return randomisation_test([a.counts for a, _ in known], [b.counts for _, b in known])
