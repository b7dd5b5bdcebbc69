"""RunConfig: the one description of a run, for the form, the command line, the worker and the store.

Some fields belong only to some runs (λ to MRN, the encoder's rate to fine-tuning). Where a field's condition
holds it takes its default, where it does not it must be unset, so two runs that do the same have the same
description and the same `configuration_id`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, get_args

from pydantic import (
    ConfigDict,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import from_json

from core.config.fields import (
    CONTEXT_FIELDS,
    MODEL_CONFIG,
    FieldHelp,
    FieldRule,
    comma_list,
    help_of,
    is_list,
    metadata_of,
)
from core.config.parts import OTHER as OTHER
from core.config.parts import PARADIGMS as PARADIGMS
from core.config.parts import (
    Data,
    EncoderChoice,
    Heads,
    Layers,
    Mode,
    Optimisation,
    Part,
    Schedule,
    Scoring,
    Sharing,
)
from core.errors import FIELD, ConfigError
from core.registry import (
    BILSTM_SUFFIX,
    BY_CONFIGURATION,
    FROZEN,
    FULL,
    GRADIENT_BALANCING,
    PREDICTED,
    PRIORS,
    base_name,
    has_bilstm,
    parse_alignment,
    reads_words,
    task_smoothing,
    top_layer_count,
)
from core.wording import any_of, plural

_WHOLE: Mapping[str, Any] = {"whole": True}  # context of a serialisation that leaves nothing out
_UNREADABLE = "unreadable"  # the corpus that is shown of a stored description without a valid one
_ALSO_READ = ("lr_encoder", "added_to")  # fields that defaults depend on, beside CONTEXT_FIELDS


class _Fields(Scoring, Optimisation, Heads, Layers, Schedule, Sharing, EncoderChoice, Data):
    """The fields of a run, each checked by itself."""

    model_config = ConfigDict(**MODEL_CONFIG | {"extra": "ignore"})


_ATTRIBUTES = {info.alias or name: name for name, info in _Fields.model_fields.items()}
"""The names of fields in Python by those outside: pydantic alone knows that `lambda` is `lambda_`."""
_PUBLIC = {name: field for field, name in _ATTRIBUTES.items()}
_LISTS = [name for name, info in _Fields.model_fields.items() if is_list(info.annotation)]


def public_name(name: str) -> str:
    """The name of a field outside of Python, `lambda`, also where it is given as `lambda_`."""
    return _PUBLIC.get(name, name)


def _in_python(values: Mapping[Any, Any]) -> dict[Any, Any]:
    """The values by the names of fields in Python."""
    return {_ATTRIBUTES.get(field, field): value for field, value in values.items()}


class RunConfig(_Fields):
    """One training with one seed: its parts as one flat description (`core.config.parts`).

    Frozen; JSON in (`from_json`) and out (`to_json`).
    """

    __slots__ = ("_hash",)
    model_config = MODEL_CONFIG

    @field_validator(*_LISTS, mode="before")
    @classmethod
    def _split_names(cls, value: Any) -> Any:
        """A comma-separated string (command line, URL) is a list of names."""
        if isinstance(value, str):
            return tuple(comma_list(value))
        return value

    @field_validator(*_LISTS)
    @classmethod
    def _no_name_twice(cls, value: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if value and isinstance(value[0], str) and len(set(value)) != len(value):
            raise ValueError("a name is listed twice; list each name once")
        return value

    @field_validator("encoder_training")
    @classmethod
    def _says_what_is_trained(cls, value: str) -> str:
        top_layer_count(value)
        return value

    @field_validator("draw_tasks")
    @classmethod
    def _says_how_tasks_are_drawn(cls, value: str) -> str:
        task_smoothing(value)
        return value

    @field_validator("lstm_layers")
    @classmethod
    def _unset_where_each_task_has_a_layer(cls, value: int | None, info: ValidationInfo) -> int | None:
        """Runs that do the same have the same description."""
        of_each_task = info.data.get("encoder") == "lstm-d" and value == len(info.data.get("tasks", ()))
        return None if of_each_task else value

    @field_validator("learn")
    @classmethod
    def _in_fixed_order(cls, value: tuple[Mode, ...] | None) -> tuple[Mode, ...] | None:
        return value and tuple(mode for mode in get_args(Mode) if mode in value)

    @model_validator(mode="before")
    @classmethod
    def _fill_conditional_fields(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return with_defaults(_in_python(data))

    @model_validator(mode="after")
    def _fields_fit_each_other(self) -> RunConfig:
        for field, problem in self._contradictions():
            raise ConfigError(field, f"{FIELD}{problem}")
        return self

    def _contradictions(self) -> Iterator[tuple[str, str]]:
        """The fields that do not fit others, each with the sentence that follows its name."""
        number, names = len(self.tasks), ", ".join(self.tasks)
        if self.paradigm == "stl" and number != 1:
            yield "tasks", f": STL learns exactly one task, not {number} ({names})."
        if self.prior == PREDICTED:
            if self.added_to is None:
                yield "added_to", ": name the finished run that the task is added to."
            if number != 1:
                yield "tasks", ": choose one task. You can add another afterwards."
            if self.encoder_training != FROZEN or has_bilstm(self.encoder):
                problem = "a task is added to trained heads over the same features."
                yield "encoder_training", f" must be frozen here, without a BiLSTM: {problem}"
        elif self.paradigm in ("mtl", "mrn") and number < 2:
            aim = "share" if self.paradigm == "mtl" else "relate"
            needs = f"{self.paradigm.upper()} needs at least two tasks to {aim}"
            yield "tasks", f": {needs}; name another or use STL."
        if self.paradigm == OTHER and not self.system:
            yield "system", " is missing: name the system that made the predictions."
        if self.batch_tokens is not None:
            if self.batch_size != type(self).model_fields["batch_size"].default:
                yield "batch_size", " must be left unset here: batch_tokens says how much a step reads."
            if self.batching == "shuffled":
                problem = "batch_tokens fills each batch with sentences of like length; leave it unset to use"
                yield "batching", f": {problem} 'shuffled', or set batching to 'by_length'."
        if reads_words(self.encoder) and self.encoder_training != FULL:
            problem = "what reads words is trained; vectors_training fixes vectors."
            yield "encoder_training", f" must be full here: {problem}"
        if self.task_order is not None and sorted(self.task_order) != sorted(self.tasks):
            yield "task_order", f": name each of {names} once, not {', '.join(self.task_order)}."
        if self.context_encoder is not None and has_bilstm(self.context_encoder):
            problem = f"without {BILSTM_SUFFIX}, not '{self.context_encoder}'."
            yield "context_encoder", f" must be a transformer's name {problem}"
        if self.window is not None and self.window % 2 == 0:
            yield "window", f" must be an odd number of words, not {self.window}."
        if self.window is not None and self.lstm_layers != 1:
            yield "window", f": one LSTM layer reads windows, not {self.lstm_layers}."
        weights = self.task_weights
        if weights is not None and (len(weights) != number or min(weights) <= 0):
            yield "task_weights", f": name a weight above 0 for each of the {plural(number, 'task')}."
        if self.patience is not None and self.select_by == "last":
            yield "patience", " must be left unset here: select_by keeps the last epoch."
        if self.draw_tasks != "together" and (self.corpus_order, self.fraction_draw) != ("mixed", "once"):
            problem = "where corpora come in turn or the share is drawn each epoch."
            yield "draw_tasks", f" must be 'together' {problem}"
        if self.permuted is not None and self.permuted not in self.tasks:
            yield "permuted", f" must be one of the run's tasks ({names}), not '{self.permuted}'."
        if self.balancing in GRADIENT_BALANCING:
            is_drawn, is_frozen = self.draw_tasks != "together", self.encoder_training == FROZEN
            problem = "a step of draw_tasks trains one task, whose gradient meets no other." * is_drawn
            if is_frozen and not has_bilstm(self.encoder):
                problem = "over a frozen encoder without a BiLSTM tasks share no trained weight."
            if problem:
                yield "balancing", f" must be none, uncertainty or dwa here: {problem}"
        if self.columns is not None and "tokens" not in self.columns:
            yield "columns", ": one of the names must be 'tokens', the column of the words."
        if self.prior is not None and self.prior not in (*PRIORS, PREDICTED):
            yield "prior", f" must be {any_of([*PRIORS, PREDICTED])}, not '{self.prior}'."
        if self.alignment is not None:
            parse_alignment(self.alignment)
        if self.learn is not None and "none" in self.learn and len(self.learn) > 1:
            yield "learn", ": 'none' stands alone; name covariances or 'none'."

    @model_serializer(mode="wrap")
    def _without_later_fields(
        self, handler: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> dict[str, Any]:
        """Leaves out later fields at their old values, so that ids of earlier descriptions hold."""
        values: dict[str, Any] = handler(self)
        if info.context is _WHOLE:
            return values
        return {
            name: value
            for name, value in values.items()
            if not (rule := FIELD_RULES[name]).optional or value not in (None, rule.legacy)
        }

    @classmethod
    def build(cls, /, **values: Any) -> RunConfig:
        """A RunConfig from loose values (form, command line).

        Raises ConfigError with one sentence that names the field and the accepted values.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            field = public_name(str(first["loc"][0])) if first["loc"] else "configuration"
            raise ConfigError(field, _error_sentence(field, first)) from None

    @classmethod
    def from_stored(cls, values: Mapping[str, Any]) -> RunConfig:
        """The description from stored values, which may lack later fields.

        Raises ConfigError with one sentence.
        """
        return cls.build(**_changed_defaults() | dict(values))

    @classmethod
    def unchecked(cls, values: Mapping[str, Any]) -> RunConfig:
        """The readable fields of a stored description that no longer holds.

        Each field has its stored value where that is of the field's type, else its default. The values may
        contradict each other.
        """
        named = _in_python(_changed_defaults() | dict(values))
        try:
            fields = _Fields.model_validate(named)
        except ValidationError as error:
            wrong = _in_python({str(problem["loc"][0]): problem for problem in error.errors()})
            left = {name: value for name, value in named.items() if name not in wrong}
            # Both must be set; that no task is known is said below.
            fields = _Fields.model_validate({"corpus": _UNREADABLE, "tasks": (_UNREADABLE,), **left})
        shown = dict(fields)
        if shown["tasks"] == (_UNREADABLE,):
            shown["tasks"] = ()
        for name, rule in _CONDITIONAL_RULES.items():
            if shown[name] is None and rule.when(shown):
                shown[name] = rule.default_of(shown)
        return cls.model_construct(None, **shown)

    @classmethod
    def from_json(cls, text: str) -> RunConfig:
        """The description that `to_json` wrote. Raises ConfigError, ValueError where it is no JSON object."""
        values = from_json(text)
        if not isinstance(values, dict):
            raise ValueError("a description of a run must be a JSON object")
        return cls.from_stored(values)

    def to_json(self) -> str:
        """The description as it is stored: without later fields at their old values."""
        return self.model_dump_json()

    def values(self) -> dict[str, Any]:
        """Every field by its public name, as JSON has it."""
        whole: dict[str, Any] = self.model_dump(mode="json", context=_WHOLE)
        return whole

    def value(self, field: str) -> Any:
        """The value of a field by its public name, as Python has it. Raises KeyError for another name."""
        return getattr(self, _ATTRIBUTES[field])

    def with_(self, **changes: Any) -> RunConfig:
        """A copy with other values. Fields that no longer apply (λ when MRN becomes MTL) are dropped."""
        changes = _in_python(changes)
        values = self.model_dump(by_alias=False, context=_WHOLE) | changes
        values |= {
            name: None
            for name, rule in _CONDITIONAL_RULES.items()
            if name not in changes and not rule.when(values)
        }
        if values.get("batch_tokens") is not None and "batch_size" not in changes:
            values.pop("batch_size")
        return type(self).build(**values)

    def __hash__(self) -> int:
        # Studies look thousands of runs up again and again. A copy has no slot filled, so it hashes anew.
        hashed: int | None = getattr(self, "_hash", None)
        if hashed is None:
            hashed = hash(tuple(self.__dict__.values()))
            object.__setattr__(self, "_hash", hashed)
        return hashed

    @property
    def top_layer_count(self) -> int:
        """How many of the encoder's last layers are trained over cached states; 0 unless `top:K`."""
        return top_layer_count(self.encoder_training)

    @property
    def lstm_layer_count(self) -> int | None:
        """How many LSTM layers a run over words has, of lstm-d one for each task where none are named."""
        return len(self.tasks) if self.encoder == "lstm-d" and self.lstm_layers is None else self.lstm_layers

    @property
    def transformer(self) -> str | None:
        """The name of the transformer that the run reads; None where it reads none."""
        return self.context_encoder if reads_words(self.encoder) else base_name(self.encoder)

    @property
    def learned(self) -> tuple[str, ...]:
        """The modes with a learned covariance."""
        return self.learn or (("task",) if self.prior == PREDICTED else get_args(Mode))

    @property
    def added_to_configuration(self) -> str | None:
        """The id of the configuration that the task is added to; its run of this seed is the base."""
        text = self.added_to or ""
        return text.removeprefix(BY_CONFIGURATION) if text.startswith(BY_CONFIGURATION) else None

    @property
    def embeds_tasks(self) -> bool:
        """Whether the encoder gets task embeddings, and reads a sentence once for each task."""
        return self.task_embedding not in (None, "none")

    @property
    def configuration_id(self) -> str:
        """Hash of everything but the seed: runs that share it are seeds of one configuration."""
        values = json.loads(self.to_json())
        del values["seed"]
        canonical = json.dumps(values, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def _changed_defaults() -> dict[str, Any]:
    """The values of later fields in earlier descriptions, where they differ from the defaults."""
    # The other later fields are filled in as for any description: their defaults are the old values.
    return {
        name: rule.legacy
        for name, rule in FIELD_RULES.items()
        if rule.optional and FIELD_HELP[name].default not in (None, rule.legacy)
    }


def with_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with the defaults of the fields that this run has, by their names in Python.

    Raises ConfigError for a field that the run does not have.
    """
    filled = dict(values)
    context = {name: filled.get(name, RunConfig.model_fields[name].default) for name in CONTEXT_FIELDS}
    context |= {name: filled.get(name) for name in _ALSO_READ}
    for name, rule in _CONDITIONAL_RULES.items():
        applies, is_set = rule.when(context), filled.get(name) is not None
        if applies and not is_set:
            filled[name] = rule.default_of(context)
            if name in context:
                context[name] = filled[name]
        elif is_set and not applies:
            raise ConfigError(public_name(name), f"{FIELD} must be left unset here: {rule.reason}.")
    return filled


def default_value(config: RunConfig, field: str) -> Any:
    """The default of a field (by its public name) in this run; None where the run does not have it.

    No changed run is built for it, which might not be valid.
    """
    rule = FIELD_RULES[field]
    if not rule.is_conditional:
        return FIELD_HELP[field].default
    values = {name: getattr(config, name) for name in (*CONTEXT_FIELDS, *_ALSO_READ)}
    return rule.default_of(values) if rule.when(values) else None


_OF_OTHERS = frozenset({"corpus", "columns", "tasks", "fraction", "paradigm", "system", "seed", "pos_score"})


@lru_cache
def applicable_fields(
    paradigm: str, encoder: str, encoder_training: str, prior: str | None = None
) -> frozenset[str]:
    """The public names of the fields that a run of this kind has. `prior` None: the default one.

    What reads words is always trained, so it has no `encoder_training`, whatever is given. Of a system that
    was trained elsewhere no more is known than `_OF_OTHERS`.
    """
    if paradigm == OTHER:
        return _OF_OTHERS
    training = "full" if reads_words(encoder) else encoder_training
    context = dict(zip(CONTEXT_FIELDS, (paradigm, encoder, training, prior), strict=True))
    hidden = {name for name, rule in FIELD_RULES.items() if not rule.when(context)}
    hidden |= {"encoder_training"} if reads_words(encoder) else set()
    return frozenset(FIELD_RULES.keys() - hidden)


def has_field(config: RunConfig, field: str) -> bool:
    """Whether this run has the field (by its public name): it is set, or None has a meaning."""
    if field == "columns":  # unset where the corpus knows them, which says the same
        return config.columns is not None
    return field in fields_of(config)


def fields_of(config: RunConfig) -> frozenset[str]:
    """The public names of the fields that this run has."""
    return applicable_fields(*(getattr(config, name) for name in CONTEXT_FIELDS))


FIELD_RULES: Mapping[str, FieldRule] = {
    public_name(name): metadata_of(info, FieldRule) for name, info in RunConfig.model_fields.items()
}
"""By public name, in the order of the fields."""
_CONDITIONAL_RULES = _in_python({field: rule for field, rule in FIELD_RULES.items() if rule.is_conditional})


def _field_help() -> Iterator[tuple[str, FieldHelp]]:
    schemas = RunConfig.model_json_schema(by_alias=True)["properties"]
    for part in reversed(_Fields.__bases__):
        assert issubclass(part, Part)
        for name, info in part.model_fields.items():
            field = public_name(name)
            yield field, help_of(field, info, part.form_group, schemas[field])


FIELD_HELP: dict[str, FieldHelp] = dict(_field_help())
"""By public name, in the order of the fields."""


def field_label(field: str) -> str:
    """The name of the field on pages, by its public name: `Share` for `fraction`."""
    return FIELD_HELP[field].label if field in FIELD_HELP else field.replace("_", " ").capitalize()


def _error_sentence(field: str, error: Mapping[str, Any]) -> str:
    """The sentence of a ConfigError for pydantic's `error`: the accepted values and the given one."""
    help_ = FIELD_HELP.get(field)
    if error["type"] == "extra_forbidden" or help_ is None:
        return f"{FIELD}: a run has no such field; the fields are {', '.join(FIELD_HELP)}."
    if error["type"] == "missing":
        return f"{FIELD} is missing: {help_.sentence}"
    if error["type"] == "string_too_short":
        return f"{FIELD} must not be empty."
    if error["type"] == "value_error":
        return f"{FIELD}: {error['ctx']['error']}."
    given = error.get("input")
    if not help_.accepted:
        return f"{FIELD} cannot be {given!r}: {help_.description}"
    kind = {
        "int_parsing": "a whole number ",
        "int_from_float": "a whole number ",
        "float_parsing": "a number ",
    }
    shown = f"{given:g}" if isinstance(given, float) else repr(given)
    return f"{FIELD} must be {kind.get(error['type'], '')}{help_.accepted}, not {shown}."
