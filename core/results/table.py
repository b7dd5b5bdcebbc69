"""Scores of finished runs as a table of configurations × tasks over seeds, for pages and the terminal."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean

from core.config import OTHER, RunConfig
from core.corpora.repeats import repeats_notes
from core.evaluation.comparison import HIGHER, Comparison, check_matters, compare_rows, highest_row
from core.evaluation.costs import Cost, cost_of, run_cost
from core.evaluation.statistics import MATTERS, MeanSD, summary
from core.registry import WORD_ENCODERS, family
from core.results.choice import DevScores
from core.results.naming import (
    SCORE_NAMES,
    encoder_title,
    field_text,
    field_texts,
    shortest_names,
)
from core.results.samples import UNKNOWN, by_configuration, common_conditions, condition_texts
from core.store import Conditions, Run, RunWithFacts, StoredScore
from core.wording import all_of, plural, which_runs

_OTHERS = "other systems"
_MOST_NAMED = 4
_ORDER = {"stl": 0, "mtl": 1, "mrn": 2, OTHER: 3}
MEAN_OF_TASKS = "mean of tasks"
"""What stands for a task where scores are means over tasks."""


@dataclass(frozen=True)
class ResultCell:
    """One task's scores of one configuration by seed, in [0, 1], with the ids of the runs."""

    by_seed: Mapping[int, float]
    run_ids: Mapping[int, int]

    @cached_property
    def summary(self) -> MeanSD:
        """The mean and the spread of the scores."""
        return summary(self.by_seed.values())


@dataclass(frozen=True)
class ResultRow:
    """One configuration (STL: one per task, joined), with a cell for each task it was scored on.

    `label` is distinct in its block, the runs over one encoder or over encoders that read word vectors
    (`core.registry.family`); `name` is distinct in the table.
    """

    key: str
    name: str
    label: str
    block: str
    config: RunConfig
    run_ids: tuple[int, ...]
    cells: Mapping[str, ResultCell]
    conditions: Conditions
    """The known conditions of its runs, on which scores depend besides the description."""
    dev: DevScores
    """The dev scores by task and seed, by which a configuration is picked without test scores."""
    undefined: Mapping[str, tuple[int, ...]]
    """The runs with an undefined score, by task."""
    cost: Cost | None = None
    """The cost; None where the runs were loaded without facts, or did not record it."""
    method: str = ""
    """The name of its method, distinct among the methods of a table `by_method`, which sets it."""
    candidates: tuple[ResultRow, ...] = ()
    """The configurations among which dev chose this one, itself too."""
    dev_means: Mapping[str, float] = field(default_factory=dict)
    """The mean dev scores that were compared, by the key of the candidate."""

    @property
    def choice(self) -> str:
        """`best of 5 on dev`; empty where nothing was chosen."""
        return f"best of {len(self.candidates)} on dev" if len(self.candidates) > 1 else ""

    @property
    def chosen(self) -> str:
        """The name of the candidate that was chosen: `MRN λ=0.3`; empty where nothing was."""
        return next((of.label for of in self.candidates if self.choice and of.key == self.key), "")

    @cached_property
    def mean_by_seed(self) -> dict[int, float]:
        """The mean over its tasks, of the seeds that all of them have; empty for fewer than two tasks."""
        if len(self.cells) < 2:
            return {}
        seeds = set.intersection(*(set(cell.by_seed) for cell in self.cells.values()))
        return {seed: fmean(cell.by_seed[seed] for cell in self.cells.values()) for seed in sorted(seeds)}

    @property
    def tried(self) -> tuple[ResultRow, ...]:
        """The candidates; the row itself where it was not chosen among several."""
        return self.candidates or (self,)

    @property
    def seeds(self) -> int:
        """The least number of seeds of a task."""
        return min((cell.summary.n for cell in self.cells.values()), default=0)


