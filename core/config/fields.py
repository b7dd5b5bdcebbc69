"""The description of a run's fields: conditions, defaults by condition, help texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar, get_args, get_origin

from pydantic import ConfigDict, Field
from pydantic.fields import FieldInfo

from core.errors import ConfigError
from core.registry import (
    FROZEN,
    FULL,
    PREDICTED,
    PRIORS,
    WORD_ENCODERS,
    PriorSpec,
    has_bilstm,
    prior_spec,
    reads_words,
    recommended_learning_rate,
    top_layer_count,
)
from core.wording import all_of, any_of

NOTHING = "none"
"""The value of `learn` for a prior whose covariances stay as they begin."""

CONTEXT_FIELDS = ("paradigm", "encoder", "encoder_training", "prior")
"""The fields that decide which others a run has."""

# Heads start at zero and learn faster than the encoder: the prior then reads what was learned instead
# of the noise of initial weights (measured: a task correlation of 0.99 instead of 0.07).
_HEAD_RATE_FACTOR = 10
# The fewer layers are trained, the faster: 10 / K times the rate of a whole encoder. The heads' rate then
# goes from that of fine-tuning to that over frozen features. Measured: docs/performance.md.
_TOP_RATE = 10.0
# Over frozen features heads carry all the learning: they want larger weights, so a faster rate. Measured on
# CoNLL-2003, 5%, MiniLM: at 0.002 the heads are far from done after ten epochs.
_FROZEN_HEAD_RATE = 2e-2


MODEL_CONFIG = ConfigDict(
    frozen=True,
    extra="forbid",
    populate_by_name=True,
    serialize_by_alias=True,
    allow_inf_nan=False,
    use_attribute_docstrings=True,
)

Values = Mapping[str, Any]
"""Values of CONTEXT_FIELDS, `lr_encoder` and `added_to`, by the names that fields have in Python."""

_REQUIRED = object()
_T = TypeVar("_T")


@dataclass(frozen=True)
class FieldRule:
    """The rules of a field that pydantic does not know.

    when       says, from values of other fields, whether a run has the field
    reason     why the field must be unset in a run that does not have it
    default    its default in a run that has it, a value or a function of the other values
    legacy     the value of stored runs that were described before the field existed
    """

    when: Callable[[Values], bool]
    reason: str
    default: Any
    legacy: Any = _REQUIRED

    @property
    def optional(self) -> bool:
        """Whether stored descriptions may lack the field."""
        return self.legacy is not _REQUIRED

    @property
    def is_conditional(self) -> bool:
        """Whether only some runs have the field, or its default depends on other fields."""
        return self.when is not always or self.default is not None

    def default_of(self, values: Values) -> Any:
        """A field's default in a run of these values."""
        return self.default(values) if callable(self.default) else self.default


@dataclass(frozen=True)
class FieldView:
    """How the form, the command line and names of configurations show a field.

    rank      its place among the fields that a sweep varies slowest, from 1 on; 0 after them, in this order
    prominent the form asks for it in a place of its own, not under *More settings*
    seldom    the form asks for it only where it has a value
    open      the choices are the known ones; another value may be typed
    option    it is an option of `mrnlab launch`, not a value of `--set`
    reads     a run has it only where one of its tasks reads this (`core.tasks.TaskKind.reads`); empty: always
    unset     the form's words for no value
    hint      the form's words before the description
    short     its words in names of configurations; None: its name
    counted   what its value counts, one of them: names say `8 epochs`
    path      its value may be a path, of which names show the last part
    """

    rank: int = 0
    prominent: bool = False
    seldom: bool = False
    open: bool = False
    option: bool = False
    reads: frozenset[str] = frozenset()
    unset: str = ""
    hint: str = ""
    short: str | None = None
    counted: str = ""
    path: bool = False


_ORDINARY = FieldView()


def always(values: Values) -> bool:
    """True: every run has the field."""
    return True


def run_field(
    default: Any,
    unit: str,
    *,
    label: str | None = None,
    symbol: str | None = None,
    choices: tuple[str, ...] = (),
    when: Callable[[Values], bool] | None = None,
    reason: str = "",
    legacy: Any = _REQUIRED,
    view: FieldView = _ORDINARY,
    **limits: Any,
) -> Any:
    """A field of a part; its docstring is its description in the form, the command line and the docs.

    `default` may be a function of the run's other values where only some runs have the field (`when`).
    """
    about: dict[str, Any] = {"unit": unit, "symbol": symbol, "label": label, "enum": list(choices)}
    extra = {name: value for name, value in about.items() if value}
    info: Any = Field(None if when else default, json_schema_extra=extra, **limits)
    info.metadata += [FieldRule(when or always, reason, default if when else None, legacy), view]
    return info


def comma_list(text: str) -> list[str]:
    """The entries of a list with commas, without the empty ones."""
    return [entry.strip() for entry in text.split(",") if entry.strip()]


def is_mrn(values: Values) -> bool:
    return bool(values["paradigm"] == "mrn")


def learns(values: Values) -> bool:
    """Whether the run has covariances to learn."""
    return is_mrn(values) and values["prior"] != PREDICTED


def prior_default(name: str) -> Callable[[Values], Any]:
    """A default from the prior's spec, which may depend on how the encoder is trained."""

    def default(values: Values) -> Any:
        spec = prior_spec(str(values["prior"]))
        if spec is None:
            return None  # refused when the run is built
        return spec.default(name, str(values["encoder_training"]))

    return default


