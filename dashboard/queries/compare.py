"""Configurations beside each other: mean and spread over seeds, paired differences, what may be said of
them.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from core.config import RunConfig, kind_key
from core.evaluation.statistics import MeanSD, PairedDifference, paired_difference, summary
from core.store.records import Run, StoredScore
from dashboard.queries.naming import confounds, differing
from dashboard.text import plural, signed_points

__all__ = [
    "SCORE_NAMES",
    "Answer",
    "Cell",
    "CompareView",
    "Row",
    "answers",
    "compare",
    "default_pair",
    "per_seed",
]

SCORE_NAMES: Mapping[str, str] = {
    "f1_conll": "F1",
    "accuracy": "accuracy",
    "seqeval_f1": "seqeval F1",
}


@dataclass(frozen=True)
class Cell:
    """One task's scores of one configuration: by seed, their mean and spread, and whether it is best beyond
    doubt.
    """

    by_seed: Mapping[int, float]
    summary: MeanSD
    best: bool = False


@dataclass(frozen=True)
class Row:
    """One configuration (STL: one per task, joined), with a cell for each task it was scored on."""

    key: str
    name: str
    config: RunConfig
    run_ids: tuple[int, ...]
    cells: Mapping[str, Cell]
    dev: float
    """Mean dev score over tasks and seeds: what a configuration may be picked by without looking at test."""

    @property
    def seeds(self) -> int:
        """How many seeds every task has at least."""
        return min((cell.summary.n for cell in self.cells.values()), default=0)


@dataclass(frozen=True)
class CompareView:
    """Rows in the order STL, MTL, MRN, with the tasks and the name of each task's score."""

    split: str
    tasks: tuple[str, ...]
    score_names: Mapping[str, str]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Answer:
    """What may be said of the difference of two rows on one task, as a sentence (plain text)
    and in numbers.
    """

    task: str
    sentence: str
    difference: PairedDifference | None
    holds: bool


def compare(
    runs: Sequence[Run], scores: Iterable[StoredScore], split: str, tasks: Sequence[str]
) -> CompareView:
    """The table of these runs. Two runs of one configuration and seed (a repetition): the
    newer one counts.
    """
    by_run: dict[int, dict[str, StoredScore]] = defaultdict(dict)
    dev: dict[int, list[float]] = defaultdict(list)
    for score in scores:
        if not math.isfinite(score.score):
            continue
        if score.split == split:
            by_run[score.run_id][score.task] = score
        if score.split == "dev":
            dev[score.run_id].append(score.score)
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.id):
        if run.id in by_run:
            groups[kind_key(run.config)].append(run)
    order = {"stl": 0, "mtl": 1, "mrn": 2}
    keys = sorted(groups, key=lambda key: (order[groups[key][0].config.paradigm], groups[key][0].id))
    names = differing([groups[key][0].config for key in keys])
    rows = [_row(key, name, groups[key], by_run, dev) for key, name in zip(keys, names, strict=True)]
    shown = tuple(task for task in tasks if any(task in row.cells for row in rows))
    score_names = {
        score.task: SCORE_NAMES.get(score.score_name, score.score_name)
        for found in by_run.values()
        for score in found.values()
    }
    return CompareView(split, shown, score_names, tuple(_with_best(rows, shown)))


def _row(
    key: str,
    name: str,
    runs: Sequence[Run],
    by_run: Mapping[int, Mapping[str, StoredScore]],
    dev: Mapping[int, Sequence[float]],
) -> Row:
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for run in runs:
        for task, score in by_run[run.id].items():
            values[task][run.config.seed] = score.score
    cells = {task: Cell(seeds, summary(list(seeds.values()))) for task, seeds in values.items()}
    known = [score for run in runs for score in dev.get(run.id, ())]
    mean = sum(known) / len(known) if known else float("-inf")
    return Row(key, name, runs[0].config, tuple(run.id for run in runs), cells, mean)


