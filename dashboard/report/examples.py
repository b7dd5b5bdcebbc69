"""Test sentences of a report: those on which the two rows that it compares differ most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from core.plain_text import shortened
from core.results.comparisons import Difference, run_pairs
from core.results.scored_text import Labels, scored_text
from core.store import Run, Store
from core.tasks import TaskKind, kind_of
from core.wording import plural
from dashboard.components.sentence import Lane, Mark, SentenceBlock, lane_kind, marks, sentence_data
from dashboard.report.placed import NotThere, Placed, caption
from dashboard.shared import resources
from jobs.reports.answered import Answered
from jobs.reports.html import html
from jobs.reports.parts import Sheet

_EACH = 2
"""So many sentences that each of the two labels better."""
_MOST_WORDS = 30
_MOST_LETTERS = 1_000
"""So much of a text is shown."""


@dataclass(frozen=True)
class _Labelled:
    """The labels of a task for each sentence: annotated, and as two runs of one seed predict them."""

    kind: TaskKind
    gold: Labels
    a: Labels
    b: Labels


def sentences(first: Answered, store: Store, placed: Placed) -> str:
    """Sentences of the common seed in which one row is right and the other is not. Raises MRNLabError."""
    if first.pair is None or not first.of_pair:
        raise NotThere("There are no two rows with scores on the same data to compare.")
    row, base = (each.name for each in first.pair)
    delta = max(first.of_pair, key=lambda each: abs(each.mean))
    runs = {run.id: run for run in first.runs}
    split = first.table.split
    main, run = _labelled(delta, first, runs, store)
    text = scored_text(run, split, delta.task, main.gold)
    gains = [_gain(*of) for of in zip(main.gold, main.a, main.b, strict=True)]
    short = [
        place
        for place, labels in enumerate(main.gold)
        if main.kind.reads != "words" or len(labels) <= _MOST_WORDS
    ]
    better = sorted((place for place in short if gains[place] > 0), key=lambda place: -gains[place])[:_EACH]
    worse = sorted((place for place in short if gains[place] < 0), key=lambda place: gains[place])[:_EACH]
    chosen = [*better, *worse]
    if not chosen:
        raise NotThere(f"{row} and {base} label all short {split} sentences of {delta.task} equally well.")
    about = (
        f"{plural(len(better), 'example')} where {row} is right more often than {base}, and {len(worse)} "
        f"where it is the other way round, on {delta.task}; seed {run.config.seed}. They are "
        "chosen for their difference and are no sample."
    )
    if main.kind.reads != "words":
        lines = [
            (
                shortened(
                    " ‖ ".join(
                        " ".join(of)
                        for of in (text.sentences[place].tokens, text.sentences[place].second)
                        if of
                    ),
                    _MOST_LETTERS,
                ),
                *(of[place][0] for of in (main.gold, main.a, main.b)),
            )
            for place in chosen
        ]
        return html(Sheet.of((main.kind.title, "Annotated", row, base), lines, about))
    others = {delta.task: main} | _other_tasks(delta, first, runs, store, main)
    blocks = [
        SentenceBlock(
            text.sentences[place].tokens,
            tuple(
                Lane(
                    task,
                    resources.task_colour(task),
                    lane_kind(labelled.kind.scheme),
                    _marks(labels[place], labelled.gold[place], labelled.kind),
                    who,
                )
                for task, labelled in others.items()
                for who, labels in (("annotated", labelled.gold), (row, labelled.a), (base, labelled.b))
            ),
        )
        for place in chosen
    ]
    return placed.place("sentence", sentence_data(blocks, small=True), height=120 * len(blocks)) + caption(
        f"{about} Outlined: not as annotated."
    )


def _labelled(
    delta: Difference, first: Answered, runs: Mapping[int, Run], store: Store
) -> tuple[_Labelled, Run]:
    """The stored labels of the first common seed. Raises NotThere."""
    task, split = delta.task, first.table.split
    for a, b in run_pairs(delta):
        stored = [store.predictions(run_id, split, task).get(task) for run_id in (a, b)]
        if stored[0] is not None and stored[1] is not None and stored[0][0] == stored[1][0]:
            kind = kind_of(store.run(a).task_facts, task, first.table.scored_by[task])
            return _Labelled(kind, stored[0][0], stored[0][1], stored[1][1]), runs[a]
    raise NotThere(
        f"No {split} predictions of {delta.row.name} and {delta.base.name} on {task} are stored for a common "
        "seed."
    )


def _other_tasks(
    delta: Difference, first: Answered, runs: Mapping[int, Run], store: Store, main: _Labelled
) -> dict[str, _Labelled]:
    """The labels of the other tasks that are annotated on the same words."""
    found = {}
    for other in first.of_pair:
        if other.task == delta.task:
            continue
        try:
            labelled, _ = _labelled(other, first, runs, store)
        except NotThere:
            continue  # its lanes are left out
        same = list(map(len, labelled.gold)) == list(map(len, main.gold))
        if same and labelled.kind.reads == "words":
            found[other.task] = labelled
    return found


def _gain(gold: Sequence[str], a: Sequence[str], b: Sequence[str]) -> int:
    """By how many labels more the first agrees with the annotation than the second."""
    return sum((x == true) - (y == true) for true, x, y in zip(gold, a, b, strict=True))


def _marks(predicted: Sequence[str], gold: Sequence[str], kind: TaskKind) -> tuple[Mark, ...]:
    return tuple(
        mark if label == true else replace(mark, differs=True, why=f"annotated: {true}")
        for mark, label, true in zip(marks(predicted, kind.scheme), predicted, gold, strict=True)
    )
