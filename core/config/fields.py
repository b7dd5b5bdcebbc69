"""The fields that only some runs have: when, why not otherwise, and their defaults where they apply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.errors import ConfigError
from core.registry import has_bilstm, recommended_learning_rate

if TYPE_CHECKING:
    from core.config.run_config import RunConfig


LEARNABLE: tuple[str, ...] = ("task", "label", "feature")

# Heads start at zero and learn faster than the encoder: the prior then reads what was learned instead
# of the noise of initial weights (measured: a task correlation of 0.99 instead of 0.07).
_HEAD_RATE_FACTOR = 10.0
# Over frozen features heads carry all the learning: they want larger weights, so a faster rate. Measured on
# CoNLL-2003, 5%, MiniLM: at 0.002 the heads are far from done after ten epochs.
_FROZEN_HEAD_RATE = 2e-2
# Over frozen features the study of the priors (docs/studies/priors.md) found the relational prior best with
# the task covariance alone and λ = 0.003: on dev 0.7 points below the best of each setting in the mean.
_FROZEN_STRENGTH = 3e-3
_FROZEN_LEARN = ("task",)
# The strengths of other priors have other units: for `paper` the least that was published, also the study's
# best; `map` needs a small one, for near 1 it shrinks everything to nothing.
_STRENGTHS = {"relational": 1e-2, "map": 1e-3, "paper": 5e-2}

CONTEXT_FIELDS = ("paradigm", "encoder", "encoder_training", "prior")


@dataclass(frozen=True)
class Condition:
    """A field that only some runs have: when, why not otherwise, and its default where it applies."""

    field: str
    applies: Callable[[Mapping[str, Any]], bool]
    because: str
    default: Callable[[Mapping[str, Any]], Any]


def _is_mrn(values: Mapping[str, Any]) -> bool:
    return bool(values["paradigm"] == "mrn")


def _shrinks(values: Mapping[str, Any]) -> bool:
    return _is_mrn(values) and values["prior"] != "paper"


def _is_finetuned(values: Mapping[str, Any]) -> bool:
    return bool(values["encoder_training"] != "frozen")


def _is_bilstm(values: Mapping[str, Any]) -> bool:
    return has_bilstm(str(values["encoder"]))


def _head_rate(values: Mapping[str, Any]) -> float:
    if values["lr_encoder"] is None:
        return _FROZEN_HEAD_RATE
    return _HEAD_RATE_FACTOR * float(values["lr_encoder"])


def _is_relational_over_frozen(values: Mapping[str, Any]) -> bool:
    return values["prior"] == "relational" and not _is_finetuned(values)


def _strength(values: Mapping[str, Any]) -> float:
    if _is_relational_over_frozen(values):
        return _FROZEN_STRENGTH
    return _STRENGTHS.get(str(values["prior"]), _STRENGTHS["relational"])


def _learned(values: Mapping[str, Any]) -> tuple[str, ...]:
    return _FROZEN_LEARN if _is_relational_over_frozen(values) else LEARNABLE


_ONLY_MRN = "only MRN has a prior; set the paradigm to mrn to use it"
_ONLY_BILSTM = "only an encoder whose name ends in +bilstm has a BiLSTM"

CONDITIONS: tuple[Condition, ...] = (
    Condition("prior", _is_mrn, _ONLY_MRN, lambda _: "relational"),
    Condition("alignment", _is_mrn, _ONLY_MRN, lambda _: "auto"),
    Condition("lambda_", _is_mrn, _ONLY_MRN, _strength),
    Condition("learn", _is_mrn, _ONLY_MRN, _learned),
    Condition(
        "shrinkage",
        _shrinks,
        "the paper prior draws nothing towards the identity, and without MRN there is no prior",
        lambda _: 1.0,
    ),
    Condition("update_every", _is_mrn, _ONLY_MRN, lambda _: 10),
    Condition("update_timing", _is_mrn, _ONLY_MRN, lambda _: "interval"),
    Condition("snapshots", _is_mrn, _ONLY_MRN, lambda _: 50),
    Condition(
        "lr_encoder",
        _is_finetuned,
        "a frozen encoder is not trained; set encoder_training to full to use it",
        lambda values: recommended_learning_rate(str(values["encoder"])),
    ),
    Condition("lr_heads", lambda _: True, "", _head_rate),
    Condition("lr_bilstm", _is_bilstm, _ONLY_BILSTM, lambda _: 1e-3),
    Condition("bilstm_hidden", _is_bilstm, _ONLY_BILSTM, lambda _: 768),
)


# What the fields of a run are, and must be, beside each other.


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
    from core.registry import PRIORS, parse_alignment

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


# What the form, the command line and the docs say of a field: description, range, unit.


@dataclass(frozen=True)
class FieldHelp:
    """What the form, the command line and the docs say of a field."""

    name: str
    description: str
    unit: str
    range: str
    symbol: str | None

    @property
    def sentence(self) -> str:
        """Description, range and unit in one line."""
        details = ", ".join(part for part in (self.range, self.unit) if part)
        return f"{self.description} ({details})" if details else self.description


def _range(schema: Mapping[str, Any]) -> str:
    options = [schema, *schema.get("anyOf", [])]
    for option in options:
        if "enum" in option:
            return " | ".join(map(str, option["enum"]))
    for option in options:
        bounds = [
            f"{sign} {option[key]:g}"
            for key, sign in (
                ("exclusiveMinimum", ">"),
                ("minimum", "≥"),
                ("exclusiveMaximum", "<"),
                ("maximum", "≤"),
            )
            if key in option
        ]
        if bounds:
            return ", ".join(bounds)
    return ""


def read_schema(properties: Mapping[str, Mapping[str, Any]]) -> dict[str, FieldHelp]:
    """FieldHelp by field name, from the properties of a JSON schema."""
    return {
        name: FieldHelp(name, schema["description"], schema["unit"], _range(schema), schema.get("symbol"))
        for name, schema in properties.items()
    }


def error_sentence(field: str, error: Mapping[str, Any], fields: Mapping[str, FieldHelp]) -> str:
    """One sentence for pydantic's `error` on `field`: what was given and what is accepted."""
    help_ = fields.get(field)
    what = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        return f"{field}: a run has no such field; the fields are {', '.join(fields)}."
    if error["type"] == "missing":
        return f"{field}: is missing ({help_.sentence if help_ else 'required'})."
    accepted = f" Accepted: {help_.range} ({help_.unit})." if help_ and help_.range else ""
    return f"{field}: {error.get('input')!r} is not possible: {what[0].lower()}{what[1:]}.{accepted}"
