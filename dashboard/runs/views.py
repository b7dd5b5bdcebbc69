"""The values of the page Runs: tables, one for each corpus, and the differences of chosen runs."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import PurePath
from statistics import fmean
from typing import Any

import pandas as pd

from core.config import FIELD_HELP, RunConfig, comparison_values, has_field
from core.evaluation.comparison import compare_rows, highest_row
from core.evaluation.statistics import MeanSD, summary
from core.registry import FULL
from core.store import Conditions, Store
from core.store.records import ACTIVE, MetricKey, Run, RunState
from core.wording import all_of, capitalised, number, plural
from dashboard.shared.run_views import fraction_done
from dashboard.theme import order_tasks
from jobs.reports.naming import UNREADABLE, fields_apart, value_text
from jobs.reports.table import SCORE_NAMES, by_configuration, one_per_seed, readable

PAGE = 25
"""Configurations on one page; twice as many runs."""

SPLITS: Mapping[str, str] = {"test": "Test", "dev": "Dev"}
SORTS: Mapping[str, str] = {
    "new": "Newest first",
    "old": "Oldest first",
    "lambda": "Smallest λ",
    "time": "Longest training",
}
"""The orders of every store, by their name in the URL. `SPLIT-TASK` is one for each split and task."""

_APART = {"paradigm", "lambda", "tasks", "fraction", "encoder", "encoder_training", "corpus"}
"""Fields that do not stand among the settings: they have a column, or a table, of their own."""


@dataclass(frozen=True)
class Line:
    """The runs of one configuration that were found (STL: of all its tasks), or one run (`run` is its id).

    `cells` has, by column, the text of what tells it from the other lines of its table; `by_seed`, by split
    and task, the scores in [0, 1], of one run in progress those of its last epoch, `undefined` of what scores
    are undefined. `counted` runs make the
    means (`one_per_seed`), of which `seeds` are of one task. `done` and `seconds` are means, `priority` the
    highest of the queued runs.
    """

    run: int | None
    run_ids: tuple[int, ...]
    config: RunConfig
    cells: Mapping[str, str]
    counted: int
    seeds: int
    states: tuple[tuple[RunState, int], ...]
    done: float
    by_seed: Mapping[tuple[str, str], Mapping[int, float]]
    undefined: Collection[tuple[str, str]]
    seconds: float | None
    newest: datetime
    keywords: tuple[str, ...]
    priority: int

    @cached_property
    def scores(self) -> dict[tuple[str, str], MeanSD]:
        """Their mean and spread over seeds."""
        return {key: summary(scores.values()) for key, scores in self.by_seed.items()}

    @property
    def is_active(self) -> bool:
        """Whether one of its runs is in progress or queued."""
        return any(state in ACTIVE for state, _ in self.states)


@dataclass(frozen=True)
class Table:
    """The lines of one corpus.
    `shared` is a text on their common settings, `tasks` are in the order of the store, `measures` names the
    scores of each task.

    Runs that cannot be read (`jobs.reports.table.readable`) have a table of their own, without scores.
    """

    corpus: str
    shared: str
    tasks: tuple[str, ...]
    lines: tuple[Line, ...]
    measures: Mapping[str, str]
    is_readable: bool = True

    def split(self, wanted: str) -> str:
        """The split whose scores are shown; another one if this corpus has only that."""
        scored = {split for line in self.lines for split, _ in (*line.by_seed, *line.undefined)}
        return wanted if wanted in scored or not scored else min(scored)

    def best(self, split: str, task: str) -> set[int]:
        """The places of the lines that are higher than each other one with the same share and score."""
        families: dict[tuple[float, str], dict[int, Mapping[int, float]]] = defaultdict(dict)
        for index, line in enumerate(self.lines):
            if line.run is None and (split, task) in line.by_seed:
                families[line.config.fraction, line.config.pos_score][index] = line.by_seed[split, task]
        highest = (highest_row(compare_rows(family)) for family in families.values())
        return {index for index in highest if index is not None}


@dataclass(frozen=True)
class Page:
    """One page of runs. `configurations` and `runs` count all pages."""

    tables: tuple[Table, ...]
    pages: int
    configurations: int
    runs: int

    @property
    def lines(self) -> list[Line]:
        """The lines of all tables."""
        return [line for table in self.tables for line in table.lines]


def sorts(tasks: Sequence[str]) -> dict[str, str]:
    """Every order of the table with its words."""
    best = {f"{split}-{task}": f"Best on {split}, {task}" for split in SPLITS for task in tasks}
    return {**SORTS, **best}


def page_of(
    store: Store, runs: Sequence[Run], *, grouped: bool, sort: str, page: int, tasks: Sequence[str] = ()
) -> Page:
    """A page of these runs (newest first); beyond the last page, the last. Only its scores are read in full.

    `tasks` gives the order of the columns of scores.
    """
    of_configurations = list(by_configuration(runs).values())
    rows = of_configurations if grouped else [[run] for run in runs]
    size = PAGE if grouped else 2 * PAGE
    pages = max(1, -(-len(rows) // size))
    page = min(max(1, page), pages)
    shown = _sorted(store, rows, sort)[(page - 1) * size : page * size]
    scores, names_of_scores = _scores(store, [run for row in shown for run in row], with_latest=not grouped)
    conditions = store.conditions(run for row in shown for run in row)
    by_corpus: dict[str, list[list[Run]]] = defaultdict(list)
    unreadable: list[list[Run]] = []
    for row in shown:
        kept, _ = readable(row, conditions)
        if kept:
            by_corpus[kept[0].config.corpus].append(kept)
        if others := [run for run in row if run not in kept]:
            unreadable.append(others)
    tables = []
    names = _distinct(list(by_corpus), lambda corpus: PurePath(corpus).name or corpus)
    for name, of_corpus in zip(names, by_corpus.values(), strict=True):
        every = {task for row in of_corpus for run in row for task in run.config.tasks}
        columns = [*(task for task in tasks if task in every), *sorted(every.difference(tasks))]
        shared, cells = _told_apart(of_corpus, columns)
        lines = (
            _line(row, one_per_seed(row, conditions), texts, scores, is_run=not grouped)
            for row, texts in zip(of_corpus, cells, strict=True)
        )
        scored_by: dict[str, dict[str, None]] = defaultdict(dict)
        for run in (run for row in of_corpus for run in row):
            for task, score_name in names_of_scores.get(run.id, {}).items():
                scored_by[task][SCORE_NAMES.get(score_name, score_name)] = None
        measures = {task: " or ".join(of_task) for task, of_task in scored_by.items()}
        tables.append(Table(name, shared, tuple(columns), tuple(lines), measures))
    if unreadable:
        lines = (
            _line(
                row,
                row,
                {"Problem": row[0].problem or conditions[row[0].id].problem or ""},
                {},
                is_run=not grouped,
            )
            for row in unreadable
        )
        tables.append(Table(capitalised(UNREADABLE), "", (), tuple(lines), {}, is_readable=False))
    return Page(tuple(tables), pages, len(of_configurations), len(runs))


def _sorted(store: Store, rows: list[list[Run]], sort: str) -> list[list[Run]]:
    """The rows by their mean, highest first; rows without a value last, in the order given."""
    runs = [run for row in rows for run in row]
    conditions: Mapping[int, Conditions] = {}
    values: Mapping[int, float]
    split, _, task = sort.partition("-")
    if task:
        values, conditions = store.mean_scores(split, task), store.conditions(runs)
    elif sort == "lambda":
        values = {run.id: -run.config.lambda_ for run in runs if run.config.lambda_ is not None}
    elif sort == "time":
        values = {run.id: run.seconds for run in runs if run.seconds is not None}
    else:
        return rows[::-1] if sort == "old" else rows

    def place(row: Sequence[Run]) -> tuple[bool, float]:
        of_row = [values[run.id] for run in one_per_seed(row, conditions) if run.id in values]
        return not of_row, -fmean(of_row) if of_row else 0.0

    return sorted(rows, key=place)


_Scores = Mapping[int, Mapping[tuple[str, str], float]]


def _scores(
    store: Store, runs: Sequence[Run], *, with_latest: bool
) -> tuple[_Scores, Mapping[int, Mapping[str, str]]]:
    """The scores by run, split and task; and the name of the score by run and task.
    `with_latest`: runs without scores have the dev scores of the last epoch.
    """
    by_run: dict[int, dict[tuple[str, str], float]] = defaultdict(dict)
    names: dict[int, dict[str, str]] = defaultdict(dict)
    for score in store.scores([run.id for run in runs], with_reports=False):
        by_run[score.run_id][score.split, score.task] = score.score
        names[score.run_id][score.task] = score.score_name
    unscored = [run for run in runs if run.id not in by_run] if with_latest else []
    for task in {task for run in unscored for task in run.config.tasks}:
        latest = store.latest_metrics([run.id for run in unscored], MetricKey(task, "dev", "score"))
        for run_id, value in latest.items():
            by_run[run_id]["dev", task] = value
    return by_run, names


def _line(
    row: Sequence[Run], counted: Sequence[Run], cells: Mapping[str, str], scores: _Scores, *, is_run: bool
) -> Line:
    """The line of a configuration, with means over the runs `counted`, or of one run."""
    states = Counter(run.state for run in row)
    values: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    undefined: set[tuple[str, str]] = set()
    for run in counted:
        for key, value in scores.get(run.id, {}).items():
            if math.isfinite(value):
                values[key][run.config.seed] = value
            else:
                undefined.add(key)
    times = [run.seconds for run in counted if run.seconds is not None]
    return Line(
        run=row[0].id if is_run else None,
        run_ids=tuple(run.id for run in row),
        config=row[0].config,
        cells=cells,
        counted=len(counted),
        seeds=max(Counter(run.configuration_id for run in counted).values()),
        states=tuple((state, states[state]) for state in RunState if states[state]),
        done=fmean(map(fraction_done, row)),
        by_seed=values,
        undefined=undefined,
        seconds=fmean(times) if times else None,
        newest=max(run.created_at for run in row),
        keywords=tuple(sorted({word for run in row for word in run.keywords})),
        priority=max((run.priority for run in row if run.state is RunState.QUEUED), default=0),
    )


def _told_apart(rows: Sequence[Sequence[Run]], columns: Sequence[str]) -> tuple[str, list[dict[str, str]]]:
    """The common settings of these rows of one corpus, and for each row the texts of its other settings.

    Configurations that are not the same have different texts. `columns` are all tasks in order.
    """
    configs = [row[0].config for row in rows]
    texts = {
        "λ": _distinct([config.lambda_ for config in configs], number),
        "Tasks": _task_texts(rows, columns),
        "Share": _distinct([config.fraction for config in configs], lambda share: f"{100 * share:g}%"),
        "Encoder": _distinct(
            [(config.encoder, config.encoder_training) for config in configs], _encoder_text
        ),
        "Settings": _setting_texts(configs),
    }
    shared = {name: column[0] for name, column in texts.items() if len(set(column)) == 1}
    templates = {"λ": "λ {}", "Share": "{} of the data"}
    parts = [
        templates.get(name, "{}").format(text) for name, text in shared.items() if text not in ("", "100%")
    ]
    if len({config.epochs for config in configs}) == 1:
        parts.append(plural(configs[0].epochs, "epoch"))
    cells = [
        {name: column[index] for name, column in texts.items() if name not in shared}
        for index in range(len(rows))
    ]
    return " · ".join(parts), cells


def _distinct(values: Sequence[Any], text: Callable[[Any], str]) -> list[str]:
    """The values as short texts, empty for None; whole where two different values would read the same."""
    texts = ["" if value is None else text(value) for value in values]
    if len(set(texts)) == len(set(map(repr, values))):
        return texts
    return ["" if value is None else str(value) for value in values]


def _task_texts(rows: Sequence[Sequence[Run]], columns: Sequence[str]) -> list[str]:
    """The tasks of each row: STL's, one of each run, as a row names them that learns the same together."""
    together = {frozenset(row[0].config.tasks): row[0].config.tasks for row in rows}
    texts = []
    for row in rows:
        tasks = frozenset(task for run in row for task in run.config.tasks)
        in_order = tuple(task for task in columns if task in tasks)
        is_stl = row[0].config.paradigm == "stl"
        texts.append(", ".join(together.get(tasks, in_order) if is_stl else row[0].config.tasks))
    return texts


