"""What sets chosen runs apart: fields of their descriptions, and facts of their trainings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.config import FIELD_HELP
from core.store import Store
from core.store.records import Run
from dashboard.queries.naming import kind_name
from dashboard.queries.run_lines import configuration_names
from dashboard.text import all_of, number, plural

__all__ = ["DiffColumn", "DiffRow", "RunDiff", "differences"]

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
