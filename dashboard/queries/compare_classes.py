"""Label by label: precision, recall and F1 of two configurations, over seeds, and how they differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from core.evaluation import holm
from core.evaluation.statistics import MeanSD, PairedDifference, paired_difference, summary
from core.store.records import StoredScore
from jobs.results import ResultCell

__all__ = ["CLASS_COLUMNS", "ClassRow", "class_records", "classes", "reports"]

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
