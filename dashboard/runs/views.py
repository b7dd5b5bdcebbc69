"""The table of runs as lines: configurations with their seeds inside, or one run a line; sorted, in pages.

However many runs there are, only those of the page shown have their scores read.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core.config import FIELD_HELP, RunConfig
from core.evaluation.statistics import MeanSD, summary
from core.store import Conditions, Store
from core.store.records import Run, RunState
from core.wording import all_of, number, plural
from dashboard.shared.run_views import DEV_SCORE, fraction_done
from jobs.naming import corpus_name, differing, kind_name
from jobs.results import one_per_seed

PAGE = 25
"""Configurations, or runs in the flat order twice as many, on one page of the table."""

SORTS: Mapping[str, str] = {
    "new": "Newest first",
    "old": "Oldest first",
    "dev": "Best on dev",
    "lambda": "Smallest λ",
    "time": "Longest training",
}
"""The orders that every store has, by their name in the URL. `test-TASK` is one for each task."""
_TEST = "test-"


@dataclass(frozen=True)
class Line:
    """A configuration with all its runs that were found, or one of them (`run` is then its number).

    Scores are shares in [0, 1], mean and SD over the seeds that have one (`jobs.results.one_per_seed`: a seed
    that was run again counts once); `seeds` is the number of all. `dev` is the mean over tasks; that of a run
    in training is of its last epoch. `priority` is the highest of those that wait.
    """

    run: int | None
    run_ids: tuple[int, ...]
    configuration: str
    name: str
    seed: int | None
    seeds: int
    states: tuple[tuple[RunState, int], ...]
    done: float
    dev: MeanSD | None
    test: Mapping[str, MeanSD]
    seconds: float | None
    newest: datetime
    tags: tuple[str, ...]
    note: str
    corpus: str
    archived: bool
    priority: int


@dataclass(frozen=True)
class Page:
    """One page of the table. `configurations` and `runs` count what was found, on all `pages`.

    `shared` says in words what all configurations of the page have in common.
    """

    lines: tuple[Line, ...]
    number: int
    pages: int
    configurations: int
    runs: int
    shared: str


def sorts(tasks: Sequence[str]) -> dict[str, str]:
    """Every order of the table with its words."""
    return {**SORTS, **{f"{_TEST}{task}": f"Best on test, {task}" for task in tasks}}


def page_of(
    store: Store,
    found: Sequence[Run],
    *,
    grouped: bool,
    sort: str,
    number: int,
    opened: Collection[str] = (),
) -> Page:
    """That page of these runs (newest first). A number beyond the last page is the last page.

    `opened` are the configurations whose runs stand under them.
    """
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in found:
        groups[run.configuration_id].append(run)
    rows = list(groups.values()) if grouped else [[run] for run in found]
    size = PAGE if grouped else 2 * PAGE
    pages = max(1, -(-len(rows) // size))
    number = min(max(1, number), pages)
    conditions = store.conditions(found) if sort == "dev" or sort.startswith(_TEST) else {}
    shown = _sorted(store, rows, sort, conditions)[(number - 1) * size : number * size]
    configs = {group[0].configuration_id: group[0].config for group in shown}
    names = dict(zip(configs, configuration_names(list(configs.values())), strict=True))
    read = _Scores(store, [run for group in shown for run in group])
    conditions = store.conditions(run for group in shown for run in group) if grouped else {}
    lines: list[Line] = []
    for group in shown:
        if grouped:
            lines.append(_configuration_line(group, one_per_seed(group, conditions), names, read))
        if not grouped or group[0].configuration_id in opened:
            ordered = sorted(group, key=lambda run: (run.config.seed, -run.id))
            lines += [_run_line(run, names, read) for run in ordered]
    return Page(tuple(lines), number, pages, len(groups), len(found), _shared(list(configs.values())))


def _sorted(
    store: Store, rows: list[list[Run]], sort: str, conditions: Mapping[int, Conditions]
) -> list[list[Run]]:
    """The rows by the highest value first; those without one last, in the order given."""
    if sort == "old":
        return rows[::-1]
    value: Callable[[Run], float | None]
    if sort == "lambda":

        def value(run: Run) -> float | None:
            return None if run.config.lambda_ is None else -run.config.lambda_

    elif sort == "time":

        def value(run: Run) -> float | None:
            return run.seconds

    elif sort == "dev" or sort.startswith(_TEST):
        task = sort.removeprefix(_TEST) if sort.startswith(_TEST) else None
        means = store.mean_scores("test" if task else "dev", task)

        def value(run: Run) -> float | None:
            return means.get(run.id)

    else:
        return rows

    def place(group: Sequence[Run]) -> tuple[bool, float]:
        values = [one for run in one_per_seed(group, conditions) if (one := value(run)) is not None]
        return not values, -sum(values) / len(values) if values else 0.0

    return sorted(rows, key=place)


class _Scores:
    """The scores of the runs shown, read once."""

    def __init__(self, store: Store, runs: Sequence[Run]) -> None:
        ids = [run.id for run in runs]
        self.dev: dict[int, list[float]] = defaultdict(list)
        self.test: dict[int, dict[str, float]] = defaultdict(dict)
        for score in store.scores(ids, with_reports=False) if ids else ():
            if score.split == "dev":
                self.dev[score.run_id].append(score.score)
            elif score.split == "test":
                self.test[score.run_id][score.task] = score.score
        unscored = [run_id for run_id in ids if run_id not in self.dev]
        self.latest = store.latest_metrics(unscored, DEV_SCORE) if unscored else {}

    def final(self, run: Run) -> float | None:
        values = self.dev.get(run.id)
        return sum(values) / len(values) if values else None


def _run_line(run: Run, names: Mapping[str, str], read: _Scores) -> Line:
    final = read.final(run)
    dev = read.latest.get(run.id) if final is None else final
    return Line(
        run=run.id,
        run_ids=(run.id,),
        configuration=run.configuration_id,
        name=names[run.configuration_id],
        seed=run.config.seed,
        seeds=1,
        states=((run.state, 1),),
        done=fraction_done(run),
        dev=_summary([] if dev is None else [dev]),
        test={task: summary([value]) for task, value in read.test.get(run.id, {}).items()},
        seconds=run.seconds,
        newest=run.created_at,
        tags=run.tags,
        note=run.note,
        corpus=corpus_name(run.config),
        archived=run.archived,
        priority=_priority([run]),
    )


def _configuration_line(
    group: Sequence[Run], counted: Sequence[Run], names: Mapping[str, str], read: _Scores
) -> Line:
    """The line of these runs; its means are over the runs `counted`."""
    first = group[0]
    states = Counter(run.state for run in group)
    tests: dict[str, list[float]] = defaultdict(list)
    for run in counted:
        for task, value in read.test.get(run.id, {}).items():
            tests[task].append(value)
    times = [run.seconds for run in counted if run.seconds is not None]
    return Line(
        run=None,
        run_ids=tuple(run.id for run in group),
        configuration=first.configuration_id,
        name=names[first.configuration_id],
        seed=None,
        seeds=len(counted),
        states=tuple((state, states[state]) for state in RunState if states[state]),
        done=sum(fraction_done(run) for run in group) / len(group),
        dev=_summary([final for run in counted if (final := read.final(run)) is not None]),
        test={task: one for task, values in tests.items() if (one := _summary(values)) is not None},
        seconds=sum(times) / len(times) if times else None,
        newest=max(run.created_at for run in group),
        tags=tuple(sorted({tag for run in group for tag in run.tags})),
        note=next((run.note for run in group if run.note), ""),
        corpus=corpus_name(first.config),
        archived=all(run.archived for run in group),
        priority=_priority(group),
    )


def _priority(runs: Sequence[Run]) -> int:
    return max((run.priority for run in runs if run.state is RunState.QUEUED), default=0)


def _summary(values: Sequence[float]) -> MeanSD | None:
    finite = [value for value in values if value == value]
    return summary(finite) if finite else None


def configuration_names(configs: Sequence[RunConfig]) -> list[str]:
    """What sets each configuration apart from the others; STL's also by its task."""
    return [
        name.replace("STL", f"STL {config.tasks[0]}", 1)
        if config.paradigm == "stl" and config.tasks
        else name
        for name, config in zip(differing(configs), configs, strict=True)
    ]


