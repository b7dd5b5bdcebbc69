"""RunConfig: the one description of a run, for the form, the command line, the worker and the store.

Some fields belong only to some runs (λ to MRN, the encoder's rate to fine-tuning). `CONDITIONS` lists
them: where the condition holds the field takes its default, where it does not the field must be unset,
so two runs that do the same have the same description and the same `configuration_id`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal, get_args

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

from core.config.fields import (
    CONDITIONS,
    CONTEXT_FIELDS,
    attribute_name,
    comma_list,
    fill,
    public_name,
)
from core.config.help import FieldHelp, help_of
from core.errors import FIELD, ConfigError
from core.registry import (
    BILSTM_SUFFIX,
    PREDICTED,
    PRIORS,
    EncoderTraining,
    base_name,
    has_bilstm,
    parse_alignment,
    parse_training,
    reads_words,
)
from core.wording import any_of, plural

Paradigm = Literal["stl", "mtl", "mrn"]
Mode = Literal["task", "label", "feature", "none"]
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
    "vectors": None,
    "vectors_training": None,
    "capitals": None,
    "characters": None,
    "input_dropout": None,
    "lstm_layers": None,
    "task_order": None,
    "head": "linear",
    "optimiser": "adamw",
    "lr_schedule": "linear",
    "clip_norm": None,
    "draw_tasks": "together",
    "task_weights": None,
    "patience": None,
    "context_encoder": None,
    "affinity_every": None,
    "window": None,
    "shared_dense": None,
    "task_dense": None,
    "pooling": "auto",
    "pair_encoding": "apart",
    "pair_heads": "own",
    "task_embedding": "none",
    "label_scale": "equal",
    "heads": "own",
    "task_correlation": 0.0,
    "added_to": None,
}
"""Fields that stored descriptions may lack, each with the value that such a run was trained with."""

_WHOLE: Mapping[str, Any] = {"whole": True}  # context of a serialisation that leaves nothing out


def _field(
    default: Any, unit: str, *, symbol: str | None = None, choices: tuple[str, ...] = (), **limits: Any
) -> Any:
    extra: dict[str, Any] = {"unit": unit} | ({"symbol": symbol} if symbol else {})
    if choices:
        extra["enum"] = list(choices)
    return Field(default, json_schema_extra=extra, **limits)


class RunConfig(BaseModel):
    """One training with one seed. Frozen; JSON in (`from_json`) and out (`to_json`).

    The docstrings of the fields are what the form, the command line and the docs say of them.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    corpus: str = _field(..., "name or folder", min_length=1)
    """The annotated sentences: a name of the catalogue, a folder of annotated words or texts, or a corpus
    derived from such, as 'apart:demo?tokens=300'.
    """
    columns: tuple[str, ...] | None = _field(None, "names")
    """The names of a CoNLL file's columns from left to right, one of them 'tokens'; unset where the corpus
    knows them.
    """
    tasks: tuple[str, ...] = _field(..., "names", min_length=1)
    """The columns of labels to learn. STL learns exactly one, MRN at least two."""
    fraction: float = _field(1.0, "share", gt=0, le=1)
    """The share of each corpus's training sentences to use, drawn at random by the seed."""
    fraction_draw: Literal["once", "each_epoch"] = _field("once", "choice")
    """When the share is drawn: 'once' fixes the sentences before training; 'each_epoch' shuffles all
    sentences in every epoch and trains on that share of the batches, as the dissertation's program does.
    """
    dev_sentences: int | None = _field(None, "sentences", ge=0, le=1_000_000)
    """Training sentences to hold out as development sentences, for each corpus without a dev split. Unset: a
    tenth. 0: none; all of them train, and without any dev split the last epoch is kept.
    """
    label_inventory: Literal["corpus", "train"] = _field("corpus", "choice")
    """The labels that each head has: 'corpus' takes the corpus's own tag list, or else the labels of all its
    sentences; 'train' takes those of this run's training sentences.
    """
    truecase: bool = _field(False, "yes or no")
    """Restore the case of sentences written all in capitals, before tokenisation."""
    encoder: str = _field("minilm", "name", min_length=1)
    """The shared layers: a known name, a Hugging Face Hub id or a local folder; add '+bilstm' for a BiLSTM on
    top.
    """
    encoder_training: str = _field("full", "choice", choices=("full", "frozen", "top:K", "lora:R"))
    """'full' fine-tunes the encoder; 'frozen' computes its features once, caches them and trains only what
    stands on top, in seconds. Between the two: 'top:K' trains the last K layers over cached states of the
    layer below; 'lora:R' trains adapters of rank R in the attention of all layers.
    """
    paradigm: Paradigm = _field("mrn", "choice")
    """STL trains one task alone, MTL shares the encoder among tasks, MRN also learns how tasks, labels and
    features relate.
    """
    prior: str | None = _field(None, "choice")
    """The regulariser of MRN: 'relational' learns relations at a fixed scale, 'map' the scale too, 'paper'
    follows the published procedure; 'predicted' adds one task to a finished run.
    """
    added_to: str | None = _field(None, "number or folder", min_length=1)
    """The finished run over a frozen encoder that this run's one task is added to: its number, or its
    checkpoint folder. The heads of its tasks stay; the new one begins at what they predict, and is drawn to
    it.
    """
    alignment: str | None = _field(None, "choice")
    """How the labels of different tasks meet in MRN: 'disjoint' keeps them apart, 'exact' joins equal names,
    'cooccurrence' relates labels that stand on the same tokens, 'mapping:FILE' follows a CSV file, 'auto'
    chooses.
    """
    lambda_: float | None = _field(None, "factor", symbol="λ", alias="lambda", gt=0, le=1e6)
    """The strength of the MRN prior (unset: relational 0.01, or 0.003 over a frozen encoder; map 0.001; paper
    0.05).
    """
    learn: tuple[Mode, ...] | None = _field(None, "task, label, feature", min_length=1)
    """Which covariances MRN learns, or 'none'; the others stay as they begin (unset: relational over a
    frozen encoder learns task alone, else all three).
    """
    shrinkage: float | None = _field(None, "factor", symbol="κ", gt=0, le=1e6)
    """How strongly each learned covariance is drawn towards where it begins, in pseudo-observations for each
    of its rows; it matters most to features.
    """
    task_correlation: float | None = _field(None, "correlation", ge=0, lt=1)
    """The correlation of every two tasks with which the task covariance begins, and to which it is drawn
    where it is learned; 0 is the identity.
    """
    label_scale: Literal["equal", "counts"] | None = _field(None, "choice")
    """How strongly MRN holds each label's weights near zero: 'equal', all labels alike; 'counts', in
    proportion to the label's training words, so that rare labels are held less.
    """
    update_every: int | None = _field(None, "steps", ge=1, le=100_000)
    """Training steps between two updates of the covariances."""
    update_timing: Literal["interval", "epoch_start"] | None = _field(None, "choice")
    """Which steps update the covariances: 'interval' counts update_every steps over the whole run;
    'epoch_start' updates after the first batch of each epoch and every update_every batches from there, as
    the dissertation's program does. The last step always updates them.
    """
    snapshots: int | None = _field(None, "snapshots", ge=1, le=1000)
    """How often during the run the three covariances are stored, evenly spaced, the last step always."""
    seed: int = _field(1, "number", ge=0, le=2**31 - 1)
    """The source of all randomness. Runs that differ only in it are seeds of one configuration."""
    epochs: int = _field(5, "passes", ge=1, le=1000)
    """Passes over the training sentences."""
    batch_size: int = _field(16, "sentences", ge=1, le=4096)
    """Sentences in one step, where batch_tokens is not set."""
    batch_tokens: int | None = _field(None, "subwords", ge=8, le=1_000_000)
    """The most subwords in one step, of sentences of like length: many short or few long ones. Unset:
    batch_size sentences.
    """
    batching: Literal["by_length", "shuffled"] = _field("by_length", "choice")
    """Which sentences share a batch: 'by_length' puts sentences of like length together, so that little is
    padded; 'shuffled' draws them at random.
    """
    corpus_order: Literal["mixed", "in_turn"] = _field("mixed", "choice")
    """How several corpora make an epoch: 'mixed' draws batches from all sentences and averages losses over
    all tasks; 'in_turn' trains on one corpus after the other, and each batch averages the losses of its own
    tasks.
    """
    max_length: int = _field(256, "subwords", ge=8, le=8192)
    """Longest piece the encoder sees at once; longer sentences are read in overlapping windows."""
    lr_encoder: float | None = _field(None, "per step", gt=0, le=1)
    """Learning rate of the encoder (unset: the encoder's own, 10 / K times that for top:K, 15 times that for
    lora:R).
    """
    lr_heads: float | None = _field(None, "per step", gt=0, le=1)
    """Learning rate of the task heads (unset: ten times the encoder's, 4/3 of it for lora:R, the same where
    the encoder reads word vectors, or 0.02 over a frozen encoder).
    """
    lr_bilstm: float | None = _field(None, "per step", gt=0, le=1)
    """Learning rate of the BiLSTM, and of dense layers above it."""
    bilstm_hidden: int | None = _field(None, "features", ge=1, le=4096)
    """Size of the BiLSTM in each direction."""
    lstm_layers: int | None = _field(None, "layers", ge=1, le=8)
    """How many LSTM layers stand one on the other; of sc-lstm the top one has the cells of the tasks."""
    task_order: tuple[str, ...] | None = _field(None, "names")
    """Which task reads which layer of lstm-d, from the lowest on; unset in the order of the tasks."""
    vectors: str | None = _field(None, "name or file")
    """The pre-trained word vectors: 'glove', or a text file in the format of GloVe or word2vec, gzip too."""
    vectors_training: Literal["tuned", "fixed"] | None = _field(None, "choice")
    """'tuned' trains the vectors of the training words with all else; 'fixed' leaves them all as they are."""
    capitals: bool | None = _field(None, "yes or no")
    """Tell the encoder which of eight patterns of capitalisation each word has."""
    characters: Literal["none", "cnn"] | None = _field(None, "choice")
    """'cnn' also reads each word's characters: 16 features each, 128 filters of width 3, the most of each."""
    context_encoder: str | None = _field(None, "name", min_length=1)
    """A transformer that is read beside the word vectors, frozen: a known name, a Hugging Face Hub id or a
    local folder. Each word gets the states of its first subword (unset: none).
    """
    window: int | None = _field(None, "words", ge=3, le=99)
    """How many words the BiLSTM reads of each word, a sequence of its own with the word in the middle: an odd
    number (unset: the whole sentence).
    """
    shared_dense: int | None = _field(None, "layers", ge=1, le=8)
    """Dense layers with a ReLU above the LSTMs, the same for all tasks and as wide as their states (unset:
    none).
    """
    task_dense: int | None = _field(None, "layers", ge=1, le=8)
    """Dense layers with a ReLU that each task has of its own, above those that all share (unset: none)."""
    task_embedding: Literal["none", "input", "attention", "projected", "elu", "tanh", "selu"] | None = _field(
        None, "choice"
    )
    """How the transformer is told which task it computes, by vectors of each task that are trained: 'input'
    adds one to the embeddings; 'attention' one each to the queries, keys and values of every layer;
    'projected' adds one to all of these, through a matrix each; 'elu', 'tanh' and 'selu' also pass each sum
    through that function and one more matrix. Every sentence is read once for each of its tasks, except with
    'none'.
    """
    input_dropout: float | None = _field(None, "share", ge=0, lt=1)
    """Probability of dropout at the inputs of the LSTM's layers while training."""
    heads: Literal["own", "shared"] | None = _field(None, "choice")
    """The rows of MTL's heads: each task has its own, or labels of the same name are one row for all tasks
    with it, as one head that is trained on the words of all.
    """
    head: Literal["linear", "crf", "crf_legal"] = _field("linear", "choice")
    """What labels are chosen by: 'linear' takes each word by itself; 'crf' learns which label follows
    which and takes the best sequence of a sentence; 'crf_legal' also rules out I- labels that continue no
    span.
    """
    pooling: Literal["auto", "cls", "mean"] = _field("auto", "choice")
    """What stands for a whole text: 'cls', the state of its first subword; 'mean', the mean over all its
    subwords; 'auto' follows the encoder's own convention.
    """
    pair_encoding: Literal["apart", "together"] = _field("apart", "choice")
    """How the encoder reads a pair of texts: 'apart' in two passes, whose vectors are then compared;
    'together' in one pass, so that each text sees the other.
    """
    pair_heads: Literal["own", "shared"] = _field("own", "choice")
    """The heads of pairs that are read apart: each task has its own, or all share one linear layer."""
    dropout: float = _field(0.1, "share", ge=0, lt=1)
    """Probability of dropout at the heads while training."""
    dropout_on: Literal["features", "logits"] = _field("features", "choice")
    """What dropout sets to zero: 'features', the inputs of the heads, or 'logits', their outputs, as the
    dissertation's program does.
    """
    head_init: Literal["zeros", "default"] = _field("zeros", "choice")
    """What heads start from: zeros, or the random weights of a linear layer."""
    optimiser: Literal["adamw", "adam", "sgd", "adadelta"] = _field("adamw", "choice")
    """What makes the steps: AdamW, Adam, SGD with momentum 0.9, or Adadelta (its usual rate is 1)."""
    lr_schedule: Literal["linear", "constant"] = _field("linear", "choice")
    """How the learning rates change: they fall linearly to zero over all epochs, or stay."""
    weight_decay: float = _field(1e-2, "per step", ge=0, le=10)
    """AdamW's decoupled weight decay; with the other optimisers an L2 penalty."""
    clip_norm: float | None = _field(None, "norm", gt=0, le=1e6)
    """The largest norm of a step's gradient; a larger gradient is scaled down to it."""
    draw_tasks: Literal["together", "uniform", "by_size"] = _field("together", "choice")
    """Which tasks a step trains: 'together' all that its sentences have labels of; 'uniform' and 'by_size'
    one task, drawn among those with batches left, all alike or by their number. An epoch then has every
    task's batches.
    """
    task_weights: tuple[float, ...] | None = _field(None, "factors")
    """What each task's loss is multiplied by, in the order of the tasks (unset: 1)."""
    affinity_every: int | None = _field(None, "steps", ge=1, le=100_000)
    """Training steps between two measurements of how the tasks' gradients agree and whose step lowers whose
    loss (unset: none). They change nothing in the training but its time.
    """
    patience: int | None = _field(None, "epochs", ge=1, le=1000)
    """After how many epochs without a better one the training ends early (unset: it never does)."""
    select_by: Literal["score", "loss", "last"] = _field("score", "choice")
    """Which epoch's model is kept: the one with the highest mean score over tasks on the development
    sentences, the one with the lowest mean cross-entropy over tasks there, or the last.
    """
    pos_score: Literal["accuracy", "seqeval_f1"] = _field("accuracy", "choice")
    """How tasks without spans are scored: token accuracy, or seqeval's F1 as in the dissertation's tables."""
    device: str = _field("auto", "device", pattern=r"^(auto|cpu|cuda(:\d+)?)$")
    """Where to train: auto, cpu, cuda or cuda:N."""
    precision: Literal["auto", "fp32", "bf16"] = _field("auto", "choice")
    """Numbers in the encoder: 32-bit floats, or bfloat16 where the machine is fast at it."""

    @field_validator("columns", "tasks", "task_order", "task_weights", "learn", mode="before")
    @classmethod
    def _split_names(cls, value: Any) -> Any:
        """A comma-separated string (command line, URL) is a list of names."""
        if isinstance(value, str):
            return tuple(comma_list(value))
        return value

    @field_validator("columns", "tasks", "task_order", "learn")
    @classmethod
    def _no_name_twice(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value and len(set(value)) != len(value):
            raise ValueError("a name is listed twice; list each name once")
        return value

    @field_validator("encoder_training")
    @classmethod
    def _says_what_is_trained(cls, value: str) -> str:
        parse_training(value)
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
        values = {attribute_name(key): value for key, value in data.items()}
        return fill(values, {name: cls.model_fields[name].default for name in CONTEXT_FIELDS})

    @model_validator(mode="after")
    def _fields_fit_each_other(self) -> RunConfig:
        number, names = len(self.tasks), ", ".join(self.tasks)
        if self.paradigm == "stl" and number != 1:
            raise ConfigError("tasks", f"{FIELD}: STL learns exactly one task, not {number} ({names}).")
        if self.prior == PREDICTED:
            self._check_added()
        elif self.paradigm != "stl" and number < 2:
            aim = "share" if self.paradigm == "mtl" else "relate"
            needs = f"{self.paradigm.upper()} needs at least two tasks to {aim}"
            raise ConfigError("tasks", f"{FIELD}: {needs}; name another or use STL.")
        default_size = type(self).model_fields["batch_size"].default
        if self.batch_tokens is not None and self.batch_size != default_size:
            problem = f"{FIELD} must be left unset here: batch_tokens says how much a step reads."
            raise ConfigError("batch_size", problem)
        if self.batch_tokens is not None and self.batching == "shuffled":
            problem = (
                f"{FIELD}: batch_tokens fills each batch with sentences of like length; leave it unset to "
                "use 'shuffled', or set batching to 'by_length'."
            )
            raise ConfigError("batching", problem)
        if reads_words(self.encoder) and not self.training.trains_all:
            problem = (
                f"{FIELD} must be full here: what reads words is trained; vectors_training fixes vectors."
            )
            raise ConfigError("encoder_training", problem)
        if self.task_order is not None and sorted(self.task_order) != sorted(self.tasks):
            given = ", ".join(self.task_order)
            raise ConfigError("task_order", f"{FIELD}: name each of {names} once, not {given}.")
        if self.context_encoder is not None and has_bilstm(self.context_encoder):
            problem = (
                f"{FIELD} must be a transformer's name without {BILSTM_SUFFIX}, not '{self.context_encoder}'."
            )
            raise ConfigError("context_encoder", problem)
        if self.window is not None and self.window % 2 == 0:
            raise ConfigError("window", f"{FIELD} must be an odd number of words, not {self.window}.")
        if self.window is not None and self.lstm_layers != 1:
            raise ConfigError("window", f"{FIELD}: one LSTM layer reads windows, not {self.lstm_layers}.")
        self._check_regime()
        if self.columns is not None and "tokens" not in self.columns:
            problem = f"{FIELD}: one of the names must be 'tokens', the column of the words."
            raise ConfigError("columns", problem)
        if self.prior is not None and self.prior not in (*PRIORS, PREDICTED):
            problem = f"{FIELD} must be {any_of([*PRIORS, PREDICTED])}, not '{self.prior}'."
            raise ConfigError("prior", problem)
        if self.alignment is not None:
            parse_alignment(self.alignment)
        if self.learn is not None and "none" in self.learn and len(self.learn) > 1:
            raise ConfigError("learn", f"{FIELD}: 'none' stands alone; name covariances or 'none'.")
        return self

    def _check_added(self) -> None:
        if self.added_to is None:
            raise ConfigError("added_to", f"{FIELD}: name the finished run that the task is added to.")
        if len(self.tasks) != 1:
            raise ConfigError("tasks", f"{FIELD}: choose one task. You can add another afterwards.")
        if self.training.trains_any or has_bilstm(self.encoder):
            raise ConfigError(
                "encoder_training",
                f"{FIELD} must be frozen here, without a BiLSTM: a task is added to trained heads over the "
                "same features.",
            )

    def _check_regime(self) -> None:
        weights, tasks = self.task_weights, plural(len(self.tasks), "task")
        if weights is not None and (len(weights) != len(self.tasks) or min(weights) <= 0):
            raise ConfigError("task_weights", f"{FIELD}: name a weight above 0 for each of the {tasks}.")
        if self.patience is not None and self.select_by == "last":
            raise ConfigError("patience", f"{FIELD} must be left unset here: select_by keeps the last epoch.")
        if self.draw_tasks != "together" and (self.corpus_order, self.fraction_draw) != ("mixed", "once"):
            problem = (
                f"{FIELD} must be 'together' where corpora come in turn or the share is drawn each epoch."
            )
            raise ConfigError("draw_tasks", problem)

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
            field = public_name(str(first["loc"][0])) if first["loc"] else "configuration"
            raise ConfigError(field, _error_sentence(field, first)) from None

    @classmethod
    def stored(cls, values: Mapping[str, Any]) -> RunConfig:
        """The description that was stored as these values, perhaps before there were `LATER_FIELDS`.

        Raises ConfigError with one sentence.
        """
        # The other later fields are filled in as for any description: their defaults are the old values.
        changed = {
            name: old
            for name, old in LATER_FIELDS.items()
            if cls.model_fields[name].default not in (None, old)
        }
        return cls.build(**changed | dict(values))

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
    def training(self) -> EncoderTraining:
        """What `encoder_training` says."""
        return parse_training(self.encoder_training)

    @property
    def transformer(self) -> str | None:
        """The name of the transformer that the run reads; None where it reads none."""
        return self.context_encoder if reads_words(self.encoder) else base_name(self.encoder)

    @property
    def learned(self) -> tuple[str, ...]:
        """The covariances that a run of MRN has something to tell of."""
        return self.learn or (("task",) if self.prior == PREDICTED else get_args(Mode))

    @property
    def embeds_tasks(self) -> bool:
        """Whether the encoder is told which task it computes, and reads a sentence once for each of them."""
        return self.task_embedding not in (None, "none")

    @property
    def configuration_id(self) -> str:
        """Hash of everything but the seed: runs that share it are seeds of one configuration."""
        values = json.loads(self.to_json())
        del values["seed"]
        canonical = json.dumps(values, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def applicable_fields(
    paradigm: str, encoder: str, encoder_training: str, prior: str | None = None
) -> frozenset[str]:
    """The public names of the fields that such a run has. `prior` None: the default one.

    What reads words is always trained, so it has no `encoder_training`, whatever is given.
    """
    training = "full" if reads_words(encoder) else encoder_training
    context = dict(zip(CONTEXT_FIELDS, (paradigm, encoder, training, prior), strict=True))
    hidden = {condition.field for condition in CONDITIONS if not condition.applies(context)}
    hidden |= {"encoder_training"} if reads_words(encoder) else set()
    return frozenset(public_name(name) for name in RunConfig.model_fields if name not in hidden)


FIELD_HELP: dict[str, FieldHelp] = {
    name: help_of(name, schema)
    for name, schema in RunConfig.model_json_schema(by_alias=True)["properties"].items()
}
"""By public name."""


def _error_sentence(field: str, error: Mapping[str, Any]) -> str:
    """The sentence of a ConfigError for pydantic's `error`: what is accepted and what was given."""
    help_ = FIELD_HELP.get(field)
    if error["type"] == "extra_forbidden" or help_ is None:
        return f"{field}: a run has no such field; the fields are {', '.join(FIELD_HELP)}."
    if error["type"] == "missing":
        return f"{FIELD} is missing: {help_.sentence}"
    if error["type"] == "string_too_short":
        return f"{FIELD} must not be empty."
    if error["type"] == "value_error":
        return f"{FIELD}: {str(error['msg']).removeprefix('Value error, ')}."
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