@dataclass(frozen=True)
class ResultTable:
    """Rows in the order of the papers: family by family, in each STL, MTL, MRN; columns are tasks.

    `scored_by` has the name of each task's score in the store. A row has no cell for a task where all its
    scores are undefined. `matters` in [0, 1] is the smallest difference that matters; `baseline` is the key
    of the row with which alone the others are compared, None for all pairs (`asking`).
    """

    split: str
    tasks: tuple[str, ...]
    scored_by: Mapping[str, str]
    rows: tuple[ResultRow, ...]
    notes: tuple[str, ...] = ()
    """Notes on runs of one description in several rows, and on undefined scores."""

    matters: float = MATTERS
    baseline: str | None = None

    def asking(self, *, matters: float | None = None, baseline: str | None = None) -> ResultTable:
        """The same rows for other comparisons: of all pairs, or with `baseline`, the key of a row.

        `matters` is in [0, 1], by default as it is. Raises ConfigError for one that is no difference of
        scores, KeyError where there is no such row.
        """
        if baseline is not None:
            self.row(baseline)
        return replace(
            self, matters=self.matters if matters is None else check_matters(matters), baseline=baseline
        )

    @cached_property
    def comparisons(self) -> Mapping[str, Mapping[tuple[str, str], Comparison]]:
        """The differences between rows, by task and keys; those of a task are a family of tests."""
        return {
            task: self._compared({row.key: row.cells[task].by_seed for row in self.rows if task in row.cells})
            for task in self.tasks
        }

    @cached_property
    def mean_comparisons(self) -> Mapping[tuple[str, str], Comparison]:
        """The differences between the means over tasks of rows that have the same tasks, two or more.

        They are a family of tests for each set of tasks.
        """
        alike: dict[frozenset[str], dict[str, Mapping[int, float]]] = defaultdict(dict)
        for row in self.rows:
            if row.mean_by_seed:
                alike[frozenset(row.cells)][row.key] = row.mean_by_seed
        return {pair: comparison for of in alike.values() for pair, comparison in self._compared(of).items()}

    def _compared(self, by_row: Mapping[str, Mapping[int, float]]) -> Mapping[tuple[str, str], Comparison]:
        if self.baseline is not None and self.baseline not in by_row:
            return {}
        return compare_rows(by_row, self.matters, self.baseline)

    @cached_property
    def bold(self) -> frozenset[tuple[str, str]]:
        """The cells in bold, by row and task: of rows higher than each other row, or than the baseline."""
        if self.baseline is not None:
            return frozenset(
                (key, task)
                for task, compared in self.comparisons.items()
                for (key, base), comparison in compared.items()
                if base == self.baseline and comparison.verdict == HIGHER
            )
        highest = {task: highest_row(compared) for task, compared in self.comparisons.items()}
        return frozenset((key, task) for task, key in highest.items() if key is not None)

    @property
    def tests(self) -> int:
        """The number of tests of the largest family: what Holm's correction counts."""
        families = (*self.comparisons.values(), self.mean_comparisons)
        return max((sum(of.p is not None for of in family.values()) // 2 for family in families), default=0)

    def mean_scores(self, row: ResultRow) -> str:
        """The scores of which the mean over a row's tasks is: `F1 of chunk and ner, accuracy of 9 tasks`."""
        tasks: dict[str, list[str]] = defaultdict(list)
        for task in self.tasks:
            if task in row.cells:
                tasks[self.score_names[task]].append(task)
        return ", ".join(
            f"{name} of {all_of(of) if len(of) <= _MOST_NAMED else plural(len(of), 'task')}"
            for name, of in tasks.items()
        )

    @property
    def score_names(self) -> dict[str, str]:
        """The title of each task's score."""
        return {task: SCORE_NAMES.get(name, name) for task, name in self.scored_by.items()}

    @property
    def scored_tasks(self) -> list[str]:
        """The tasks with a defined score in at least one row."""
        return [task for task in self.tasks if any(task in row.cells for row in self.rows)]

    def row(self, key: str) -> ResultRow:
        """The row of that key. Raises KeyError."""
        return {row.key: row for row in self.rows}[key]

    @property
    def blocks(self) -> dict[str, list[ResultRow]]:
        """The rows by family of encoders, in order."""
        by_block: dict[str, list[ResultRow]] = {}
        for row in self.rows:
            by_block.setdefault(row.block, []).append(row)
        return by_block


def tabulate(
    runs: Sequence[Run],
    scores: Iterable[StoredScore],
    split: str,
    tasks: Sequence[str] | None = None,
    conditions: Mapping[int, Conditions] | None = None,
) -> ResultTable:
    """The table of these runs' scores on that split; dev scores decide which rows may be picked.

    STL's single-task runs of otherwise equal configurations make one row. Where a configuration was trained
    more than once with a seed, the latest counts: a repeated seed is no further sample. An undefined score
    counts in no cell, and has a note. `tasks` is the order of the columns, by default that of the runs. Runs
    of one description with different choices for `auto` (by `conditions`) make a row each, with a note; so
    have sentences of that split that training shows.
    """
    by_run: dict[int, dict[str, StoredScore]] = defaultdict(dict)
    dev: dict[int, dict[str, float]] = defaultdict(dict)
    for score in scores:
        if score.split == split:
            by_run[score.run_id][score.task] = score
        if score.split == "dev" and score.is_defined:
            dev[score.run_id][score.task] = score.score
    parts: dict[str, list[Run]] = defaultdict(list)
    resolved: dict[str, str] = {}
    ordered = sorted((run for run in runs if run.id in by_run), key=lambda run: run.id)
    for key, same in by_configuration(ordered).items():
        texts = condition_texts(same, conditions or {})
        for run in same:
            part = f"{key} {texts[run.id]}"
            parts[part].append(run)
            if texts[run.id]:
                resolved[part] = texts[run.id]
    rows = _named([_row(part, of, by_run, dev, conditions or {}) for part, of in parts.items()], resolved)
    order = _task_order(runs) if tasks is None else tasks
    scored_by = {score.task: score.score_name for by_task in by_run.values() for score in by_task.values()}
    shown = tuple(task for task in order if task in scored_by)
    undefined = undefined_notes(score for run in ordered for score in by_run[run.id].values())
    shared = [repeat for run in ordered for repeat in (conditions or {}).get(run.id, UNKNOWN).repeats]
    notes = (*_notes(rows, resolved), *undefined, *repeats_notes(shared, split))
    return ResultTable(split, shown, scored_by, tuple(rows), notes)


def _cost(run: Run) -> Cost | None:
    return run_cost(run.facts) if isinstance(run, RunWithFacts) else None


def _row(
    key: str,
    runs: Sequence[Run],
    by_run: Mapping[int, Mapping[str, StoredScore]],
    dev: Mapping[int, Mapping[str, float]],
    conditions: Mapping[int, Conditions],
) -> ResultRow:
    """The row of these runs, which are in order: of a seed the latest counts."""
    latest: dict[str, dict[int, int]] = defaultdict(dict)
    for run in runs:
        for task in by_run[run.id]:
            latest[task][run.config.seed] = run.id
    by_id = {run.id: run for run in runs}
    counted = {(by_id[run_id].config.seed, run_id) for of in latest.values() for run_id in of.values()}
    costs: dict[int, list[Cost | None]] = defaultdict(list)
    for seed, run_id in sorted(counted):
        costs[seed].append(_cost(by_id[run_id]))
    defined = {
        task: {seed: run_id for seed, run_id in sorted(of.items()) if by_run[run_id][task].is_defined}
        for task, of in latest.items()
    }
    on_dev: dict[str, dict[int, float]] = defaultdict(dict)
    for seed, run_id in sorted(counted):
        for task, score in dev.get(run_id, {}).items():
            on_dev[task][seed] = score
    recorded = [conditions[run_id] for _, run_id in counted if run_id in conditions]
    return ResultRow(
        key,
        name="",
        label="",
        block="",
        config=runs[0].config,
        run_ids=tuple(by_id),
        cells={
            task: ResultCell({seed: by_run[run_id][task].score for seed, run_id in of.items()}, of)
            for task, of in defined.items()
            if of
        },
        conditions=common_conditions(recorded),
        dev=dict(on_dev),
        undefined={
            task: tuple(run_id for run_id in of.values() if not by_run[run_id][task].is_defined)
            for task, of in latest.items()
            if len(of) > len(defined[task])
        },
        cost=cost_of(costs.values()),
    )


def undefined_notes(scores: Iterable[StoredScore]) -> tuple[str, ...]:
    """A sentence for each task and reason with undefined scores."""
    runs: dict[tuple[str, str], set[int]] = defaultdict(set)
    for score in scores:
        if not score.is_defined:
            runs[score.task, score.reason].add(score.run_id)
    return tuple(
        f"The score of {task} is undefined in {which_runs(sorted(of))}, and counts in no mean: {reason}."
        for (task, reason), of in runs.items()
    )


def _notes(rows: Iterable[ResultRow], resolved: Mapping[str, str]) -> tuple[str, ...]:
    parts = [
        f"{resolved[row.key]} in {which_runs(sorted(row.run_ids))}" for row in rows if row.key in resolved
    ]
    first = "Runs of one description have a row for each choice of auto"
    return (f"{first}: {'; '.join(parts)}.",) if parts else ()


def _named(rows: Sequence[ResultRow], resolved: Mapping[str, str]) -> list[ResultRow]:
    """The rows in order, with their names; `resolved` has the choices for `auto` that differ."""
    blocks: dict[tuple[str, str], list[ResultRow]] = {}
    others = [row for row in rows if row.config.paradigm == OTHER]
    for row in rows:
        if row not in others:
            blocks.setdefault((family(row.config.encoder), row.config.encoder_training), []).append(row)
    bases = list(dict.fromkeys(_base(encoder) for encoder, _ in blocks))
    order = sorted(blocks, key=lambda block: (bases.index(_base(block[0])), block[0] != _base(block[0])))
    encoders = [{row.config.encoder for row in blocks[block]} for block in order]
    names = [block[0] if len(of) > 1 else min(of) for block, of in zip(order, encoders, strict=True)]
    named = []
    for block, of, text in zip(order, encoders, field_texts("encoder", names), strict=True):
        title = text if len(of) > 1 else encoder_title(text, block[1])
        block_rows = sorted(blocks[block], key=_sort_key)
        labels = shortest_names([row.config for row in block_rows])
        for index, row in enumerate(block_rows):
            encoder = field_text("encoder", row.config.encoder)
            more = [encoder] if len(of) > 1 and encoder not in labels[index].split(" · ") else []
            labels[index] = " · ".join([labels[index], *more, *filter(None, [resolved.get(row.key)])])
        taken = Counter(labels)
        for row, label in zip(block_rows, labels, strict=True):
            own_label = label if taken[label] == 1 else f"{label} (run {row.run_ids[0]})"
            # Where a block has several encoders its labels name them.
            name = own_label if len(order) == 1 or len(of) > 1 else f"{own_label} · {title}"
            named.append(replace(row, name=name, label=own_label, block=title))
    names_of_others = shortest_names([row.config for row in others])
    for row, name in zip(others, names_of_others, strict=True):
        named.append(replace(row, name=name, label=name, block=_OTHERS))
    return named


def _sort_key(row: ResultRow) -> tuple[int, int, int]:
    """The order of the papers: by paradigm, then by encoder in the order of the registry."""
    encoders = list(WORD_ENCODERS)
    encoder = row.config.encoder
    return _ORDER[row.config.paradigm], encoders.index(encoder) if encoder in encoders else 0, row.run_ids[0]


def _base(encoder: str) -> str:
    return encoder.partition("+")[0]


def _task_order(runs: Iterable[Run]) -> list[str]:
    """The tasks in the order of the run with most tasks, the others after them."""
    named = sorted((run.config.tasks for run in runs), key=len, reverse=True)
    return list(dict.fromkeys(task for tasks in named for task in tasks))