def _shared(configs: Sequence[RunConfig]) -> str:
    """Corpus and encoder where all have the same, in words: names then leave them out."""
    corpora = {corpus_name(config) for config in configs}
    encoders = {
        config.encoder + (" (frozen)" if config.encoder_training == "frozen" else "") for config in configs
    }
    parts = [f"corpus {next(iter(corpora))}"] if len(corpora) == 1 else []
    if len(encoders) == 1:
        parts.append(f"encoder {next(iter(encoders))}")
    return " and ".join(parts)


# What sets chosen runs apart: fields of their descriptions, and facts of their trainings.


MOST_RUNS = 8
"""More chosen runs than these stand together by configuration."""
_MOST_COLUMNS = 12
_NONE = "–"


@dataclass(frozen=True)
class DiffColumn:
    """One run, or the seeds of one configuration."""

    name: str
    run_ids: tuple[int, ...]


@dataclass(frozen=True)
class DiffRow:
    """A field or fact in which columns differ: its value in each, and whether that is not the first's."""

    name: str
    meaning: str
    values: tuple[str, ...]
    apart: tuple[bool, ...]


@dataclass(frozen=True)
class RunDiff:
    """The differences, and what they come to in words (plain text). `left_out` columns are not shown."""

    sentence: str
    columns: tuple[DiffColumn, ...]
    rows: tuple[DiffRow, ...]
    left_out: int


