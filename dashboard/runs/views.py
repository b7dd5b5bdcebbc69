"""What the Runs page shows, without Streamlit: the lines of its table, and how chosen runs differ."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean
from typing import Any

import pandas as pd

from core.config import FIELD_HELP, RunConfig
from core.evaluation.statistics import MeanSD, summary
from core.store import Conditions, Store
from core.store.records import Run, RunState
from core.wording import all_of, number, plural
from dashboard.shared.run_views import DEV_SCORE, fraction_done
from jobs.naming import corpus_name, differing
from jobs.results import one_per_seed

PAGE = 25
"""Configurations on one page of the table; twice as many runs."""

SORTS: Mapping[str, str] = {
    "new": "Newest first",
    "old": "Oldest first",
    "dev": "Best on dev",
    "lambda": "Smallest λ",
    "time": "Longest training",
}
"""The orders of every store, by their name in the URL. `test-TASK` is one for each task."""
_TEST = "test-"


@dataclass(frozen=True)
class Line:
    """A configuration with all its runs that were found, or one run (`run` is its id).

    Scores are shares in [0, 1], mean and SD over seeds (`jobs.results.one_per_seed`: a seed that was run
    again counts once); `seeds` counts those. `dev` is the mean over tasks, of a run in training that of its
    last epoch. `done` and `seconds` are means, `priority` the highest of the queued runs.
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
    keywords: tuple[str, ...]
    priority: int