def prior_lines() -> str:
    """The description of each prior: `'map': the joint estimate of relations and scale; …`."""
    lines = {name: spec.description.partition(".")[0] for name, spec in PRIORS.items()}
    return "; ".join(f"'{name}': {line[:1].lower()}{line[1:]}" for name, line in lines.items())


def lambda_defaults() -> str:
    """The λ of each prior: `relational 0.001, 0.003 over a frozen encoder, 0.01 over one trained in part`."""

    def of_prior(name: str, spec: PriorSpec) -> str:
        full, frozen = (spec.default("lambda_", training) for training in (FULL, FROZEN))
        special = f", {frozen:g} over a frozen encoder, {spec.lambda_:g} over one trained in part"
        return f"{name} {full:g}{special if frozen != full else ''}"

    return "; ".join(of_prior(name, spec) for name, spec in PRIORS.items())


def default_encoder_rate(values: Values) -> float:
    factor = 1.0
    with suppress(ConfigError):  # refused when the run is built
        if top := top_layer_count(str(values["encoder_training"])):
            factor = max(1.0, _TOP_RATE / top)
    return float(f"{factor * recommended_learning_rate(str(values['encoder'])):.2g}")


def default_head_rate(values: Values) -> float:
    rate = values["lr_encoder"]
    if rate is not None:
        with suppress(TypeError, ValueError):  # refused when the run is built
            factor = 1 if reads_words(str(values["encoder"])) else _HEAD_RATE_FACTOR
            # In decimals: ten times 3e-5 is 3e-4, and not the float next to it.
            return min(1.0, float(Decimal(repr(float(rate))) * factor))
    return _FROZEN_HEAD_RATE


def has_scales(values: Values) -> bool:
    """Whether the covariances have scales, drawn to where they begin."""
    spec = prior_spec(str(values["prior"]))
    return learns(values) and (spec is None or spec.has_scales)


mrn_field = partial(run_field, when=is_mrn, reason="only MRN has a prior; set the paradigm to mrn to use it")
learning_field = partial(
    run_field, when=learns, reason="only MRN has a prior, and the prior predicted learns no covariance"
)
bilstm_field = partial(
    run_field,
    when=lambda run: has_bilstm(str(run["encoder"])),
    reason="only an encoder whose name ends in +bilstm, or that reads words, has a BiLSTM",
)
word_field = partial(
    run_field,
    when=lambda run: reads_words(str(run["encoder"])),
    reason=f"only an encoder that reads words has it: {', '.join(WORD_ENCODERS)}",
)


scaled_prior_field = partial(
    run_field,
    when=has_scales,
    reason="only MRN has it, with a prior that draws covariances to where they begin: "
    + any_of([name for name, spec in PRIORS.items() if spec.has_scales]),
)


def is_list(annotation: Any) -> bool:
    """Whether values of this type are lists, where they are set."""
    return any(get_origin(type_) is tuple for type_ in (annotation, *get_args(annotation)))


@dataclass(frozen=True)
class FieldHelp:
    """The description of a field, for the form, the command line and the docs."""

    name: str
    """Outside of Python: `lambda` for `lambda_`."""
    description: str
    unit: str
    range: str
    accepted: str
    """The range in words, as it follows "must be": `above 0 and at most 1`, `stl, mtl or mrn`."""
    symbol: str | None
    label: str
    """The name of the field on the pages."""
    group: str
    """The group of the form's *More settings* that its part belongs to."""
    default: Any
    """Its default where all runs have the same; else None, or pydantic's mark of a required field."""
    annotation: Any
    """The type of its values."""
    view: FieldView

    @property
    def is_list(self) -> bool:
        """Whether a value of it is a list."""
        return is_list(self.annotation)

    @property
    def sentence(self) -> str:
        """Description, range and unit in one line."""
        details = ", ".join(part for part in (self.range, self.unit) if part)
        return f"{self.description} ({details})" if details else self.description


_LIMITS = {
    "exclusiveMinimum": (">", "above"),
    "minimum": ("≥", "at least"),
    "exclusiveMaximum": ("<", "below"),
    "maximum": ("≤", "at most"),
}


def metadata_of(info: FieldInfo, kind: type[_T]) -> _T:
    """The FieldRule or the FieldView of a field."""
    return next(entry for entry in info.metadata if isinstance(entry, kind))


def help_of(name: str, info: FieldInfo, group: str, schema: Mapping[str, Any]) -> FieldHelp:
    """The help of a field, with its JSON schema; its range are the choices or the limits."""
    range_ = accepted = ""
    for option in (schema, *schema.get("anyOf", [])):
        limits = [(sign, words, option[key]) for key, (sign, words) in _LIMITS.items() if key in option]
        choices = [choice for choice in option.get("enum", ()) if choice is not None]
        range_ = range_ or " | ".join(choices) or ", ".join(f"{sign} {value:g}" for sign, _, value in limits)
        in_words = [f"{words} {value:,.10g}" for _, words, value in limits]
        accepted = accepted or any_of(choices) or all_of(in_words)
    description = " ".join(schema["description"].split())
    unit, symbol = schema["unit"], schema.get("symbol")
    label = schema.get("label", name.replace("_", " ").capitalize())
    view = metadata_of(info, FieldView)
    about = (description, unit, range_, accepted, symbol, label, group)
    return FieldHelp(name, *about, info.default, info.annotation, view)
