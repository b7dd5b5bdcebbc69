"""Which rows have gold labels: codes for no label go, then rows and splits without any, then tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from core.corpora.layout.doubts import untrained_doubt
from core.corpora.layout.no_label import no_label
from core.corpora.reading import ColumnReading, values_shown
from core.corpora.types import SPLITS, Column, Sentences, Split
from core.errors import CorpusError
from core.wording import plural

Splits = dict[Split, Sentences]


class WithoutCodes(NamedTuple):
    """How often labels occur in training, which of them were codes for no label, and a note on these."""

    training: Counter[str]
    codes: frozenset[str]
    notes: tuple[str, ...]


def without_codes(splits: Splits, task: str) -> WithoutCodes:
    """Takes the codes for no label from the labels that a task has of texts or sentences.

    Changes `splits`.
    """
    counts = {split: sentences.column(task).rows.counts() for split, sentences in splits.items()}
    training = counts["train"]
    codes = no_label(training, {label for labels in counts.values() for label in labels})
    lacking: dict[Split, int] = {}
    for split, sentences in splits.items():
        column = sentences.column(task)
        if codes & counts[split].keys():
            kept = np.flatnonzero(~column.rows.flags(codes.__contains__))
            column = Column(column.at[kept], column.rows.take(kept))
            splits[split] = sentences.with_column(task, column) if len(kept) else sentences.without([task])
        whole = int(sentences.by_traits(lambda traits: traits.whole).sum())
        lacking[split] = max(whole - len(column.at), sum(counts[split][code] for code in codes))
    where = ", ".join(f"{count:,} in {split}" for split, count in lacking.items() if count)
    written = f" ({', '.join(sorted(codes))})" if codes else ""
    return WithoutCodes(training, codes, (f"no label: {where}{written}.",) if where else ())


def untrained(splits: Mapping[Split, Sentences], task: str) -> ColumnReading | None:
    """The reading of a task that no training sentence is annotated for; None where some is."""
    if len(splits["train"].column(task).at):
        return None
    columns = {split: sentences.column(task).rows for split, sentences in splits.items()}
    labels = values_shown(label for column in columns.values() for label in column.counts())
    doubts = (untrained_doubt([split for split, column in columns.items() if len(column)]),) if labels else ()
    return ColumnReading(task, "skipped", examples=labels, doubts=doubts)


def only_labelled(name: str, splits: Splits, titles: dict[Split, str]) -> list[str]:
    """Takes texts without any label away, and splits where nothing has one; then dev is the test split.

    Changes `splits` and `titles`, the names of their files. Returns what was left out, a sentence each.
    Raises CorpusError where no training or test split is left.
    """
    notes = []
    for split, sentences in list(splits.items()):
        title = titles.get(split, split)
        has_label = sentences.annotated(sentences.labels)
        kept = sentences.where(has_label | ~sentences.by_traits(lambda traits: traits.whole).astype(bool))
        if not has_label.any():
            del splits[split]
            rows = plural(len(sentences), "row")
            notes.append(f"{title}: none of {rows} has a label; the split was left out.")
        elif len(kept) < len(sentences):
            splits[split] = kept
            rows = plural(len(sentences) - len(kept), "row")
            notes.append(f"{title}: {rows} without labels left out.")
    if "test" not in splits and "dev" in splits:
        titles["test"] = titles.pop("dev", "dev")
        splits["test"] = splits.pop("dev")
        notes.append(f"There is no test split with labels: {titles['test']} is the test split.")
    for needed in ("train", "test"):
        if needed not in splits:
            raise CorpusError(f"{name}: no row of its {needed} split has a label; take one that has labels.")
    ordered = {split: splits[split] for split in SPLITS if split in splits}
    splits.clear()
    splits.update(ordered)
    return notes
