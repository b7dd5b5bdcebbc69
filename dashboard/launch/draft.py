"""What the form holds, and the runs it makes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from core.config import RunConfig, applicable_fields
from core.errors import ConfigError
from core.lists import is_number, numbers, seeds
from core.sweep import LISTED, expand
from dashboard.launch.start import NEEDED

__all__ = ["Draft", "Plan", "applicable", "lists_of", "plan", "values_of"]

# The first varies slowest, so that what one compares stands together; seeds vary fastest.
_FIRST = ("encoder", "encoder_training", "paradigm", "prior", "alignment", "lambda", "fraction")
_ORDER = (*_FIRST, *(name for name in LISTED if name not in _FIRST))

_ONLY_MRN = ("prior", "alignment")
_KINDS = {"encoder_training": "kind of training"}


@dataclass(frozen=True)
class Draft:
    """The form as it stands.

    `lists` has the fields that are asked: of each the values picked, or the text typed. An empty one takes
    its default.
    """

    corpus: str = ""
    columns: tuple[str, ...] | None = None
    tasks: tuple[str, ...] = ()
    lists: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    learn: tuple[str, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    """By field, what is wrong with files that cannot be read or used."""
    priority: int = 0
    retries: int = 0
    """How the runs wait and come back, not what they are: `core.store.Store.add_runs`."""


@dataclass(frozen=True)
class Plan:
    """The runs to launch, or the field that is wrong and a sentence on it."""

    configs: tuple[RunConfig, ...] = ()
    field: str | None = None
    error: str | None = None


def plan(draft: Draft) -> Plan:
    """Every run of the sweep: each combination of the values once, STL once per task."""
    for name, sentence in draft.problems.items():
        return Plan(field=name, error=sentence)
    try:
        _chosen(draft)
        base = {
            "corpus": draft.corpus,
            "columns": draft.columns,
            "tasks": draft.tasks,
            **({"learn": draft.learn} if draft.learn else {}),
        }
        configs = expand(base, lists_of(draft))
    except ConfigError as error:
        return Plan(field=error.field, error=str(error))
    return Plan(configs=tuple(configs))


def applicable(
    encoders: Iterable[str], trainings: Iterable[str], paradigms: Iterable[str], priors: Iterable[str]
) -> frozenset[str]:
    """The fields that at least one run of these kinds has."""
    kinds = itertools.product(paradigms, encoders, trainings, tuple(priors) or (None,))
    return frozenset[str]().union(*(applicable_fields(*kind) for kind in kinds))


def lists_of(draft: Draft) -> dict[str, list[Any]]:
    """The values of each field that has any and that a run of this form has, in the order in which runs vary.

    Raises ConfigError.
    """
    kinds = (draft.lists.get(name, ()) for name in ("encoder", "encoder_training", "paradigm", "prior"))
    asked = applicable(*kinds)
    told = {name: values_of(name, draft.lists[name]) for name in _ORDER if name in asked & draft.lists.keys()}
    return {name: values for name, values in told.items() if values}


def values_of(name: str, given: str | tuple[str, ...]) -> list[Any]:
    """What is picked or typed, as values of that field. Raises ConfigError."""
    if not isinstance(given, str):
        return list(given)
    if not given.strip():
        return []
    if name == "seed":
        return seeds(given)
    if is_number(name):
        return numbers(given, name)
    return [part.strip() for part in given.split(",") if part.strip()]


def _chosen(draft: Draft) -> None:
    if not draft.corpus:
        raise ConfigError("corpus", "Choose a corpus, or upload one.")
    if not draft.tasks:
        raise ConfigError("tasks", "Choose at least one task.")
    for name in NEEDED:
        given = draft.lists.get(name, "")
        if name in _ONLY_MRN and "mrn" not in draft.lists.get("paradigm", ()):
            continue
        if isinstance(given, str) and not given.strip():
            raise ConfigError(name, "Write at least one number.")
        if not given:
            raise ConfigError(name, f"Choose at least one {_KINDS.get(name, name)}.")