def _with_best(rows: Sequence[Row], tasks: Sequence[str]) -> list[Row]:
    best: dict[str, str] = {}
    for task in tasks:
        ranked = sorted((r for r in rows if task in r.cells), key=lambda r: -r.cells[task].summary.mean)
        if len(ranked) > 1 and _holds(_difference(ranked[0], ranked[1], task)):
            best[task] = ranked[0].key
    return [
        replace(
            row,
            cells={task: replace(cell, best=best.get(task) == row.key) for task, cell in row.cells.items()},
        )
        for row in rows
    ]


def _difference(a: Row, b: Row, task: str) -> PairedDifference | None:
    """The difference a − b over the seeds that both have; None where there is no such seed."""
    return paired_difference(a.cells[task].by_seed, b.cells[task].by_seed)


def _holds(difference: PairedDifference | None) -> bool:
    """Whether the 95% interval leaves zero out."""
    if difference is None or difference.low is None or difference.high is None:
        return False
    return difference.low > 0 or difference.high < 0


def default_pair(view: CompareView) -> tuple[str, str] | None:
    """The two rows to compare first: MRN against MTL, else against STL, else the first two.

    Of several pairs, the one that differs in the fewest other fields, so that the paradigm is what is
    compared; then the one with the most seeds, then the best on dev.
    """
    if len(view.rows) < 2:
        return None
    by_paradigm: dict[str, list[Row]] = defaultdict(list)
    for row in view.rows:
        by_paradigm[row.config.paradigm].append(row)
    for a, b in (("mrn", "mtl"), ("mrn", "stl"), ("mtl", "stl")):
        if by_paradigm[a] and by_paradigm[b]:
            pairs = itertools.product(by_paradigm[a], by_paradigm[b])
            first, second = max(pairs, key=lambda pair: _fitness(*pair))
            return first.key, second.key
    first, second = view.rows[:2]
    return second.key, first.key


def _fitness(a: Row, b: Row) -> tuple[int, int, float]:
    return -len(confounds(a.config, b.config)), min(a.seeds, b.seeds), a.dev + b.dev


def answers(view: CompareView, a: str, b: str) -> list[Answer]:
    """For each task that both rows have: what may be said of their difference."""
    rows = {row.key: row for row in view.rows}
    shared = [task for task in view.tasks if task in rows[a].cells and task in rows[b].cells]
    return [_answer(rows[a], rows[b], task) for task in shared]


def _answer(a: Row, b: Row, task: str) -> Answer:
    difference = _difference(a, b, task)
    if difference is None:
        gap = a.cells[task].summary.mean - b.cells[task].summary.mean
        return Answer(
            task,
            f"{signed_points(gap)} between the means; no seed in common, so no paired interval",
            None,
            False,
        )
    holds = _holds(difference)
    if difference.n < 2 or difference.low is None or difference.high is None:
        return Answer(
            task, f"{signed_points(difference.mean)}; one seed each, so no interval", difference, False
        )
    half = (difference.high - difference.low) / 2
    p_value = "" if difference.p is None else f", p {_p(difference.p)}"
    text = f"{signed_points(difference.mean)} ± {100 * half:.2f}, {plural(difference.n, 'seed')}{p_value}"
    return Answer(task, text, difference, holds)


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}" if value < 0.1 else f"= {value:.2f}"


def per_seed(view: CompareView) -> list[dict[str, str | float | int | None]]:
    """A line per configuration and seed, scores in percent, for the table and the CSV."""
    lines: list[dict[str, str | float | int | None]] = []
    for row in view.rows:
        seeds = sorted({seed for cell in row.cells.values() for seed in cell.by_seed})
        for seed in seeds:
            scores = {
                task: 100 * row.cells[task].by_seed[seed]
                if task in row.cells and seed in row.cells[task].by_seed
                else None
                for task in view.tasks
            }
            lines.append({"configuration": row.name, "seed": seed, **scores})
    return lines
