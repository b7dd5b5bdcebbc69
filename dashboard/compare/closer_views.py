"""Two configurations on one task: label by label, mistake by mistake; what a test over sentences needs."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.evaluation.confusion import NOTHING, OTHER_WORDS, Confusion, confusion, summed
from core.evaluation.scores import Counts, sentence_counts
from core.evaluation.statistics import (
    MeanSD,
    PairedDifference,
    holm,
    paired_difference,
    randomisation_test,
    summary,
)
from core.store.records import StoredScore
from dashboard.compare.views import Tested
from jobs.results import ResultCell

Report = Mapping[str, Mapping[str, float]]
Labels = Sequence[Sequence[str]]
Floats = NDArray[np.float64]

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

    @property
    def half_interval(self) -> float | None:
        """Half of the 95% interval of the difference, where there is one."""
        paired = self.difference
        if paired is None or paired.low is None or paired.high is None:
            return None
        return (paired.high - paired.low) / 2


def reports(cell: ResultCell, task: str, scores: Iterable[StoredScore]) -> dict[int, Report]:
    """Each seed's report on that task."""
    by_run = {score.run_id: score.report for score in scores if score.task == task}
    return {seed: by_run[run_id] for seed, run_id in cell.run_ids.items() if by_run.get(run_id)}


def classes(a: Mapping[int, Report], b: Mapping[int, Report]) -> list[ClassRow]:
    """A row per label that either has, the most annotated first. Seeds in which a label was neither annotated
    nor predicted do not count for it.
    """
    labels = dict.fromkeys(label for side in (a, b) for report in side.values() for label in report)
    rows = [row for label in labels if (row := _class_row(label, a, b)) is not None]
    p_values = iter(holm([row.p for row in rows if row.p is not None]))
    rows = [row if row.p is None else replace(row, p=next(p_values)) for row in rows]
    return sorted(rows, key=lambda row: (-row.support, row.label))


def _class_row(label: str, a: Mapping[int, Report], b: Mapping[int, Report]) -> ClassRow | None:
    sides = [
        {
            seed: report[label]
            for seed, report in side.items()
            if label in report and all(math.isfinite(report[label][name]) for name in _NUMBERS)
        }
        for side in (a, b)
    ]
    if not any(sides):
        return None
    paired = paired_difference(*({seed: one["f1"] for seed, one in side.items()} for side in sides))
    first, second = (
        {name: summary(one[name] for one in side.values()) for name in _NUMBERS} if side else {}
        for side in sides
    )
    support = max(int(one["support"]) for side in sides for one in side.values())
    return ClassRow(label, support, first, second, paired, None if paired is None else paired.p)


CLASS_COLUMNS = ("label", "support", "configuration", "precision", "recall", "f1", "f1_sd", "seeds")


def class_records(rows: Sequence[ClassRow], names: tuple[str, str]) -> list[dict[str, object]]:
    """A record of CLASS_COLUMNS per label and configuration, scores in [0, 1]."""
    return [
        {
            "label": row.label,
            "support": row.support,
            "configuration": name,
            **{number: side[number].mean for number in _NUMBERS},
            "f1_sd": side["f1"].sd,
            "seeds": side["f1"].n,
        }
        for row in rows
        for name, side in zip(names, (row.a, row.b), strict=True)
        if side
    ]


# Mistakes


@dataclass(frozen=True)
class Errors:
    """The confusions of one configuration on one task, summed over its seeds."""

    table: Confusion
    seeds: int

    def count(self, gold: str, predicted: str) -> float:
        """How often `gold` was predicted as `predicted`, per seed."""
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

    `right` is the share of correct predictions, row by row (NaN where nothing is annotated). `signed`: a
    difference of two configurations in points. `words` describe each cell.
    """

    gold: tuple[str, ...]
    predicted: tuple[str, ...]
    shares: Floats
    right: tuple[float, ...]
    words: tuple[tuple[str, ...], ...]
    signed: bool


@dataclass(frozen=True)
class Mistake:
    """A mistake, and how often each of two configurations makes it per seed."""

    gold: str
    predicted: str
    a: float
    b: float


def errors(parts: Sequence[Confusion]) -> Errors | None:
    """The sum over seeds; None where no predictions are known."""
    return Errors(summed(parts), len(parts)) if parts else None


def matrix(own: Errors, other: Errors | None = None) -> Matrix:
    """One configuration's mistakes; with another, how much more often, in points, the first makes each."""
    whole = own.table if other is None else summed([own.table, other.table])
    rows, columns = whole.gold, whole.predicted
    shares = _shares(own, rows, columns)
    if other is not None:
        shares -= _shares(other, rows, columns)

    def words(gold: str, predicted: str, share: float) -> str:
        guess = {NOTHING: "nothing (missed)", OTHER_WORDS: "other words (wrong boundary)"}
        start = f"{'nothing' if gold == NOTHING else gold} → {guess.get(predicted, predicted)}: "
        start += f"{own.count(gold, predicted):.1f}"
        if other is not None:
            return f"{start} and {other.count(gold, predicted):.1f} per seed"
        return f"{start} per seed, {share:.2f}% of the annotated {predicted if gold == NOTHING else gold}"

    described = tuple(
        tuple(words(gold, predicted, shares[y, x]) for x, predicted in enumerate(columns))
        for y, gold in enumerate(rows)
    )
    right = []
    for y, gold in enumerate(rows):
        x = columns.index(gold) if gold in columns else None
        right.append(float(shares[y, x]) if x is not None and gold != NOTHING else math.nan)
        if x is not None:
            shares[y, x] = math.nan
    return Matrix(rows, columns, shares, tuple(right), described, other is not None)


def _shares(own: Errors, rows: Sequence[str], columns: Sequence[str]) -> Floats:
    shares = np.zeros((len(rows), len(columns)))
    for y, gold in enumerate(rows):
        for x, predicted in enumerate(columns):
            base = own.annotated(predicted if gold == NOTHING else gold)
            shares[y, x] = 100 * own.count(gold, predicted) / base if base else 0.0
    return shares


def mistakes(a: Errors, b: Errors | None) -> list[Mistake]:
    """Every mistake that either makes, the most frequent first."""
    whole = summed([a.table, *([b.table] if b else [])])
    pairs = [(whole.gold[y], whole.predicted[x]) for y, x in zip(*np.nonzero(whole.counts), strict=True)]
    made = [
        Mistake(*pair, a.count(*pair), b.count(*pair) if b else 0.0) for pair in pairs if pair[0] != pair[1]
    ]
    return sorted(made, key=lambda one: (-one.a - one.b, one.gold, one.predicted))


def places(scheme: str, gold: Labels, predicted: Labels, mistake: tuple[str, str]) -> Iterator[int]:
    """The sentences in which this mistake is made, in their order."""
    for place, (row, guess) in enumerate(zip(gold, predicted, strict=True)):
        if list(row) != list(guess) and Errors(confusion(scheme, [row], [guess]), 1).count(*mistake):
            yield place


# Tests over sentences


@dataclass(frozen=True)
class Counted:
    """A run's counts by sentence on one task, and a hash of the sentences they were counted on."""

    counts: Counts
    sentences: str


def counted(score_name: str, gold: Labels, predicted: Labels) -> Counted:
    """The counts of `sentence_counts`. Sentences are identified by their annotations."""
    digest = hashlib.blake2b(json.dumps(gold).encode(), digest_size=16).hexdigest()
    return Counted(sentence_counts(score_name, gold, predicted), digest)


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
