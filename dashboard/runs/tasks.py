"""The tasks of one run as tables with a row a task: its scores, and its training data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from core.events import TaskFacts
from core.results.naming import SCORE_NAMES
from core.store.types import Run, RunWithFacts, StoredScore
from core.tasks import KINDS, kind_of
from core.tasks.scores import SECONDARY_SCORES
from core.wording import without_shared
from jobs.reports.parts import Entry, Sheet

_SPLITS = ("test", "dev")
_NONE = "–"
_Cells = dict[str, Entry | str | None]


def tasks_of(run: Run, scores: Iterable[StoredScore]) -> list[str]:
    """The tasks of these scores, in the order of the run's description where that names them."""
    return list(dict.fromkeys((*run.config.tasks, *sorted(score.task for score in scores))))


def detailed_split(scores: Iterable[StoredScore]) -> str:
    """The split whose scores are shown in detail: test where there are such scores."""
    splits = {score.split for score in scores}
    return next((split for split in _SPLITS if split in splits), "")


def scores_sheet(run: RunWithFacts, scores: Sequence[StoredScore]) -> Sheet:
    """A row a task: its score by split, and what stands beside that on one."""
    return _sheet({task: _score_cells(run, task, scores) for task in tasks_of(run, scores)}, _NONE)


def data_sheet(run: RunWithFacts) -> Sheet:
    """A row a task: its kind, and what its training data hold."""
    known = {task.name: _data_cells(task) for task in run.task_facts}
    return _sheet({task: known.get(task, {}) for task in tasks_of(run, ())})


def _sheet(rows: Mapping[str, _Cells], missing: str | None = None) -> Sheet:
    """A row a task. A column is there where a task has something for it."""
    heads = dict.fromkeys(head for cells in rows.values() for head in cells)
    shown = [head for head in heads if any(cells.get(head) is not None for cells in rows.values())]
    short = without_shared(list(rows))
    lines = [(short[task], *(cells.get(head) or missing for head in shown)) for task, cells in rows.items()]
    return Sheet.of(["Task", *shown], lines)


def _score_cells(run: RunWithFacts, task: str, scores: Sequence[StoredScore]) -> _Cells:
    """The name of the score, its value on each split, and the secondary scores but accuracy."""
    of_task = {score.split: score for score in scores if score.task == task}
    if not of_task:
        return {}
    first = next(of_task[split] for split in _SPLITS if split in of_task)
    cells: _Cells = {"Score": SCORE_NAMES.get(first.score_name, first.score_name)}
    cells |= {split.capitalize(): _percent(of_task[split].score) for split in _SPLITS if split in of_task}
    detailed = of_task.get(detailed_split(scores))
    if detailed is not None:
        kind = kind_of(run.task_facts, task, detailed.score_name)
        beside = kind.secondary_scores(detailed)
        # The headline of labels; of spans it says little.
        beside.pop(SECONDARY_SCORES["accuracy"].title, None)
        cells |= {name: None if value is None else _percent(value) for name, value in beside.items()}
    return cells


def _data_cells(task: TaskFacts) -> _Cells:
    """The kind of the task, and what its training data hold."""
    kind = KINDS[task.scheme]
    unseen = "; ".join(f"{', '.join(labels)} in {split}" for split, labels in task.unseen.items())
    return {
        "Kind": kind.title,
        "Labels": None if kind.is_number else _count(len(task.labels)),
        kind.examples.capitalize(): _count(task.train_sentences),
        kind.items.capitalize(): _count(task.train_tokens),
        "Labels never seen": unseen or None,
    }


def _percent(score: float) -> Entry:
    return Entry(100 * score)


def _count(number: int) -> Entry:
    return Entry(number, form=",.0f")
