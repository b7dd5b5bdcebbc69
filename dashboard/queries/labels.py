"""How often a corpus has each label, split by split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.corpora import CorpusSummary, TaskSummary
from core.corpora.types import Split

__all__ = ["LabelCounts", "LabelRow", "label_counts"]

_OUTSIDE = "O"


@dataclass(frozen=True)
class LabelRow:
    """A label, or a type of spans, and how often each split has it. `only_in`: its splits, where training
    never shows it.
    """

    label: str
    counts: Mapping[Split, int]
    only_in: tuple[Split, ...]


@dataclass(frozen=True)
class LabelCounts:
    """The labels of a task, the commonest in training first.

    `spans` says that rows are types of spans and numbers are spans, not words. `annotated` is the share of
    the training words that stand in sentences annotated for the task, `labelled` of those that have a label
    (are inside a span). `unseen` has what training never shows: labels, types of spans, and labels of
    types that it does show (an `I-` where all its spans are single words).
    """

    task: str
    spans: bool
    splits: tuple[Split, ...]
    rows: tuple[LabelRow, ...]
    annotated: float
    labelled: float
    unseen: tuple[str, ...]


def label_counts(summary: CorpusSummary, task: TaskSummary) -> LabelCounts:
    """The label counts of one task of a corpus."""
    spans = task.scheme == "iob2"
    splits = tuple(split for split in summary.splits if split in task.counts)
    by_label: dict[str, dict[Split, int]] = {}
    for split in splits:
        for label, number in task.counts[split].items():
            if spans and not label.startswith("B-"):
                continue  # a span counts once, where it begins
            by_label.setdefault(label.removeprefix("B-") if spans else label, {})[split] = number
    rows = [
        LabelRow(label, counts, () if counts.get("train") else tuple(counts))
        for label, counts in sorted(
            by_label.items(), key=lambda item: ([-item[1].get(split, 0) for split in splits], item[0])
        )
    ]
    training = task.counts.get("train", {})
    annotated = sum(training.values())
    words = summary.splits["train"].tokens
    outside = training.get(_OUTSIDE, 0) if spans else 0
    strange = [row.label for row in rows if row.only_in]
    others = dict.fromkeys(label for labels in task.unseen.values() for label in labels)
    return LabelCounts(
        task.name,
        spans,
        splits,
        tuple(rows),
        annotated / words,
        (annotated - outside) / words,
        (*strange, *(label for label in others if spans and label[2:] not in strange)),
    )