def _encoder_text(value: tuple[str, str]) -> str:
    encoder, training = value
    name = PurePath(encoder).name if PurePath(encoder).is_absolute() else encoder
    return name if training == FULL else f"{name} ({training})"


def _setting_texts(configs: Sequence[RunConfig]) -> list[str]:
    """All other fields in which configurations differ: `paper · exact · epochs 6`.

    That a configuration lacks a field because of its paradigm or encoder is no difference.
    """
    columns = [texts for field, texts in fields_apart(configs) if field not in _APART]
    return [" · ".join(filter(None, texts)) for texts in zip(*columns, strict=True)] or [""] * len(configs)


def differences(store: Store, ids: Sequence[int]) -> pd.DataFrame:
    """The fields and training facts in which these runs differ: a row for each, a column per run.

    ≠ marks what is not as in the first run that has the field. That a run lacks it, because of its paradigm
    or encoder or because it has not begun, is no difference. Columns follow `ids`; unknown ids are left out.
    """
    runs = {run.id: run for run in store.runs(ids)}
    columns = {
        f"Run {run_id}": {**_configuration_texts(runs[run_id]), **_facts_text(runs[run_id])}
        for run_id in ids
        if run_id in runs
    }
    frame = pd.DataFrame(columns, dtype=object)
    frame = frame[frame.nunique(axis=1) > 1]
    first: Any = frame.bfill(axis=1).iloc[:, 0] if len(frame) else []
    frame = frame.where(frame.isna() | frame.eq(first, axis=0), "≠ " + frame).fillna("–")
    return frame.rename(index=lambda name: name.replace("_", " ")).rename_axis("Field")


