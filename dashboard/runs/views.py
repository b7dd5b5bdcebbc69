"""The values of the page Runs: tables, one for each corpus, and the differences of chosen runs."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import PurePath
from statistics import fmean
from typing import Any

import pandas as pd

from core.config import FIELD_HELP, RunConfig, comparison_values, has_field
from core.corpora.assembly import TEXT_VERSION, has_later_tasks
from core.evaluation.comparison import compare_rows, highest_row
from core.evaluation.statistics import MeanSD, summary
from core.events import RunFacts
from core.metrics import DEV_SCORE
from core.results.choice import DevScores
from core.results.methods import by_candidates, chosen_candidates
from core.results.naming import (
    SCORE_NAMES,
    UNREADABLE,
    encoder_title,
    field_text,
    field_texts,
    fields_apart,
    run_names,
    shortest_names,
    value_text,
)
from core.results.samples import (
    UNKNOWN,
    by_conditions,
    by_configuration,
    common_conditions,
    one_per_seed,
    readable,
    sampled,
    text_names,
)
from core.store import Conditions, Store
from core.store.types import ACTIVE, Run, RunState, RunWithFacts
from core.wording import all_of, capitalised, number, plural, which_runs
from dashboard.shared.run_views import fraction_done
from dashboard.theme import order_tasks

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


@dataclass(frozen=True)
class Line:
    """The runs of one configuration that were found (STL: of all its tasks), or one run (`run` is its id).

    `runs` are newest first. Those of a configuration under different conditions (`by_conditions`) make a line
    each. `name` is distinct in the table; `problem` is the reason why the runs cannot be read. `by_seed` has
    the scores in [0, 1] by split and task, of one run in progress those of its last epoch; `undefined` the
    undefined ones. `counted` runs make the means (`one_per_seed`; of scores those that succeeded), of which
    `seeds` are of one task. `scored_by` names the score of each task, `text` the text where the table has
    several. `seconds` is a mean. `conditions` are those of its runs.
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
    """The lines of one corpus.
    `shared` is a text on their common settings, `tasks` are in the order of the store, `measures` names the
    scores of each task. `beyond` are lines on other pages of the families of these lines; families of more
    than `MOST_TESTED` lines (`untested`) have none, and no best line.

    Runs that cannot be read (`core.results.samples.readable`) have a table of their own, without scores.
    """

    corpus: str
    shared: str
    tasks: tuple[str, ...]
    lines: tuple[Line, ...]
    measures: Mapping[str, str]
    is_readable: bool = True
    beyond: tuple[Line, ...] = ()
    untested: frozenset[tuple[float, str, str]] = frozenset()

    @property
    def measure(self) -> str:
        """The score of all its tasks; empty where they have different ones."""
        names = set(self.measures.values())
        return names.pop() if len(names) == 1 else ""

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
    rows = _rows(runs, conditions, grouped=grouped)
    size = PAGE if grouped else 2 * PAGE
    pages = max(1, -(-len(rows) // size))
    ordered = _sorted(store, rows, conditions, sort, grouped=grouped)
    if not isinstance(page, int):
        with_run = (place for place, row in enumerate(ordered) if any(run.id in page for run in row.runs))
        page = next(with_run, 0) // size + 1
    page = min(max(1, page), pages)
    shown = ordered[(page - 1) * size : page * size]
    beyond, untested = _families(rows, shown) if grouped else ([], frozenset())
    read = [run for row in (*shown, *beyond) for run in row.runs]
    scores, names = _scores(store, read, with_latest=not grouped)

    def line(row: _Row, name: str = "") -> Line:
        counted = one_per_seed(row.runs, conditions)
        return _line(row, counted, name, scores, names, conditions, is_run=not grouped)

    by_corpus: dict[str, list[_Row]] = defaultdict(list)
    for row in shown:
        if row.is_readable:
            by_corpus[row.config.corpus].append(row)
    tables = []
    titles = _distinct(list(by_corpus), lambda corpus: PurePath(corpus).name or corpus)
    for title, (corpus, of_corpus) in zip(titles, by_corpus.items(), strict=True):
        firsts = [row.runs[0] for row in of_corpus]
        configs = [run.config for run in firsts]
        every = {task for row in of_corpus for run in row.runs for task in run.config.tasks}
        columns = [*(task for task in tasks if task in every), *sorted(every.difference(tasks))]
        line_names = shortest_names(configs) if grouped else run_names(firsts)
        lines = tuple(
            line(row, " · ".join(filter(None, (name, row.condition))))
            for row, name in zip(of_corpus, line_names, strict=True)
        )
        scored_by: dict[str, dict[str, None]] = defaultdict(dict)
        for run in (run for row in of_corpus for run in row.runs):
            for task, score_name in names.get(run.id, {}).items():
                scored_by[task][SCORE_NAMES.get(score_name, score_name)] = None
        measures = {task: " or ".join(of_task) for task, of_task in scored_by.items()}
        others = tuple(line(row) for row in beyond if row.config.corpus == corpus)
        no_best = frozenset(family[1:] for family in untested if family[0] == corpus)
        shared = _shared_text(configs, columns)
        tables.append(Table(title, shared, tuple(columns), lines, measures, beyond=others, untested=no_best))
    if unreadable := [row.runs for row in shown if not row.is_readable]:
        lines = tuple(
            replace(
                _line(
                    _Row(row),
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
        tables.append(Table(capitalised(UNREADABLE), "", (), lines, {}, is_readable=False))
    return Page(tuple(tables), page, pages, len(by_configuration(runs)), len(runs))


_Family = tuple[str, float, str, str]


@dataclass(frozen=True)
class _Row:
    """The runs of a line, newest first. `condition` is what its name has beside the configuration's."""

    runs: Sequence[Run]
    condition: str = ""
    text: str = ""
    is_readable: bool = True

    @property
    def config(self) -> RunConfig:
        return self.runs[0].config

    @property
    def family(self) -> _Family:
        """The corpus, and `Line.family`."""
        return self.config.corpus, self.config.fraction, self.config.pos_score, self.text


def _rows(runs: Sequence[Run], conditions: Mapping[int, Conditions], *, grouped: bool) -> list[_Row]:
    """The lines of these runs, on all pages."""
    known, _ = readable(runs, conditions)
    texts, known_ids = text_names(known, conditions), {run.id for run in known}
    rows = []
    for of_one in by_configuration(runs).values() if grouped else [[run] for run in runs]:
        kept = [run for run in of_one if run.id in known_ids]
        for condition, alike in by_conditions(kept, conditions, texts).items():
            text = next((texts[run.id] for run in alike if run.id in texts), "")
            rows.append(_Row(alike, condition, text))
        if others := [run for run in of_one if run.id not in known_ids]:
            rows.append(_Row(others, is_readable=False))
    return rows


def _families(rows: Sequence[_Row], shown: Sequence[_Row]) -> tuple[list[_Row], frozenset[_Family]]:
    """The rows to which those shown are compared on other pages, and the families that are too large."""
    families: dict[_Family, list[_Row]] = defaultdict(list)
    for row in rows:
        if row.is_readable and any(run.state is RunState.SUCCEEDED for run in row.runs):
            families[row.family].append(row)
    here = {row.family for row in shown if row.is_readable}
    untested = frozenset(family for family in here if len(families[family]) > MOST_TESTED)
    on_page = {row.runs[0].id for row in shown}
    tested = [row for family in here - untested for row in families[family]]
    return [row for row in tested if row.runs[0].id not in on_page], untested


def _sorted(
    store: Store, rows: list[_Row], conditions: Mapping[int, Conditions], sort: str, *, grouped: bool
) -> list[_Row]:
    """The rows by their mean, highest first; rows without a value last, in the order given."""
    runs = [run for row in rows for run in row.runs]
    values: Mapping[int, float]
    split, _, task = sort.partition("-")
    if task:
        values = store.mean_scores(split, task)
    elif sort == "lambda":
        values = {run.id: -run.config.lambda_ for run in runs if run.config.lambda_ is not None}
    elif sort == "time":
        values = {run.id: run.seconds for run in runs if run.seconds is not None}
    else:
        return rows[::-1] if sort == "old" else rows
    counted = sampled if task and grouped else one_per_seed

    def place(row: _Row) -> tuple[bool, float]:
        of_row = [values[run.id] for run in counted(row.runs, conditions) if run.id in values]
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
        latest = store.last_points([run.id for run in unscored], DEV_SCORE.key(task))
        for run_id, (_, _, value) in latest.items():
            by_run[run_id]["dev", task] = value
    return by_run, names


def _line(
    of: _Row,
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
        conditions=common_conditions([conditions[run.id] for run in counted if run.id in conditions]),
    )


def _shared_text(configs: Sequence[RunConfig], tasks: Sequence[str]) -> str:
    """The settings that all these configurations of one corpus share: `pos, ner · minilm · 3 epochs`."""
    lambdas = {config.lambda_ for config in configs}
    orders = {config.tasks for config in configs if config.paradigm != "stl"} or {tuple(tasks)}
    # As the columns of scores are ordered.
    together = {tuple(sorted(of_one, key=list(tasks).index)) for of_one in orders}
    shares = {config.fraction for config in configs}
    encoders = {(config.encoder, config.encoder_training) for config in configs}
    epochs = {config.epochs for config in configs}
    parts = [
        *(f"λ {number(value)}" for value in lambdas if len(lambdas) == 1 and value is not None),
        *(field_texts("tasks", [value])[0] for value in together if len(together) == 1),
        *(field_text("fraction", share) for share in shares if len(shares) == 1 and share < 1),
        *(encoder_title(field_text("encoder", name), how) for name, how in encoders if len(encoders) == 1),
        *(plural(count, "epoch") for count in epochs if len(epochs) == 1),
    ]
    return " · ".join(parts)


def _distinct(values: Sequence[Any], text: Callable[[Any], str]) -> list[str]:
    """The values as short texts, empty for None; whole where two different values would read the same."""
    texts = ["" if value is None else text(value) for value in values]
    if len(set(texts)) == len(set(map(repr, values))):
        return texts
    return ["" if value is None else str(value) for value in values]


def differences(runs: Sequence[RunWithFacts]) -> pd.DataFrame:
    """The fields and training facts in which these runs differ: a row for each, a column a configuration.

    ≠ marks what is not as in the first configuration that has the field. That one lacks it, because of its
    paradigm or encoder or because it has not begun, is no difference. Facts, which may depend on the seed,
    are compared seed by seed.
    """
    rows = list(by_configuration(runs).values())
    configs = [row[0].config for row in rows]
    texts = {}
    for field in _differing_fields(configs):
        values = [
            config.values().get(field) if field == "columns" or has_field(config, field) else None
            for config in configs
        ]
        texts[FIELD_HELP[field].label] = _distinct(values, value_text)
    seeds = [", ".join(map(str, sorted({run.config.seed for run in row}))) for row in rows]
    if len(set(seeds)) > 1:
        texts["Seeds"] = seeds
    marked = {}
    for name, row_texts in texts.items():
        first = next(filter(None, row_texts))
        marked[name] = ["≠ " * (text not in ("", first)) + (text or "–") for text in row_texts]
    facts = [[(run.config.seed, _facts_text(run)) for run in row] for row in rows]
    for fact in dict.fromkeys(fact for row in facts for _, of_run in row for fact in of_run):
        by_row = [_by_seed([(seed, of_run[fact]) for seed, of_run in row if fact in of_run]) for row in facts]
        first_known = next(filter(None, by_row))
        apart = [_differ(of_row, first_known) for of_row in by_row]
        repeated = any(len(values) > 1 for of_row in by_row for values in of_row.values())
        alone = len(rows) == 1 and len(set(itertools.chain(*by_row[0].values()))) > 1
        if any(apart) or repeated or alone:
            marked[fact] = [
                "≠ " * differs + (", ".join(dict.fromkeys(itertools.chain(*of_row.values()))) or "–")
                for of_row, differs in zip(by_row, apart, strict=True)
            ]
    frame = pd.DataFrame.from_dict(marked, orient="index", columns=shortest_names(configs), dtype=object)
    return frame.rename_axis("Field")


_BySeed = Mapping[int, Sequence[str]]


def _by_seed(values: Iterable[tuple[int, str]]) -> _BySeed:
    """The distinct values of a fact by seed, in order."""
    by_seed: dict[int, dict[str, None]] = defaultdict(dict)
    for seed, value in values:
        by_seed[seed][value] = None
    return {seed: list(of_seed) for seed, of_seed in sorted(by_seed.items())}


def _differ(row: _BySeed, first: _BySeed) -> bool:
    """Whether the values differ for a seed that both have; of no common seed, whether any value differs."""
    if common := row.keys() & first.keys():
        return any(set(row[seed]) != set(first[seed]) for seed in common)
    return bool(row) and set(itertools.chain(*row.values())) != set(itertools.chain(*first.values()))


def _differing_fields(configs: Sequence[RunConfig]) -> list[str]:
    """The fields in which these configurations differ, by name."""
    if fields := [field for field, _ in fields_apart(configs)]:
        return fields
    values = list(map(comparison_values, configs))  # the columns of a file that knows them
    return [name for name in FIELD_HELP if len({json.dumps(of_one.get(name)) for of_one in values}) > 1]


def _facts_text(run: RunWithFacts) -> dict[str, str]:
    """The facts of a training beyond its configuration; of one that has not begun only its machine."""
    facts = run.facts
    texts = {"Machine": run.owner.host} if run.owner is not None else {}
    if facts is None:
        return texts
    return {
        **texts,
        "Device used": facts.device,
        "Precision used": facts.precision,
        "Threads": str(facts.threads),
        **({"Text": _text(run.config, facts)} if facts.text_hash else {}),
        **({"Alignment used": facts.alignment} if facts.alignment else {}),
        **{f"Training words, {task.name}": f"{task.train_tokens:,}" for task in facts.tasks},
        **{f"{name} version": version for name, version in facts.versions.items()},
    }


_TWO_VERSIONS = (
    "Whether their text is the same is not known: earlier versions hashed it without deprel and features."
)


def _text(config: RunConfig, facts: RunFacts) -> str:
    """The first digits of the hash of the run's text, and what an earlier version left out of it."""
    text = facts.text_hash
    columns = [column.name for reading in facts.readings for column in reading.columns]
    is_older = not text.endswith(TEXT_VERSION) and has_later_tasks((*config.tasks, *columns))
    return text[:6] + ", of an earlier version: without labels of deprel and of features" * is_older


def difference_sentence(runs: Sequence[RunWithFacts]) -> str:
    """The differences of these runs in plain text: the seed only, or the fields; and their text."""
    by_corpus: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        by_corpus[run.config.corpus] |= {run.facts.text_hash} - {""} if run.facts else set()
    changed = ""
    if several := [hashes for hashes in by_corpus.values() if len(hashes) > 1]:
        is_text = any(len({text.endswith(TEXT_VERSION) for text in hashes}) == 1 for hashes in several)
        changed = " The text of the corpus is not the same." if is_text else f" {_TWO_VERSIONS}"
    return _described_difference(runs) + changed


def _described_difference(runs: Sequence[Run]) -> str:
    """What their descriptions have apart."""
    these = f"These {plural(len(runs), 'run')}"
    rows = list(by_configuration(runs).values())
    seeds = [frozenset(run.config.seed for run in row) for row in rows]
    if len(rows) == 1:
        tasks = order_tasks(run.config.tasks for run in runs)
        if runs[0].config.paradigm == "stl" and len(tasks) > 1:
            return f"{these} are STL runs of {all_of(tasks)} and otherwise differ only in the seed."
        if len(seeds[0]) == 1:
            return f"{these} have the same description and the same seed."
        repeated = "; some seeds are repeated" if len(seeds[0]) < len(runs) else ""
        return f"{these} differ only in the seed{repeated}."
    configs = [row[0].config for row in rows]
    fields = [FIELD_HELP[name].label for name in _differing_fields(configs)]
    seed = "the seeds are the same" if len(set(seeds)) == 1 else "the seeds are not the same"
    return f"{these} are {len(rows):,} configurations. They differ in {all_of(fields)}; {seed}."
