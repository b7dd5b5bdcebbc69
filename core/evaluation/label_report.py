"""Averages over the labels of one task: the last rows of scikit-learn's and seqeval's classification_report.

A stored report has a row per label, for span tasks per span type, that is annotated or predicted. `micro`
counts all of them together, `macro` is their plain mean, `weighted` their mean weighted by support.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

__all__ = ["AVERAGES", "REPORT_NUMBERS", "averages"]

Report = Mapping[str, Mapping[str, float]]

AVERAGES = ("micro", "macro", "weighted")
"""The averages, in the order in which the libraries print them."""

REPORT_NUMBERS = ("precision", "recall", "f1", "support")


class _Scored(Protocol):
    """The fields of a TaskScore or a StoredScore that averages are computed from."""

    @property
    def accuracy(self) -> float: ...
    @property
    def precision(self) -> float | None: ...
    @property
    def recall(self) -> float | None: ...
    @property
    def f1_conll(self) -> float | None: ...
    @property
    def report(self) -> Report: ...


def averages(score: _Scored) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 in [0, 1] and support, for each of AVERAGES; empty where no report is stored.

    For plain labels the micro average of all three is the accuracy, since each word has exactly one label.
    """
    rows = list(score.report.values())
    if not rows:
        return {}
    support = sum(row["support"] for row in rows)
    is_spans = score.f1_conll is not None
    micro = (score.precision, score.recall, score.f1_conll) if is_spans else (score.accuracy,) * 3
    found = {"micro": dict(zip(REPORT_NUMBERS, (*map(_number, micro), support), strict=True))}
    for name, weights in (("macro", [1.0] * len(rows)), ("weighted", [row["support"] for row in rows])):
        total = sum(weights)
        found[name] = {
            number: math.fsum(row[number] * weight for row, weight in zip(rows, weights, strict=True)) / total
            if total
            else 0.0
            for number in REPORT_NUMBERS[:3]
        } | {"support": support}
    return found


def _number(value: float | None) -> float:
    return math.nan if value is None else value