def differences(store: Store, ids: Sequence[int]) -> RunDiff:
    """How these runs differ; unknown ids are left out. Columns are in the order of `ids`."""
    listed = {run.id: run for run in store.runs(ids, with_facts=False)}
    runs = [listed[run_id] for run_id in dict.fromkeys(ids) if run_id in listed]
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.configuration_id, []).append(run)
    several = len(runs) > MOST_RUNS
    members = list(groups.values()) if several else [[run] for run in runs]
    shown = members[:_MOST_COLUMNS]
    names = _names(shown) if several else [f"Run {group[0].id}" for group in shown]
    # Facts are kilobytes a run: those of one run stand for its configuration where many are chosen.
    facts = {run.id: run.facts for run in store.runs([group[0].id for group in shown])}
    described = [_described(group) for group in shown]
    known = [_facts(group[0], facts[group[0].id]) for group in shown]
    meanings = {name: help_.description for name, help_ in FIELD_HELP.items()}
    fields = _rows(described, meanings)
    return RunDiff(
        sentence=_sentence(runs, len(groups)),
        columns=tuple(
            DiffColumn(name, tuple(run.id for run in group)) for name, group in zip(names, shown, strict=True)
        ),
        rows=(*fields, *_rows(known, {})),
        left_out=len(members) - len(shown),
    )


def _names(groups: Sequence[Sequence[Run]]) -> list[str]:
    """A name for each configuration, each name once."""
    told = configuration_names([group[0].config for group in groups])
    return [
        f"{name if told.count(name) == 1 else kind_name(group[0].config)}, "
        f"{plural(len(group), 'seed')}{'' if told.count(name) == 1 else f', run {group[0].id}'}"
        for name, group in zip(told, groups, strict=True)
    ]


def _described(group: Sequence[Run]) -> dict[str, str]:
    """The fields of their description as text; of the seed, all of them."""
    values = {name: _text(value) for name, value in _values(group[0]).items()}
    return values | {"seed": ", ".join(str(seed) for seed in sorted({run.config.seed for run in group}))}


def _values(run: Run) -> dict[str, Any]:
    return run.config.values()


def _text(value: Any) -> str:
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return number(value) if isinstance(value, int | float) else str(value)


def _facts(run: Run, facts: Mapping[str, Any]) -> dict[str, str]:
    """What is known of a training beyond its description; nothing of one that has not begun."""
    found = {"machine": run.owner.host} if run.owner is not None else {}
    if not facts:
        return found
    found |= {
        "device used": str(facts["device"]),
        "precision used": str(facts["precision"]),
        "threads": str(facts["threads"]),
        "alignment used": str(facts.get("alignment") or _NONE),
    }
    for task in facts.get("tasks", ()):
        found[f"training words, {task['name']}"] = f"{task['train_tokens']:,}"
    return found | {f"{name} version": str(version) for name, version in facts["versions"].items()}


def _rows(columns: Sequence[Mapping[str, str]], meanings: Mapping[str, str]) -> list[DiffRow]:
    """The names under which columns have different texts; one that is not there is a dash."""
    names = dict.fromkeys(name for column in columns for name in column)
    rows = []
    for name in names:
        values = tuple(column.get(name, _NONE) for column in columns)
        if len(set(values)) > 1:
            apart = tuple(value != values[0] for value in values)
            rows.append(DiffRow(name.replace("_", " "), meanings.get(name, ""), values, apart))
    return rows


def _sentence(runs: Sequence[Run], configurations: int) -> str:
    what = f"These {plural(len(runs), 'run')}"
    seeds = {run.config.seed for run in runs}
    if configurations == 1:
        if len(seeds) == len(runs):
            return f"{what} are the same in everything but the seed."
        if len(seeds) == 1:
            return f"{what} have the same description and the same seed."
        return f"{what} are the same in everything but the seed, and some have the same seed."
    first = {run.configuration_id: _values(run) for run in runs}.values()
    seen = {name: {json.dumps(values.get(name)) for values in first} for name in FIELD_HELP if name != "seed"}
    # A field that a paradigm lacks differs because the paradigm does; alone it is named all the same.
    apart = [name for name, texts in seen.items() if len(texts - {"null"}) > 1]
    apart = apart or [name for name, texts in seen.items() if len(texts) > 1]
    fields = [FIELD_HELP[name].symbol or name.replace("_", " ") for name in apart]
    seed = "the seeds are the same" if _same_seeds(runs) else "the seeds are not the same"
    return f"{what} are {configurations:,} configurations. They differ in {all_of(fields)}; {seed}."


def _same_seeds(runs: Sequence[Run]) -> bool:
    seeds: dict[str, set[int]] = {}
    for run in runs:
        seeds.setdefault(run.configuration_id, set()).add(run.config.seed)
    return len({frozenset(one) for one in seeds.values()}) == 1
