"""What is taken for what, by one configuration or by one more than by another; and in which sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.evaluation.confusion import NOTHING, OTHER_WORDS, Confusion, confusion, summed

__all__ = ["Confused", "Errors", "Matrix", "confused", "difference_matrix", "errors", "matrix", "places"]

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
