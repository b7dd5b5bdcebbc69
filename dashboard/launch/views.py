"""What Launch shows, without Streamlit: the list of planned runs, and the label counts of a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.config import RunConfig
from core.config.sweep import LISTED
from core.corpora import CorpusSummary, Task
from core.corpora.types import Split
from core.store.records import Run, RunState
from jobs.estimates import Cost
from jobs.naming import field_text, kind_name

# Told by a run's name, or in a column of their own.
_NAMED = ("paradigm", "lambda", "seed")


@dataclass(frozen=True)
class PlannedRun:
    """One run: its name, the values that tell it from the others, its seed; the run of the store that is the
    same, if there is one, else the seconds it will take (None where that cannot be told).
    """

    name: str
    values: Mapping[str, str]
    seed: int
    there: Run | None
    seconds: float | None


@dataclass(frozen=True)
class PlanView:
    """The planned runs in order, and the fields in which they differ beside paradigm, λ and seed."""

    rows: tuple[PlannedRun, ...]
    fields: tuple[str, ...]

    @property
    def there(self) -> tuple[Run, ...]:
        """The runs of the store that are among them."""
        return tuple(row.there for row in self.rows if row.there is not None)

    @property
    def all_done(self) -> bool:
        """Whether all of them have succeeded already."""
        return all(row.there is not None and row.there.state is RunState.SUCCEEDED for row in self.rows)


def plan_view(
    configs: Sequence[RunConfig], same: Sequence[Run | None], new: Mapping[RunConfig, int], cost: Cost | None
) -> PlanView:
    """The list of these runs. `same` has for each the run that is used in its place; `new` the place of the
    others in `cost`.
    """
    listed = [name for name in LISTED if name not in _NAMED]
    fields = [name for name in listed if len({getattr(config, name) for config in configs} - {None}) > 1]
    rows = tuple(
        PlannedRun(
            kind_name(config),
            {name: _text(config, name) for name in fields},
            config.seed,
            there,
            _seconds(cost, new.get(config)),
        )
        for config, there in zip(configs, same, strict=True)
    )
    return PlanView(rows, tuple(fields))


def _seconds(cost: Cost | None, place: int | None) -> float | None:
    """What the new run at that place takes; the first one bears the start of a worker."""
    if cost is None or place is None:
        return None
    return cost.runs[place].seconds + (cost.first if place == 0 else 0.0)


def _text(config: RunConfig, name: str) -> str:
    value = getattr(config, name)
    if value is None:
        return ""
    text = field_text(name, value)
    return text.removeprefix(name.replace("_", " ")).removesuffix("of the data").strip()


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


def label_counts(summary: CorpusSummary, task: Task) -> LabelCounts:
    """The label counts of one task of a corpus."""
    spans = task.scheme == "iob2"
    counts_of = summary.counts[task.name]
    splits = tuple(split for split in summary.splits if split in counts_of)
    by_label: dict[str, dict[Split, int]] = {}
    for split in splits:
        for label, number in counts_of[split].items():
            if spans and not label.startswith("B-"):
                continue  # a span counts once, where it begins
            by_label.setdefault(label.removeprefix("B-") if spans else label, {})[split] = number
    rows = [
        LabelRow(label, counts, () if counts.get("train") else tuple(counts))
        for label, counts in sorted(
            by_label.items(), key=lambda item: ([-item[1].get(split, 0) for split in splits], item[0])
        )
    ]
    training = counts_of.get("train", {})
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
