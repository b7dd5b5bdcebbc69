"""RunConfig: the one description of a run, for the form, the command line, the worker and the store.

Some fields belong only to some runs (λ to MRN, the encoder's rate to fine-tuning). `CONDITIONS` lists
them: where the condition holds the field takes its default, where it does not the field must be unset,
so two runs that do the same have the same description and the same `configuration_id`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from core.config.fields import CONDITIONS, CONTEXT_FIELDS, FieldHelp, check, error_sentence, fill, read_schema
from core.errors import ConfigError

Paradigm = Literal["stl", "mtl", "mrn"]
Mode = Literal["task", "label", "feature"]
PARADIGMS: tuple[str, ...] = get_args(Paradigm)

LATER_FIELDS: Mapping[str, Any] = {
    "batch_tokens": None,
    "fraction_draw": "once",
    "dev_sentences": None,
    "label_inventory": "train",
    "update_timing": "interval",
    "batching": "by_length",
    "corpus_order": "mixed",
    "dropout_on": "features",
}
"""Fields that stored descriptions may lack, each with the value that such a run was trained with."""

_WHOLE: Mapping[str, Any] = {"whole": True}  # context of a serialisation that leaves nothing out


def _unit(unit: str, symbol: str | None = None) -> dict[str, Any]:
    return {"unit": unit} | ({"symbol": symbol} if symbol else {})


class RunConfig(BaseModel):
    """One training with one seed. Frozen; JSON in (`from_json`) and out (`to_json`)."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True, allow_inf_nan=False
    )

    corpus: Annotated[
        str,
        Field(
            min_length=1,
            description="The annotated sentences: a name of the catalogue, a folder of CoNLL or CoNLL-U "
            "files, or a corpus derived from such, as 'apart:demo?tokens=300'.",
            json_schema_extra=_unit("name or folder"),
        ),
    ]
    columns: Annotated[
        tuple[str, ...] | None,
        Field(
            description="The names of a CoNLL file's columns from left to right, one of them 'tokens'; "
            "unset where the corpus knows them.",
            json_schema_extra=_unit("names"),
        ),
    ] = None
    tasks: Annotated[
        tuple[str, ...],
        Field(
            min_length=1,
            description="The columns of labels to learn. STL learns exactly one, MRN at least two.",
            json_schema_extra=_unit("names"),
        ),
    ]
    fraction: Annotated[
        float,
        Field(
            gt=0,
            le=1,
            description="The share of each corpus's training sentences to use, drawn at random by the seed.",
            json_schema_extra=_unit("share"),
        ),
    ] = 1.0
    fraction_draw: Annotated[
        Literal["once", "each_epoch"],
        Field(
            description="When the share is drawn: 'once' fixes the sentences before training; 'each_epoch' "
            "shuffles all sentences in every epoch and trains on that share of the batches, as the "
            "dissertation's program does.",
            json_schema_extra=_unit("choice"),
        ),
    ] = "once"
    dev_sentences: Annotated[
        int | None,
        Field(
            ge=0,
            le=1_000_000,
            description="Training sentences to hold out as development sentences, for each corpus without a "
            "dev split. Unset: a tenth. 0: none; all of them train, and without any dev split the last epoch "
            "is kept.",
            json_schema_extra=_unit("sentences"),
        ),
    ] = None
    label_inventory: Annotated[
        Literal["corpus", "train"],
        Field(
            description="The labels that each head has: 'corpus' takes the corpus's own tag list, or else "
            "the labels of all its sentences; 'train' takes those of this run's training sentences.",
            json_schema_extra=_unit("choice"),
        ),
    ] = "corpus"
    truecase: Annotated[
        bool,
        Field(
            description="Restore the case of sentences written all in capitals, before tokenisation.",
            json_schema_extra=_unit("yes or no"),
        ),
    ] = False
    encoder: Annotated[
        str,
        Field(
            min_length=1,
            description="The shared layers: a known name, a Hugging Face Hub id or a local folder; "
            "add '+bilstm' for a BiLSTM on top.",
            json_schema_extra=_unit("name"),
        ),
    ] = "minilm"
    encoder_training: Annotated[
        Literal["full", "frozen"],
        Field(
            description="'full' fine-tunes the encoder; 'frozen' computes its features once, caches them and "
            "trains only what stands on top, in seconds.",
            json_schema_extra=_unit("choice"),
        ),
    ] = "full"
    paradigm: Annotated[
        Paradigm,
        Field(
            description="STL trains one task alone, MTL shares the encoder among tasks, MRN also learns how "
            "tasks, labels and features relate.",
            json_schema_extra=_unit("choice"),
        ),
    ] = "mrn"
    prior: Annotated[
        str | None,
        Field(
            description="The regulariser of MRN: 'relational' learns relations at a fixed scale, 'map' "
            "the scale too, 'paper' follows the published procedure.",
            json_schema_extra=_unit("choice"),
        ),
    ] = None
    alignment: Annotated[
        str | None,
        Field(
            description="How the labels of different tasks meet in MRN: 'disjoint' keeps them apart, 'exact' "
            "joins equal names, 'cooccurrence' relates labels that stand on the same tokens, 'mapping:FILE' "
            "follows a CSV file, 'auto' chooses.",
            json_schema_extra=_unit("choice"),
        ),
    ] = None
    lambda_: Annotated[
        float | None,
        Field(
            alias="lambda",
            gt=0,
            le=1e6,
            description="The strength of the MRN prior (unset: relational 0.01, or 0.003 over a frozen "
            "encoder; map 0.001; paper 0.05).",
            json_schema_extra=_unit("factor", "λ"),
        ),
    ] = None
    learn: Annotated[
        tuple[Mode, ...] | None,
        Field(
            min_length=1,
            description="Which covariances MRN learns; the others stay the identity (unset: relational over "
            "a frozen encoder learns task alone, else all three).",
            json_schema_extra=_unit("task, label, feature"),
        ),
    ] = None
    shrinkage: Annotated[
        float | None,
        Field(
            gt=0,
            le=1e6,
            description="How strongly each learned covariance is drawn towards the identity, in "
            "pseudo-observations for each of its rows; it matters most to features.",
            json_schema_extra=_unit("factor", "κ"),
        ),
    ] = None
    update_every: Annotated[
        int | None,
        Field(
            ge=1,
            le=100_000,
            description="Training steps between two updates of the covariances.",
            json_schema_extra=_unit("steps"),
        ),
    ] = None
    update_timing: Annotated[
        Literal["interval", "epoch_start"] | None,
        Field(
            description="Which steps update the covariances: 'interval' counts update_every steps over the "
            "whole run; 'epoch_start' updates after the first batch of each epoch and every update_every "
            "batches from there, as the dissertation's program does. The last step always updates them.",
            json_schema_extra=_unit("choice"),
        ),
    ] = None
    snapshots: Annotated[
        int | None,
        Field(
            ge=1,
            le=1000,
            description="How many times during the run the three covariances are stored, evenly spaced, the "
            "last step always.",
            json_schema_extra=_unit("moments"),
        ),
    ] = None
    seed: Annotated[
        int,
        Field(
            ge=0,
            le=2**31 - 1,
            description="The source of all randomness. Runs that differ only in it are seeds of one "
            "configuration.",
            json_schema_extra=_unit("number"),
        ),
    ] = 1
    epochs: Annotated[
        int,
        Field(
            ge=1,
            le=1000,
            description="Passes over the training sentences.",
            json_schema_extra=_unit("passes"),
        ),
    ] = 5
    batch_size: Annotated[
        int,
        Field(
            ge=1,
            le=4096,
            description="Sentences in one step, where batch_tokens is not set.",
            json_schema_extra=_unit("sentences"),
        ),
    ] = 16
    batch_tokens: Annotated[
        int | None,
        Field(
            ge=8,
            le=1_000_000,
            description="The most subwords in one step, of sentences of like length: many short or few long "
            "ones. Unset: batch_size sentences.",
            json_schema_extra=_unit("subwords"),
        ),
    ] = None
    batching: Annotated[
        Literal["by_length", "shuffled"],
        Field(
            description="Which sentences share a batch: 'by_length' puts sentences of like length together, "
            "so that little is padded; 'shuffled' draws them at random.",
            json_schema_extra=_unit("choice"),
        ),
    ] = "by_length"
    corpus_order: Annotated[
        Literal["mixed", "in_turn"],
        Field(
            description="How several corpora make an epoch: 'mixed' draws batches from all sentences and "
            "averages losses over all tasks; 'in_turn' trains on one corpus after the other, and each batch "
            "averages the losses of its own tasks.",
            json_schema_extra=_unit("choice"),
        ),
    ] = "mixed"
    max_length: Annotated[
        int,
        Field(
            ge=8,
            le=8192,
            description="Longest piece the encoder sees at once; longer sentences are read in overlapping "
            "windows.",
            json_schema_extra=_unit("subwords"),
        ),
    ] = 256
    lr_encoder: Annotated[
        float | None,
        Field(
            gt=0,
            le=1,
            description="Learning rate of the encoder, falling linearly to zero (unset: the encoder's own).",
            json_schema_extra=_unit("per step"),
        ),
    ] = None
    lr_heads: Annotated[
        float | None,
        Field(
            gt=0,
            le=1,
            description="Learning rate of the task heads, falling linearly to zero (unset: ten times the "
            "encoder's, or 0.02 over a frozen encoder).",
            json_schema_extra=_unit("per step"),
        ),
    ] = None
    lr_bilstm: Annotated[
        float | None,
        Field(
            gt=0,
            le=1,
            description="Learning rate of the BiLSTM, falling linearly to zero.",
            json_schema_extra=_unit("per step"),
        ),
    ] = None
    bilstm_hidden: Annotated[
        int | None,
        Field(
            ge=1,
            le=4096,
            description="Size of the BiLSTM in each direction.",
            json_schema_extra=_unit("features"),
        ),
    ] = None
    dropout: Annotated[
        float,
        Field(
            ge=0,
            lt=1,
            description="Probability of dropout at the heads while training.",
            json_schema_extra=_unit("share"),
        ),
    ] = 0.1
    dropout_on: Annotated[
        Literal["features", "logits"],
        Field(
            description="What dropout sets to zero: 'features', the inputs of the heads, or 'logits', their "
            "outputs, as the dissertation's program does.",
            json_schema_extra=_unit("choice"),
        ),
    ] = "features"
    head_init: Annotated[
        Literal["zeros", "default"],
        Field(
            description="What heads start from: zeros, or the random weights of a linear layer.",
            json_schema_extra=_unit("choice"),
        ),
    ] = "zeros"
    weight_decay: Annotated[
        float,
        Field(
            ge=0, le=10, description="AdamW's decoupled weight decay.", json_schema_extra=_unit("per step")
        ),
    ] = 1e-2
    select_by: Annotated[
        Literal["score", "loss", "last"],
        Field(
            description="Which epoch's model is kept: the one with the highest mean score over tasks on the "
            "development sentences, the one with the lowest mean cross-entropy over tasks there, or the "
            "last.",
            json_schema_extra=_unit("choice"),
        ),
    ] = "score"
    pos_score: Annotated[
        Literal["accuracy", "seqeval_f1"],
        Field(
            description="How tasks without spans are scored: token accuracy, or seqeval's F1 as in the "
            "dissertation's tables.",
            json_schema_extra=_unit("choice"),
        ),
    ] = "accuracy"
    device: Annotated[
        str,
        Field(
            pattern=r"^(auto|cpu|cuda(:\d+)?)$",
            description="Where to train: auto, cpu, cuda or cuda:N.",
            json_schema_extra=_unit("device"),
        ),
    ] = "auto"
    precision: Annotated[
        Literal["auto", "fp32", "bf16"],
        Field(
            description="Numbers in the encoder: 32-bit floats, or bfloat16 where the machine is fast at it.",
            json_schema_extra=_unit("choice"),
        ),
    ] = "auto"

    @field_validator("columns", "tasks", "learn", mode="before")
    @classmethod
    def _split_names(cls, value: Any) -> Any:
        """A comma-separated string (command line, URL) is a list of names."""
        if isinstance(value, str):
            return tuple(name.strip() for name in value.split(",") if name.strip())
        return value

    @field_validator("columns", "tasks", "learn")
    @classmethod
    def _no_name_twice(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value and len(set(value)) != len(value):
            raise ValueError("names a thing twice; name each once")
        return value

    @field_validator("learn")
    @classmethod
    def _in_fixed_order(cls, value: tuple[Mode, ...] | None) -> tuple[Mode, ...] | None:
        return value and tuple(mode for mode in get_args(Mode) if mode in value)

    @model_validator(mode="before")
    @classmethod
    def _fill_conditional_fields(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        values = {("lambda_" if key == "lambda" else key): value for key, value in data.items()}
        return fill(values, {name: cls.model_fields[name].default for name in CONTEXT_FIELDS})

    @model_validator(mode="after")
    def _fields_fit_each_other(self) -> RunConfig:
        check(self)
        return self

    @model_serializer(mode="wrap")
    def _without_later_fields(
        self, handler: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> dict[str, Any]:
        """Leaves out `LATER_FIELDS` at their old values, so that ids of earlier descriptions hold."""
        values: dict[str, Any] = handler(self)
        if info.context is _WHOLE:
            return values
        return {
            name: value
            for name, value in values.items()
            if name not in LATER_FIELDS or value not in (None, LATER_FIELDS[name])
        }

    @classmethod
    def build(cls, **values: Any) -> RunConfig:
        """A RunConfig from loose values (form, command line).

        Raises ConfigError with one sentence that names the field and the accepted values.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            field = str(first["loc"][0]) if first["loc"] else "configuration"
            field = "lambda" if field == "lambda_" else field
            raise ConfigError(field, error_sentence(field, first, FIELD_HELP)) from None

    @classmethod
    def stored(cls, values: Mapping[str, Any]) -> RunConfig:
        """The description that was stored as these values, perhaps before there were `LATER_FIELDS`.

        Raises ConfigError with one sentence.
        """
        # The others are filled in as for any description: their defaults are the old values.
        changed = (
            name for name in LATER_FIELDS if cls.model_fields[name].default not in (None, LATER_FIELDS[name])
        )
        return cls.build(**{name: LATER_FIELDS[name] for name in changed} | dict(values))

    @classmethod
    def from_json(cls, text: str) -> RunConfig:
        """The description that `to_json` wrote. Raises ConfigError, ValueError where it is no JSON object."""
        values = json.loads(text)
        if not isinstance(values, dict):
            raise ValueError("a description of a run must be a JSON object")
        return cls.stored(values)

    def to_json(self) -> str:
        """The description as it is stored: without `LATER_FIELDS` at their old values."""
        return self.model_dump_json()

    def values(self) -> dict[str, Any]:
        """Every field by its public name, as JSON has it."""
        whole: dict[str, Any] = self.model_dump(mode="json", context=_WHOLE)
        return whole

    def with_(self, **changes: Any) -> RunConfig:
        """A copy with other values. Fields that no longer apply (λ when MRN becomes MTL) are dropped."""
        values = self.model_dump(by_alias=False, context=_WHOLE) | changes
        for condition in CONDITIONS:
            if not condition.applies(values) and condition.field not in changes:
                values[condition.field] = None
        if values.get("batch_tokens") is not None and "batch_size" not in changes:
            values.pop("batch_size")
        return type(self).build(**values)

    @property
    def configuration_id(self) -> str:
        """Hash of everything but the seed: runs that share it are seeds of one configuration."""
        values = json.loads(self.to_json())
        del values["seed"]
        canonical = json.dumps(values, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]


FIELD_HELP: dict[str, FieldHelp] = read_schema(RunConfig.model_json_schema(by_alias=True)["properties"])
