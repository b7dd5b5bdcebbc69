"""The values of the tables of runs: one for each share of a corpus, a line a configuration or a run."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import groupby
from statistics import fmean
from typing import Any

from core.config import PARADIGMS, RunConfig
from core.evaluation.comparison import compare_rows, highest_row
from core.evaluation.statistics import MeanSD, summary
from core.metrics import DEV_SCORE
from core.results.choice import DevScores
from core.results.methods import by_candidates, chosen_candidates
from core.results.naming import (
    SCORE_NAMES,
    UNREADABLE,
    corpus_name,
    encoder_title,
    field_text,
    field_texts,
    run_names,
    shortest_names,
)
from core.results.samples import (
    UNKNOWN,
    common_conditions,
    one_per_seed,
)
from core.store import Conditions, Store
from core.store.types import ACTIVE, Run, RunState
from core.wording import capitalised, plural, which_runs
from dashboard.runs.differences import distinct_texts
from dashboard.runs.rows import Row, rows_of, sorted_places
from dashboard.shared.run_views import fraction_done

PAGE = 25
"""Configurations on one page; twice as many runs."""
MOST_TESTED = 50
"""The most lines that are tested for the highest, page by page, on one text and share."""

SPLITS: Mapping[str, str] = {"test": "Test", "dev": "Dev"}
SORTS: Mapping[str, str] = {
    "new": "Newest first",
    "old": "Oldest first",
    "lambda": "Smallest λ",
    "time": "Longest training",
}
"""The orders of every store, by their name in the URL. `SPLIT-TASK` is one for each split and task."""
_BY_AGE = ("new", "old")


@dataclass(frozen=True)
class Line:
    """The runs of one configuration that were found (STL: of all its tasks), or one run (`run` is its id).

    `runs` are newest first. Those of a configuration under different conditions (`by_conditions`) make a line
    each. `name` is distinct in the table, `condition` its end beyond the configuration; `problem` is the
    reason why the runs cannot be read. `by_seed` has the scores in [0, 1] by split and task, of one run in
    progress those of its last epoch; `undefined` the undefined ones. `counted` runs make the means
    (`one_per_seed`; of scores those that succeeded), of which `seeds` are of one task. `scored_by` names the
    score of each task, `text` the text where the table has several. `seconds` is a mean. `conditions` are
    those of its runs.
    """

    run: int | None
    runs: tuple[Run, ...]
    name: str
    counted: int
    seeds: int
    by_seed: Mapping[tuple[str, str], Mapping[int, float]]
    undefined: Collection[tuple[str, str]]
    seconds: float | None
    scored_by: Mapping[str, str]
    text: str = ""
    condition: str = ""
    problem: str = ""
    conditions: Conditions = UNKNOWN

    @property
    def dev(self) -> DevScores:
        """The dev scores by task and seed, by which a candidate is chosen."""
        return {task: by_seed for (split, task), by_seed in self.by_seed.items() if split == "dev"}

    @property
    def run_ids(self) -> tuple[int, ...]:
        return tuple(run.id for run in self.runs)

    @property
    def config(self) -> RunConfig:
        return self.runs[0].config

    @cached_property
    def states(self) -> tuple[tuple[RunState, int], ...]:
        """The states that its runs are in, each with the number of runs."""
        states = Counter(run.state for run in self.runs)
        return tuple((state, states[state]) for state in RunState if states[state])

    @cached_property
    def learned_nothing(self) -> tuple[str, ...]:
        """The tasks that every run scores 0 on: on test where there are such scores, else on dev."""
        if self.is_active:
            return ()  # one may still learn
        is_zero = {key: not any(by_seed.values()) for key, by_seed in self.by_seed.items()}
        split = "test" if any(split == "test" for split, _ in is_zero) else "dev"
        return tuple(task for (of_split, task), is_so in is_zero.items() if of_split == split and is_so)

    @property
    def done(self) -> float:
        """The share of training steps that are done, in [0, 1], the mean over its runs."""
        return fmean(map(fraction_done, self.runs))

    @property
    def newest(self) -> datetime:
        """When its newest run was queued."""
        return max(run.created_at for run in self.runs)

    @cached_property
    def keywords(self) -> tuple[str, ...]:
        return tuple(sorted({word for run in self.runs for word in run.keywords}))

    @property
    def priority(self) -> int:
        """The highest of its queued runs."""
        return max((run.priority for run in self.runs if run.state is RunState.QUEUED), default=0)

    @cached_property
    def scores(self) -> dict[tuple[str, str], MeanSD]:
        """Their mean and spread over seeds."""
        return {key: summary(scores.values()) for key, scores in self.by_seed.items()}

    @property
    def family(self) -> tuple[float, str, str]:
        """The share, the score of POS and the text: only lines that agree in them are compared."""
        return self.config.fraction, self.config.pos_score, self.text

    @property
    def is_active(self) -> bool:
        """Whether one of its runs is in progress or queued."""
        return any(state in ACTIVE for state, _ in self.states)


@dataclass(frozen=True)
class Table:
    """The lines of one share of a corpus: scores after training on other data are no scores to compare.

    `shared` are texts on their common settings, `apart` those that not all tables of the corpus have.
    `tasks` are in the order of the store, `measures` names the scores of each task. `beyond` are lines on
    other pages of the families of these lines; families of more than `MOST_TESTED` lines (`untested`) have
    none, and no best line.

    Runs that cannot be read (`core.results.samples.readable`) have a table of their own, without scores.
    """

    corpus: str
    shared: tuple[str, ...]
    tasks: tuple[str, ...]
    lines: tuple[Line, ...]
    measures: Mapping[str, str]
    is_readable: bool = True
    beyond: tuple[Line, ...] = ()
    untested: frozenset[tuple[float, str, str]] = frozenset()
    apart: frozenset[str] = frozenset()

    @property
    def measure(self) -> str:
        """The score of all its tasks; empty where they have different ones."""
        names = set(self.measures.values())
        return names.pop() if len(names) == 1 else ""

    @property
    def has_spread(self) -> bool:
        """Whether a score is a mean of several seeds."""
        return any(score.n > 1 for line in self.lines for score in line.scores.values())

    def names(self, elsewhere: Collection[str]) -> list[str]:
        """The names of the lines without the fields that are shown `elsewhere`, in columns of their own."""
        if not self.is_readable:
            return [line.name for line in self.lines]
        firsts, conditions = [line.runs[0] for line in self.lines], [line.condition for line in self.lines]
        return _names(firsts, conditions, elsewhere, grouped=self.lines[0].run is None)

    def split(self, wanted: str) -> str:
        """Returns the split of the scores shown: the chosen one if this corpus has it."""
        scored = {split for line in self.lines for split, _ in (*line.by_seed, *line.undefined)}
        return wanted if wanted in scored or not scored else min(scored)

    def best(self, split: str, task: str) -> set[int]:
        """The places of the lines that are higher than each other method of their family, on any page.

        Of a method the line of the candidate that dev chose counts (`by_method`).
        """
        families: dict[Any, dict[int, Mapping[int, float]]] = defaultdict(dict)
        for index, line in self._methods(split):
            if (split, task) in line.by_seed:
                families[line.family, line.scored_by[task]][index] = line.by_seed[split, task]
        highest = (highest_row(compare_rows(family)) for family in families.values())
        return {index for index in highest if index is not None and index < len(self.lines)}

    def _methods(self, split: str) -> list[tuple[int, Line]]:
        """The lines that are compared on this split, with their places; those `beyond` are last."""
        families: dict[Any, list[Line]] = defaultdict(list)
        places: dict[int, int] = {}
        for index, line in enumerate((*self.lines, *self.beyond)):
            is_scored = any(scored == split for scored, _ in line.by_seed)
            if line.run is None and is_scored and line.family not in self.untested:
                families[line.family].append(line)
                places[id(line)] = index
        groups = [group for lines in families.values() for group in by_candidates(lines)]
        return [(places[id(line)], line) for group in groups for line in chosen_candidates(group)]


@dataclass(frozen=True)
class Page:
    """One page of runs, the `number`th. `configurations` and `runs` count all pages, which are of lines."""

    tables: tuple[Table, ...]
    number: int
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
    store: Store,
    runs: Sequence[Run],
    *,
    grouped: bool,
    sort: str,
    page: int | Collection[int],
    tasks: Sequence[str] = (),
) -> Page:
    """A page of these runs (newest first); beyond the last page, the last. Only its scores are read in full.

    `page` is its number, or runs of which it has the first. `tasks` gives the order of the columns of scores.
    """
    conditions = store.conditions(runs)
    rows = rows_of(runs, conditions, grouped=grouped)
    size = PAGE if grouped else 2 * PAGE
    pages = max(1, -(-len(rows.rows) // size))
    ordered = sorted_places(store, rows, runs, conditions, sort, grouped=grouped)
    if not isinstance(page, int):
        asked = {at for at, run in enumerate(runs) if run.id in page} if page else set()
        with_run = (at for at, place in enumerate(ordered) if asked.intersection(rows.places[place]))
        page = next(with_run, 0) // size + 1 if asked else 1
    page = min(max(1, page), pages)
    on_page = ordered[(page - 1) * size : page * size]
    shown = [rows.row(place, runs) for place in on_page]
    here = {row.family for row in shown if row.is_readable} if grouped else set()
    untested = {family for family in here if len(rows.families.get(family, ())) > MOST_TESTED}
    beyond = [
        rows.row(place, runs)
        for family in here - untested
        for place in rows.families.get(family, ())
        if place not in on_page
    ]
    read = [run for row in (*shown, *beyond) for run in row.runs]
    scores, names = _scores(store, read, with_latest=not grouped)

    def line(row: Row, name: str = "") -> Line:
        counted = one_per_seed(row.runs, conditions)
        return _line(row, counted, name, scores, names, conditions, is_run=not grouped)

    by_data: dict[tuple[str, float], list[Row]] = defaultdict(list)
    for row in shown:
        if row.is_readable:
            by_data[row.config.corpus, row.config.fraction].append(row)
    tables = []
    corpora = list(dict.fromkeys(corpus for corpus, _ in by_data))
    titles = dict(zip(corpora, distinct_texts(corpora, _data_title), strict=True))
    counts = Counter(corpus for corpus, _ in by_data)
    relations = {row.config.learned for row in shown if row.is_readable and row.config.paradigm == "mrn"}
    for (corpus, share), of_corpus in by_data.items():
        if grouped and sort in _BY_AGE:
            of_corpus = _in_sweeps(of_corpus)
        firsts = [row.runs[0] for row in of_corpus]
        configs = [run.config for run in firsts]
        every = {task for row in of_corpus for run in row.runs for task in run.config.tasks}
        columns = [*(task for task in tasks if task in every), *sorted(every.difference(tasks))]
        line_names = _names(firsts, [row.condition for row in of_corpus], grouped=grouped)
        lines = tuple(line(row, name) for row, name in zip(of_corpus, line_names, strict=True))
        scored_by: dict[str, dict[str, None]] = defaultdict(dict)
        for run in (run for row in of_corpus for run in row.runs):
            for task, score_name in names.get(run.id, {}).items():
                scored_by[task][SCORE_NAMES.get(score_name, score_name)] = None
        measures = {task: " or ".join(of_task) for task, of_task in scored_by.items()}
        others = tuple(line(row) for row in beyond if row.family[:2] == (corpus, share))
        no_best = frozenset(family[1:] for family in untested if family[:2] == (corpus, share))
        title, hidden = titles[corpus], {"learn"} if len(relations) < 2 else set()
        if counts[corpus] > 1:
            title, hidden = f"{title} · {field_text('fraction', share)}", hidden | {"fraction"}
        shared = _shared_settings(configs, columns, hidden)
        tables.append(Table(title, shared, tuple(columns), lines, measures, beyond=others, untested=no_best))
    tables = _with_apart(tables)
    if unreadable := [row.runs for row in shown if not row.is_readable]:
        lines = tuple(
            replace(
                _line(
                    Row(row),
                    row,
                    capitalised(which_runs(sorted(run.id for run in row))),
                    {},
                    {},
                    conditions,
                    is_run=not grouped,
                ),
                problem=row[0].problem or conditions[row[0].id].problem or "",
            )
            for row in unreadable
        )
        tables.append(Table(capitalised(UNREADABLE), (), (), lines, {}, is_readable=False))
    return Page(tuple(tables), page, pages, rows.configurations, len(runs))


def _in_sweeps(rows: Sequence[Row]) -> list[Row]:
    """Rows by age, with those launched together, which are of one age, in the order of the paradigms."""
    sweeps = groupby(rows, lambda row: row.runs[0].sweep or row.runs[0].id)
    return [row for _, of_sweep in sweeps for row in sorted(of_sweep, key=_paradigm_place)]


def _paradigm_place(row: Row) -> int:
    """Other systems are last."""
    return (*PARADIGMS, row.config.paradigm).index(row.config.paradigm)


def _names(
    firsts: Sequence[Run], conditions: Iterable[str], elsewhere: Collection[str] = (), *, grouped: bool
) -> list[str]:
    """Distinct names of configurations, each by its first run, or of runs; with the conditions behind."""
    configs = [run.config for run in firsts]
    names = shortest_names(configs, elsewhere) if grouped else run_names(firsts, elsewhere)
    return [" · ".join(filter(None, parts)) for parts in zip(names, conditions, strict=True)]


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
        latest = store.last_points([run.id for run in unscored], DEV_SCORE.key(task))
        for run_id, (_, _, value) in latest.items():
            by_run[run_id]["dev", task] = value
    return by_run, names


def _line(
    of: Row,
    counted: Sequence[Run],
    name: str,
    scores: _Scores,
    score_names: Mapping[int, Mapping[str, str]],
    conditions: Mapping[int, Conditions],
    *,
    is_run: bool,
) -> Line:
    """The line of a configuration, with means over the runs `counted`, or of one run.

    A run that has not succeeded has scores on a line of its own only.
    """
    row = of.runs
    scored_by: dict[str, str] = {}
    values: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    undefined: set[tuple[str, str]] = set()
    for run in counted:
        if not is_run and run.state is not RunState.SUCCEEDED:
            continue
        scored_by |= score_names.get(run.id, {})
        for key, value in scores.get(run.id, {}).items():
            if math.isfinite(value):
                values[key][run.config.seed] = value
            else:
                undefined.add(key)
    times = [run.seconds for run in counted if run.seconds is not None]
    return Line(
        run=row[0].id if is_run else None,
        runs=tuple(row),
        name=name,
        counted=len(counted),
        seeds=max(Counter(run.configuration_id for run in counted).values()),
        by_seed=values,
        undefined=undefined,
        seconds=fmean(times) if times else None,
        scored_by=scored_by,
        text=of.text,
        condition=of.condition,
        conditions=common_conditions([conditions[run.id] for run in counted if run.id in conditions]),
    )


def _data_title(corpus: str) -> str:
    """The corpus's name, with the size of its dev set in words: `demo · 50 dev sentences`."""
    options = dict(option.partition("=")[::2] for option in corpus.partition("?")[2].split("&"))
    dev = options.get("dev", "")
    if not dev.isdecimal():
        return corpus_name(corpus)
    return f"{corpus_name(corpus, hidden=('dev',))} · {plural(int(dev), 'dev sentence')}"


