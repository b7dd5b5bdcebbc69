"""What the fields of a run are, and must be, beside each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.config.conditions import CONDITIONS
from core.errors import ConfigError

if TYPE_CHECKING:
    from core.config.run_config import RunConfig

__all__ = ["check", "fill"]


def fill(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The values with the defaults of the conditional fields that such a run has.

    `defaults` are those of the fields that decide. Raises ConfigError where one is given that it has not.
    """
    filled = dict(values)
    for condition in CONDITIONS:
        context = {name: filled.get(name, default) for name, default in defaults.items()}
        context["lr_encoder"] = filled.get("lr_encoder")
        applies = condition.applies(context)
        if applies and filled.get(condition.field) is None:
            filled[condition.field] = condition.default(context)
        elif not applies and filled.get(condition.field) is not None:
            public = "lambda" if condition.field == "lambda_" else condition.field
            raise ConfigError(public, f"{public} must be left unset here: {condition.because}.")
    return filled


def check(config: RunConfig) -> None:
    """Raises ConfigError where two fields do not go together, or one names what there is not."""
    _check_tasks(config)
    if (
        config.batch_tokens is not None
        and config.batch_size != type(config).model_fields["batch_size"].default
    ):
        raise ConfigError(
            "batch_size", "batch_size must be left unset here: batch_tokens says how much a step reads."
        )
    if config.batch_tokens is not None and config.batching == "shuffled":
        raise ConfigError(
            "batching",
            "batching: batch_tokens fills each batch with sentences of like length; leave it unset to use "
            "'shuffled', or set batching to 'by_length'.",
        )
    if config.columns is not None and "tokens" not in config.columns:
        raise ConfigError("columns", "columns: one of the names must be 'tokens', the column of the words.")
    # Imported here: the registries of priors and alignments name themselves, and need no torch.
    from core.mrn.registry import PRIORS, parse_alignment

    if config.prior is not None and config.prior not in PRIORS:
        raise ConfigError("prior", f"prior: '{config.prior}' is not one of {', '.join(PRIORS)}.")
    if config.alignment is not None:
        parse_alignment(config.alignment)


def _check_tasks(config: RunConfig) -> None:
    """Their number fits the paradigm."""
    if config.paradigm == "stl" and len(config.tasks) != 1:
        raise ConfigError(
            "tasks",
            f"tasks: STL learns exactly one task, not {len(config.tasks)} ({', '.join(config.tasks)}).",
        )
    if config.paradigm == "mrn" and len(config.tasks) < 2:
        raise ConfigError("tasks", "tasks: MRN needs at least two tasks to relate; name another or use STL.")
    if config.paradigm == "mtl" and len(config.tasks) < 2:
        raise ConfigError("tasks", "tasks: MTL needs at least two tasks to share; name another or use STL.")
