"""Mistakes on one task, over seeds: which label was predicted as which other, and how often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.tasks import TaskKind
from core.tasks.confusion import NOTHING, OTHER_WORDS, Confusion, summed

Labels = Sequence[Sequence[str]]
"""The labels of each sentence."""


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


def errors(parts: Sequence[Confusion]) -> Errors | None:
    """The confusions of the seeds of a configuration, summed; None where there are none."""
    return Errors(summed(parts), len(parts)) if parts else None


def label_name(label: str, *, is_gold: bool) -> str:
    """A row (gold) or a column of a confusion in words."""
    return {NOTHING: "nothing there" if is_gold else "missed", OTHER_WORDS: "other words"}.get(label, label)


def mistake_text(gold: str, predicted: str) -> str:
    """A mistake in words: `PER → missed`."""
    return f"{label_name(gold, is_gold=True)} → {label_name(predicted, is_gold=False)}"


def mistakes(a: Errors, b: Errors | None) -> pd.DataFrame:
    """The mistakes of two configurations, the most frequent first.

    Each has the gold label, the predicted one, and how often each of the two makes it per seed (A, B).
    """
    whole = summed([a.table, *([b.table] if b else [])])
    pairs = [(whole.gold[y], whole.predicted[x]) for y, x in zip(*np.nonzero(whole.counts), strict=True)]
    counts = [(*pair, a.count(*pair), b.count(*pair) if b else 0.0) for pair in pairs if pair[0] != pair[1]]
    counts.sort(key=lambda mistake: (-mistake[2] - mistake[3], mistake[0], mistake[1]))
    return pd.DataFrame(counts, columns=["gold", "predicted", "A", "B"])


def sentences_with(
    kind: TaskKind, gold: Labels, predicted: Labels, mistake: tuple[str, str]
) -> Iterator[int]:
    """The indices of the sentences in which this mistake is made, ascending."""
    for index, (row, guess) in enumerate(zip(gold, predicted, strict=True)):
        if list(row) == list(guess):
            continue
        confusion = kind.confusion([row], [guess])
        if confusion is not None and Errors(confusion, 1).count(*mistake):
            yield index