def _with_apart(tables: Sequence[Table]) -> list[Table]:
    """The tables with the parts of `shared` that not all tables of their corpus have."""
    corpora = [table.lines[0].config.corpus.partition("?")[0] for table in tables]
    by_corpus: dict[str, list[set[str]]] = defaultdict(list)
    for corpus, table in zip(corpora, tables, strict=True):
        by_corpus[corpus].append(set(table.shared))
    return [
        replace(table, apart=frozenset(table.shared) - by_corpus[corpus][0].intersection(*by_corpus[corpus]))
        for corpus, table in zip(corpora, tables, strict=True)
    ]


def _shared_settings(
    configs: Sequence[RunConfig], tasks: Sequence[str], hidden: Collection[str]
) -> tuple[str, ...]:
    """The settings that all these configurations of one corpus share: `pos, ner`, `minilm`, `3 epochs`.

    Without the fields `hidden`.
    """
    learned = {config.learned for config in configs if config.paradigm == "mrn"}
    orders = {config.tasks for config in configs if config.paradigm != "stl"} or {tuple(tasks)}
    # As the columns of scores are ordered.
    task_sets = {tuple(sorted(order, key=list(tasks).index)) for order in orders}
    shares = {config.fraction for config in configs if config.fraction < 1 and "fraction" not in hidden}
    encoders = {(config.encoder, config.encoder_training) for config in configs}
    epochs = {config.epochs for config in configs}
    return (
        *(field_texts("tasks", [value])[0] for value in task_sets if len(task_sets) == 1),
        *(field_text("fraction", share) for share in shares if len(shares) == 1),
        *(encoder_title(field_text("encoder", name), how) for name, how in encoders if len(encoders) == 1),
        *(field_text("learn", modes) for modes in learned if len(learned) == 1 and "learn" not in hidden),
        *(plural(count, "epoch") for count in epochs if len(epochs) == 1),
    )