def _configuration_texts(run: Run) -> dict[str, str]:
    """The texts of the fields that the run has."""
    values = run.config.values().items()
    return {
        name: value_text(value) for name, value in values if name == "columns" or has_field(run.config, name)
    }


def _facts_text(run: Run) -> dict[str, str]:
    """The facts of a training beyond its configuration; of one that has not begun only its machine."""
    facts = run.facts
    texts = {"machine": run.owner.host} if run.owner is not None else {}
    if not facts:
        return texts
    return {
        **texts,
        "device used": str(facts["device"]),
        "precision used": str(facts["precision"]),
        "threads": str(facts["threads"]),
        **({"alignment used": str(facts["alignment"])} if facts.get("alignment") else {}),
        **{f"training words, {task['name']}": f"{task['train_tokens']:,}" for task in facts.get("tasks", ())},
        **{f"{name} version": str(version) for name, version in facts["versions"].items()},
    }


def difference_sentence(runs: Sequence[Run]) -> str:
    """The differences of these runs in plain text: the seed only, or the fields."""
    these = f"These {plural(len(runs), 'run')}"
    rows = list(by_configuration(runs).values())
    seeds = [frozenset(run.config.seed for run in row) for row in rows]
    if len(rows) == 1:
        tasks = order_tasks(run.config.tasks for run in runs)
        if runs[0].config.paradigm == "stl" and len(tasks) > 1:
            return f"{these} are STL's of {all_of(tasks)}; the rest but the seed is the same."
        if len(seeds[0]) == 1:
            return f"{these} have the same description and the same seed."
        repeated = ", and some have the same seed" if len(seeds[0]) < len(runs) else ""
        return f"{these} are the same in everything but the seed{repeated}."
    configs = [comparison_values(row[0].config) for row in rows]
    differ = [field for field, _ in fields_apart([row[0].config for row in rows])]
    if not differ:  # the columns of a file that knows them
        differ = [
            name for name in FIELD_HELP if len({json.dumps(values.get(name)) for values in configs}) > 1
        ]
    fields = [FIELD_HELP[name].symbol or name.replace("_", " ") for name in differ]
    seed = "the seeds are the same" if len(set(seeds)) == 1 else "the seeds are not the same"
    return f"{these} are {len(rows):,} configurations. They differ in {all_of(fields)}; {seed}."
