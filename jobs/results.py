"""Scores of finished runs as a table: configurations × tasks, over seeds."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.config import RunConfig, applicable_fields, kind_key
from core.evaluation.statistics import MeanSD, summary
from core.store import Run, RunState, Store, StoredScore

__all__ = ["ResultRow", "ResultTable", "tabulate"]


@dataclass(frozen=True)
class ResultRow:
    """One configuration: what sets it apart, and per task its score over seeds, in [0, 1].

    `values` has for each task the score of each seed.
    """

    name: str
    cells: Mapping[str, MeanSD]
    values: Mapping[str, Mapping[int, float]]
    run_ids: tuple[int, ...]


@dataclass(frozen=True)
class ResultTable:
    """Rows by configuration, the columns by task; `score_names` tells what each task is scored by."""

    split: str
    tasks: tuple[str, ...]
    score_names: Mapping[str, str]
    rows: tuple[ResultRow, ...]


def tabulate(store: Store, run_ids: Collection[int] | None = None, split: str = "test") -> ResultTable:
    """The scores of these runs (of all that succeeded) on that split.

    STL's single-task runs of otherwise equal configurations make one row. Where a configuration was trained
    more than once with a seed, the latest counts: the same seed again is no further sample.
    """
    found = store.runs(ids=run_ids, states={RunState.SUCCEEDED}, with_facts=False)
    by_run: dict[int, list[StoredScore]] = {}
    for score in store.scores([run.id for run in found], split):
        by_run.setdefault(score.run_id, []).append(score)
    groups: dict[str, list[Run]] = {}
    for run in sorted(found, key=lambda run: run.id):
        if run.id in by_run:
            groups.setdefault(kind_key(run.config), []).append(run)
    names = _names([runs[0].config for runs in groups.values()])
    tasks: dict[str, str] = {}
    rows = []
    for name, runs in zip(names, groups.values(), strict=True):
        values: dict[str, dict[int, float]] = {}
        for run in runs:
            for score in by_run[run.id]:
                tasks.setdefault(score.task, score.score_name)
                values.setdefault(score.task, {})[run.config.seed] = score.score
        cells = {task: summary(seeds.values()) for task, seeds in values.items()}
        rows.append(ResultRow(name, cells, values, tuple(run.id for run in runs)))
    return ResultTable(split, _ordered(tasks, found), tasks, tuple(rows))


def _ordered(tasks: Iterable[str], runs: Iterable[Run]) -> tuple[str, ...]:
    """Tasks in the order of the run that names most of them, the others after them."""
    longest = max((run.config.tasks for run in runs), key=len, default=())
    return tuple(sorted(tasks, key=lambda task: (longest.index(task) if task in longest else 99, task)))


def _names(configs: list[RunConfig]) -> list[str]:
    """What sets each apart: its paradigm, and every field in which not all that have the field are alike."""
    listed = [json.loads(config.to_json()) for config in configs]
    ignored = {"paradigm", "seed", "tasks"}
    if len({tuple(values["tasks"]) for values in listed if values["paradigm"] != "stl"}) > 1:
        ignored.remove("tasks")
    having = [
        applicable_fields(one.paradigm, one.encoder, one.encoder_training, one.prior) for one in configs
    ]
    fields = [
        field
        for field in (listed[0] if listed else ())
        if field not in ignored
        and len({json.dumps(v[field]) for v, own in zip(listed, having, strict=True) if field in own}) > 1
    ]
    return [" ".join([values["paradigm"].upper(), *_told(values, fields)]) for values in listed]


def _told(values: Mapping[str, Any], fields: Iterable[str]) -> Iterable[str]:
    for field in fields:
        value = values[field]
        if value is None or (field == "tasks" and values["paradigm"] == "stl"):
            continue
        shown = ",".join(value) if isinstance(value, list) else str(value)
        yield f"λ={shown}" if field == "lambda" else f"{field}={shown}"
