"""What the form holds, and the runs it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.config import RunConfig
from core.errors import ConfigError
from core.lists import numbers, seeds
from core.sweep import expand

__all__ = ["Draft", "Plan", "plan"]


@dataclass(frozen=True)
class Draft:
    """The form as it stands: lists as typed, single values by field (None: the default)."""

    corpus: str
    columns: tuple[str, ...] | None
    tasks: tuple[str, ...]
    encoders: tuple[str, ...]
    paradigms: tuple[str, ...]
    lambdas: str
    fractions: str
    seeds: str
    values: Mapping[str, Any] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    """By field, what is wrong with files that cannot be read or used."""


@dataclass(frozen=True)
class Plan:
    """The runs to launch, or the field that is wrong and a sentence on it."""

    configs: tuple[RunConfig, ...] = ()
    field: str | None = None
    error: str | None = None


def plan(draft: Draft) -> Plan:
    """Every run of the sweep: encoders × paradigms × λ × shares × seeds, STL once per task."""
    for name, sentence in draft.problems.items():
        return Plan(field=name, error=sentence)
    try:
        _chosen(draft)
        configs = expand(
            {"corpus": draft.corpus, "columns": draft.columns, "tasks": draft.tasks, **_set(draft.values)},
            {
                "encoder": draft.encoders,
                "paradigm": draft.paradigms,
                **_lambdas(draft),
                "fraction": numbers(draft.fractions, "fraction"),
                "seed": seeds(draft.seeds),
            },
        )
    except ConfigError as error:
        return Plan(field=error.field, error=str(error))
    return Plan(configs=tuple(configs))


def _lambdas(draft: Draft) -> dict[str, list[float]]:
    """The list of λ; none where nothing has one, or where each run takes its own default."""
    wanted = "mrn" in draft.paradigms and draft.lambdas.strip()
    return {"lambda": numbers(draft.lambdas, "lambda")} if wanted else {}


def _chosen(draft: Draft) -> None:
    for name, value, words in (
        ("corpus", draft.corpus, "Choose a corpus, or upload one."),
        ("tasks", draft.tasks, "Choose at least one task."),
        ("encoder", draft.encoders, "Choose at least one encoder."),
        ("paradigm", draft.paradigms, "Choose at least one paradigm."),
    ):
        if not value:
            raise ConfigError(name, words)


def _set(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
