"""The configurations of past runs as a form: values in which they differ become lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from core.config import RunConfig
from core.config.conditions import CONDITIONS
from core.corpora import CATALOGUE
from core.errors import ConfigError
from core.lists import seeds_typed
from core.sweep import LISTED
from dashboard.launch.draft import Draft, plan
from dashboard.launch.start import OPTIONS, option_of
from dashboard.text import all_of, plural

__all__ = ["cloned"]

_CONDITIONAL = {condition.field for condition in CONDITIONS}


def cloned(configs: Sequence[RunConfig]) -> tuple[Draft, tuple[str, ...]]:
    """The form that makes these runs, and what of them it cannot say, a sentence each.

    There must be one at least. A conditional field that all runs have at its default stays empty.
    """
    first = configs[0]
    sentences = []
    columns = first.columns
    if columns is not None and first.corpus in CATALOGUE:
        columns = None
        sentences.append(f"The names of the columns are left away: {first.corpus} knows its own.")
    learn = _explicit(configs, "learn")
    mapped = _distinct(one.alignment for one in configs if one.alignment and ":" in one.alignment)
    draft = Draft(
        corpus=first.corpus,
        columns=columns,
        tasks=_tasks(configs),
        lists={name: _listed(configs, name) for name in LISTED},
        learn=tuple(learn[0]) if learn else (),
    )
    if len(mapped) > 1:
        kept = [name for name in draft.lists["alignment"] if name not in mapped[1:]]
        draft = replace(draft, lists={**draft.lists, "alignment": tuple(kept)})
    several = {
        "corpus": _distinct(one.corpus for one in configs),
        "names of columns": _distinct(one.columns for one in configs),
        "tasks": _distinct(frozenset(one.tasks) for one in configs if one.paradigm != "stl"),
        "covariances to learn": learn,
        "mapping of labels": mapped,
    }
    if differing := [name for name, values in several.items() if len(values) > 1]:
        sentences.append(
            f"These runs differ in {all_of(differing)}, of which the form holds one: that of the first run."
        )
    return draft, (*sentences, *_difference(draft, configs))


def _difference(draft: Draft, configs: Sequence[RunConfig]) -> list[str]:
    """How the runs that the form makes differ from those that were asked for."""
    made, asked = set(plan(draft).configs), set(configs)
    told = []
    if missing := asked - made:
        told.append(
            f"{plural(len(missing), 'of these runs is', 'of these runs are')} not among those it makes."
        )
    if extra := made - asked:
        told.append(
            "The form makes every combination of these values, so "
            f"{plural(len(extra), 'more run')} than these."
        )
    return told


def _tasks(configs: Sequence[RunConfig]) -> tuple[str, ...]:
    """The tasks of the largest run, then those that only others have."""
    ordered = sorted(configs, key=lambda one: -len(one.tasks))
    return tuple(dict.fromkeys(task for one in ordered for task in one.tasks))


def _listed(configs: Sequence[RunConfig], name: str) -> str | tuple[str, ...]:
    values = _explicit(configs, name)
    if name == "seed":
        return seeds_typed(values)
    if name in OPTIONS:
        known = OPTIONS[name]
        told = map(option_of, values)
        return tuple(sorted(told, key=lambda one: known.index(one) if one in known else len(known)))
    return ", ".join(map(option_of, sorted(values)))


def _explicit(configs: Sequence[RunConfig], name: str) -> list[Any]:
    """The values of a field that the form must name: none where every run has its default."""
    attribute = "lambda_" if name == "lambda" else name
    having = [one for one in configs if getattr(one, attribute) is not None]
    # What MRN runs are asked in any case is named in any case.
    may_stay_empty = attribute in _CONDITIONAL and name not in ("prior", "alignment")
    if may_stay_empty and all(_has_default(one, attribute) for one in having):
        return []
    return _distinct(getattr(one, attribute) for one in having)


def _has_default(config: RunConfig, attribute: str) -> bool:
    """Whether the run would be the same, had that field not been set."""
    values = config.values()
    del values["lambda" if attribute == "lambda_" else attribute]
    try:
        return RunConfig.build(**values) == config
    except ConfigError:
        return False  # its default is no possible value: ten times a large rate, say


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))