@dataclass(frozen=True)
class Page:
    """One page of the table. `configurations` and `runs` count all pages; `shared` says in words what all
    configurations of this page have in common.
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
    runs: Sequence[Run],
    *,
    grouped: bool,
    sort: str,
    number: int,
    opened: Collection[str] = (),
) -> Page:
    """A page of these runs (newest first); beyond the last page, the last. Only its scores are read in full.

    `opened` are the configurations whose runs stand under them.
    """
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.configuration_id].append(run)
    rows = list(groups.values()) if grouped else [[run] for run in runs]
    size = PAGE if grouped else 2 * PAGE
    pages = max(1, -(-len(rows) // size))
    number = min(max(1, number), pages)
    shown = _sorted(store, rows, sort)[(number - 1) * size : number * size]
    configs = {group[0].configuration_id: group[0].config for group in shown}
    names = dict(zip(configs, configuration_names(list(configs.values())), strict=True))
    scores = _Scores(store, [run for group in shown for run in group])
    conditions = store.conditions(run for group in shown for run in group) if grouped else {}
    lines: list[Line] = []
    for group in shown:
        key = group[0].configuration_id
        if grouped:
            lines.append(_line(group, one_per_seed(group, conditions), names[key], scores))
        if not grouped or key in opened:
            ordered = sorted(group, key=lambda run: (run.config.seed, -run.id))
            lines += [_line([run], [run], names[key], scores, run=run) for run in ordered]
    return Page(tuple(lines), number, pages, len(groups), len(runs), _shared(list(configs.values())))


def _sorted(store: Store, rows: list[list[Run]], sort: str) -> list[list[Run]]:
    """The rows by their mean, highest first; those without a value last, in the order given."""
    if sort not in ("dev", "lambda", "time") and not sort.startswith(_TEST):
        return rows[::-1] if sort == "old" else rows
    runs = [run for group in rows for run in group]
    conditions: Mapping[int, Conditions] = {}
    values: Mapping[int, float]
    if sort == "lambda":
        values = {run.id: -run.config.lambda_ for run in runs if run.config.lambda_ is not None}
    elif sort == "time":
        values = {run.id: run.seconds for run in runs if run.seconds is not None}
    else:
        task = sort.removeprefix(_TEST) if sort.startswith(_TEST) else None
        values = store.mean_scores("test" if task else "dev", task)
        conditions = store.conditions(runs)

    def place(group: Sequence[Run]) -> tuple[bool, float]:
        of_group = [values[run.id] for run in one_per_seed(group, conditions) if run.id in values]
        return not of_group, -fmean(of_group) if of_group else 0.0

    return sorted(rows, key=place)


class _Scores:
    """The scores of the runs shown: mean dev score, latest dev score in training, test score by task."""

    def __init__(self, store: Store, runs: Sequence[Run]) -> None:
        ids = [run.id for run in runs]
        dev: dict[int, list[float]] = defaultdict(list)
        self.test: dict[int, dict[str, float]] = defaultdict(dict)
        for score in store.scores(ids, with_reports=False) if ids else ():
            if score.split == "dev":
                dev[score.run_id].append(score.score)
            elif score.split == "test":
                self.test[score.run_id][score.task] = score.score
        self.dev = {run_id: fmean(scores) for run_id, scores in dev.items()}
        unscored = [run_id for run_id in ids if run_id not in dev]
        self.latest = store.latest_metrics(unscored, DEV_SCORE) if unscored else {}


def _line(
    group: Sequence[Run], counted: Sequence[Run], name: str, scores: _Scores, *, run: Run | None = None
) -> Line:
    """The line of a configuration, with means over the runs `counted`; or of the one `run` of the group."""
    states = Counter(member.state for member in group)
    dev = scores.dev if run is None else {**scores.latest, **scores.dev}
    tests: dict[str, list[float]] = defaultdict(list)
    for member in counted:
        for task, value in scores.test.get(member.id, {}).items():
            tests[task].append(value)
    times = [member.seconds for member in counted if member.seconds is not None]
    test = {task: _summary(values) for task, values in tests.items()}
    return Line(
        run=None if run is None else run.id,
        run_ids=tuple(member.id for member in group),
        configuration=group[0].configuration_id,
        name=name,
        seed=None if run is None else run.config.seed,
        seeds=len(counted),
        states=tuple((state, states[state]) for state in RunState if states[state]),
        done=fmean(map(fraction_done, group)),
        dev=_summary([dev[member.id] for member in counted if member.id in dev]),
        test={task: mean for task, mean in test.items() if mean is not None},
        seconds=fmean(times) if times else None,
        newest=max(member.created_at for member in group),
        keywords=tuple(sorted({word for member in group for word in member.keywords})),
        priority=max((member.priority for member in group if member.state is RunState.QUEUED), default=0),
    )


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
    """Corpus and encoder in words, each if all configurations share it: names then leave it out."""
    corpora = {f"corpus {corpus_name(config)}" for config in configs}
    frozen = {"frozen": " (frozen)"}
    encoders = {f"encoder {config.encoder}{frozen.get(config.encoder_training, '')}" for config in configs}
    return " and ".join(value for values in (corpora, encoders) if len(values) == 1 for value in values)


_NONE = "–"


def differences(store: Store, ids: Sequence[int]) -> pd.DataFrame:
    """The fields and training facts in which these runs differ: a row for each, a column per run.

    What is not as in the first column is marked with ≠. Columns follow `ids`; unknown ids are left out.
    """
    runs = {run.id: run for run in store.runs(ids)}
    columns = {
        f"Run {run_id}": {**_configuration_text(runs[run_id]), **_facts_text(runs[run_id])}
        for run_id in ids
        if run_id in runs
    }
    frame = pd.DataFrame(columns).fillna(_NONE)
    frame = frame[frame.nunique(axis=1) > 1]
    first = frame.iloc[:, :1].to_numpy()
    frame = frame.where(frame == first, "≠ " + frame.astype(str))
    frame["Meaning"] = [FIELD_HELP[name].description if name in FIELD_HELP else "" for name in frame.index]
    return frame.rename(index=lambda name: name.replace("_", " ")).rename_axis("Field")


def _configuration_text(run: Run) -> dict[str, str]:
    return {name: _text(value) for name, value in run.config.values().items()}


def _text(value: Any) -> str:
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return number(value) if isinstance(value, int | float) else str(value)


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
        "alignment used": str(facts.get("alignment") or _NONE),
        **{f"training words, {task['name']}": f"{task['train_tokens']:,}" for task in facts.get("tasks", ())},
        **{f"{name} version": str(version) for name, version in facts["versions"].items()},
    }


def difference_sentence(runs: Sequence[Run]) -> str:
    """In what these runs differ, in plain text: in the seed alone, or in which fields."""
    these = f"These {plural(len(runs), 'run')}"
    seeds_of: dict[str, set[int]] = defaultdict(set)
    for run in runs:
        seeds_of[run.configuration_id].add(run.config.seed)
    if len(seeds_of) == 1:
        (seeds,) = seeds_of.values()
        if len(seeds) == 1:
            return f"{these} have the same description and the same seed."
        repeated = ", and some have the same seed" if len(seeds) < len(runs) else ""
        return f"{these} are the same in everything but the seed{repeated}."
    configs = {run.configuration_id: run.config.values() for run in runs}.values()
    texts = {
        name: {json.dumps(values.get(name)) for values in configs} for name in FIELD_HELP if name != "seed"
    }
    # A field that a paradigm lacks differs because the paradigm does; it is named only if nothing else is.
    differ = [name for name, values in texts.items() if len(values - {"null"}) > 1]
    differ = differ or [name for name, values in texts.items() if len(values) > 1]
    fields = [FIELD_HELP[name].symbol or name.replace("_", " ") for name in differ]
    same = len(set(map(frozenset, seeds_of.values()))) == 1
    seed = "the seeds are the same" if same else "the seeds are not the same"
    return f"{these} are {len(seeds_of):,} configurations. They differ in {all_of(fields)}; {seed}."
