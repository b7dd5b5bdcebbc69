"""Sweeps over data: corpora whose options are lists, groups of tasks, and every list of values, to runs."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from core.config import RunConfig, default_value
from core.config.fields import CONTEXT_FIELDS, attribute_name, comma_list
from core.config.sweep import alternatives, check_number, expand
from core.config.task_groups import HINT, TASK_GROUPS, task_groups
from core.config.typed import text_of
from core.corpora.catalogue import find_folder
from core.corpora.loading import auxiliary_tasks, tasks_of
from core.errors import FIELD, ConfigError
from core.plain_text import shortened

_NAMED = (
    *("corpus", "columns", "tasks", "encoder", "encoder_training", "paradigm", "prior", "added_to"),
    *("alignment", "lambda", "epochs", "fraction"),
)
"""The fields that are options of `mrnlab launch`; the others are values of `--set`."""


def launch_options(fields: Mapping[str, Sequence[Any]]) -> list[tuple[str, str]]:
    """The options of `mrnlab launch` that give its fields these values, seeds as `--seeds`."""
    options = []
    for name, values in fields.items():
        text = text_of(name, values).replace(", ", ",")
        if name == "seed" and list(values) != [0]:
            options.append(("--seeds", text))
        elif name in _NAMED:
            options.append((f"--{name.replace('_', '-')}", text))
        else:
            options.append(("--set", f"{name}={text}"))
    return options


def launch_command(config: RunConfig, tasks: Sequence[str], seeds: Sequence[int]) -> str:
    """The command that makes runs of this configuration on these tasks, or uses those that are there."""
    context = {name: getattr(config, attribute_name(name)) for name in (*CONTEXT_FIELDS, "alignment")}
    fields: dict[str, Sequence[Any]] = {"corpus": [config.corpus], "tasks": tasks}
    if config.columns is not None:
        fields["columns"] = config.columns
    fields |= {"paradigm": [config.paradigm], "seed": seeds}
    fields |= {name: [value] for name, value in context.items() if value and name != "paradigm"}
    for name, value in config.values().items():
        attribute = attribute_name(name)
        is_set = getattr(config, attribute) != default_value(config, attribute)
        if is_set and name not in fields and name not in context:
            fields[name] = value if isinstance(value, list | tuple) else [value]
    words = itertools.chain.from_iterable(launch_options(fields))
    return shlex.join(["mrnlab", "launch", *words, "--reuse"])


def corpora_of(text: str) -> list[str]:
    """The corpora that one with lists in braces names: `simulated:demo?alpha={0.2|0.9}` names two.

    A folder of that very name is itself. Raises ConfigError.
    """
    if not {"{", "}"} & {*text} or find_folder(text) is not None:
        return [text]
    return alternatives(text, "corpus")


def _names(given: Sequence[str] | str | None) -> Sequence[str]:
    """Names, or a text with commas between them, as a sequence."""
    return comma_list(given) if isinstance(given, str) else given or ()


def sweep(
    base: Mapping[str, Any],
    lists: Mapping[str, Sequence[Any]],
    groups: str | None = None,
    preset: Mapping[str, Any] = MappingProxyType({}),
) -> list[RunConfig]:
    """The runs of `core.config.sweep.expand` on every corpus that `base` names and every group of its tasks.

    `groups` is a text for `core.config.task_groups`, unset for all tasks of `base` together. Where `base` has
    no tasks, these are all that a corpus has; of several corpora each takes those of the named tasks that it
    has. The first corpus's runs come first. STL leaves out tasks that have no scores.

    Raises ConfigError as `expand` does, and CorpusError where a corpus must be read and cannot be.
    """
    named, columns = _names(base.get("tasks")), _names(base.get("columns"))
    corpora = corpora_of(str(base.get("corpus") or ""))
    if not corpora[0] or (not named and groups is None and base.get("tasks") is not None):
        return expand(base, lists, preset)  # which says what is missing
    tasks = {corpora[0]: tuple(named)}
    if len(corpora) > 1 or not named:
        tasks = {corpus: tasks_of(corpus, columns or None) for corpus in corpora}
    every = frozenset[str]().union(*tasks.values())
    runs: dict[RunConfig, None] = {}
    for corpus in corpora:
        made: list[RunConfig] = []
        elsewhere = every.difference(tasks[corpus])
        chosen = [task for task in named or tasks[corpus] if task not in elsewhere]
        auxiliary = auxiliary_tasks(corpus)
        of_corpus = task_groups("all" if groups is None else groups, chosen, auxiliary, elsewhere)
        if len(of_corpus) == len(corpora) == 1:
            made = expand({**base, "corpus": corpus, "tasks": of_corpus[0]}, lists, preset)
        elif of_corpus:
            made = expand({**base, "corpus": corpus}, {**lists, "tasks": of_corpus}, preset)
        scored = [run for run in made if run.paradigm != "stl" or run.tasks[0] not in auxiliary]
        runs |= dict.fromkeys(scored or made)
        check_number(len(runs), {**lists, "corpus": corpora})
    if not runs:
        some = ", ".join(named or sorted(every))
        raise ConfigError(
            TASK_GROUPS, f"{FIELD}: '{shortened(groups or '')}' makes no group of {some}; {HINT}"
        )
    return list(runs)
