"""The fields that only some runs have: when, why not otherwise, and their defaults where they apply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import FIELD, ConfigError
from core.registry import (
    PREDICTED,
    WORD_ENCODERS,
    EncoderTraining,
    has_bilstm,
    parse_training,
    reads_words,
    recommended_learning_rate,
)

LEARNABLE: tuple[str, ...] = ("task", "label", "feature")
NOTHING = "none"
"""The value of `learn` for a prior whose covariances stay as they begin."""

CONTEXT_FIELDS = ("paradigm", "encoder", "encoder_training", "prior")
"""The fields that decide which others a run has."""

# Heads start at zero and learn faster than the encoder: the prior then reads what was learned instead
# of the noise of initial weights (measured: a task correlation of 0.99 instead of 0.07).
_HEAD_RATE_FACTOR = 10.0
# The fewer layers are trained, the faster: 10 / K times the rate of a whole encoder. The heads' rate then
# goes from that of fine-tuning to that over frozen features. Measured: docs/performance.md.
_TOP_RATE = 10.0
# Adapters want a rate 15 times as fast, and heads hardly a faster one than their own.
_ADAPTER_RATE, _ADAPTER_HEAD_FACTOR = 15.0, 4 / 3
# Over frozen features heads carry all the learning: they want larger weights, so a faster rate. Measured on
# CoNLL-2003, 5%, MiniLM: at 0.002 the heads are far from done after ten epochs.
_FROZEN_HEAD_RATE = 2e-2
# λ has other units in each prior: for `paper` the least that was published, also the study's best; `map`
# needs a small one, for near 1 it shrinks everything to nothing.
_LAMBDA = {"relational": 1e-2, "map": 1e-3, "paper": 5e-2, PREDICTED: 5e-3}
# Over frozen features the study of the priors (docs/studies/priors.md) found the relational prior best with
# the task covariance alone and λ = 0.003: on dev 0.7 points below the best of each setting in the mean.
_FROZEN_LAMBDA, _FROZEN_LEARN = 3e-3, ("task",)


_WORD_HIDDEN = 256  # per direction, as in the SC-LSTM paper's table 2


@dataclass(frozen=True)
class Condition:
    """When a run has `field`, why it must be unset otherwise, and its default. `applies` and `default` are
    given the values of CONTEXT_FIELDS, `lr_encoder` and `added_to`.
    """

    field: str
    applies: Callable[[Mapping[str, Any]], bool]
    because: str
    default: Callable[[Mapping[str, Any]], Any]


def comma_list(text: str) -> list[str]:
    """The entries of a list with commas, without the empty ones."""
    return [entry.strip() for entry in text.split(",") if entry.strip()]


def _is_mrn(values: Mapping[str, Any]) -> bool:
    return bool(values["paradigm"] == "mrn")


def _training(values: Mapping[str, Any]) -> EncoderTraining:
    try:
        return parse_training(str(values["encoder_training"]))
    except ConfigError:  # refused when the run is built; until then the form shows all fields
        return EncoderTraining("full")


def _learns(values: Mapping[str, Any]) -> bool:
    """Whether the run has covariances to learn."""
    return _is_mrn(values) and values["prior"] != PREDICTED


def _is_frozen(values: Mapping[str, Any]) -> bool:
    return not _training(values).trains_any


def _has_bilstm(values: Mapping[str, Any]) -> bool:
    return has_bilstm(str(values["encoder"]))


def _reads_words(values: Mapping[str, Any]) -> bool:
    return reads_words(str(values["encoder"]))


def _shares(values: Mapping[str, Any]) -> bool:
    return bool(values["paradigm"] != "stl")


def _stacks(values: Mapping[str, Any]) -> bool:
    return values["encoder"] in ("bilstm", "sc-lstm")


def _lambda(values: Mapping[str, Any]) -> float:
    prior = str(values["prior"])
    if prior == "relational" and _is_frozen(values):
        return _FROZEN_LAMBDA
    return _LAMBDA.get(prior, _LAMBDA["relational"])


def _learn(values: Mapping[str, Any]) -> tuple[str, ...]:
    return _FROZEN_LEARN if values["prior"] == "relational" and _is_frozen(values) else LEARNABLE


def _encoder_rate(values: Mapping[str, Any]) -> float:
    training, factor = _training(values), 1.0
    if training.top:
        factor = max(1.0, _TOP_RATE / training.top)
    elif training.rank:
        factor = _ADAPTER_RATE
    return float(f"{factor * recommended_learning_rate(str(values['encoder'])):.2g}")


def _head_rate(values: Mapping[str, Any]) -> float:
    rate = values["lr_encoder"]
    if rate is None:
        return _FROZEN_HEAD_RATE
    factor = _ADAPTER_HEAD_FACTOR if _training(values).rank else _HEAD_RATE_FACTOR
    return float(rate) * (1.0 if _reads_words(values) else factor)


_ONLY_MRN = "only MRN has a prior; set the paradigm to mrn to use it"
_ONLY_LEARNS = "only MRN has a prior, and the prior predicted learns no covariance"
_ONLY_BILSTM = "only an encoder whose name ends in +bilstm, or that reads words, has a BiLSTM"
_ONLY_WORDS = f"only an encoder that reads words has it: {', '.join(WORD_ENCODERS)}"

CONDITIONS: tuple[Condition, ...] = (
    Condition(
        "prior", _is_mrn, _ONLY_MRN, lambda values: PREDICTED if values.get("added_to") else "relational"
    ),
    Condition(
        "added_to",
        lambda values: _is_mrn(values) and values["prior"] == PREDICTED,
        "only a run with the prior predicted adds a task to another run",
        lambda _: None,
    ),
    Condition("alignment", _is_mrn, _ONLY_MRN, lambda _: "auto"),
    Condition("lambda_", _is_mrn, _ONLY_MRN, _lambda),
    Condition("learn", _learns, _ONLY_LEARNS, _learn),
    Condition(
        "shrinkage",
        lambda values: _learns(values) and values["prior"] != "paper",
        "the paper prior draws nothing towards the identity, the predicted one learns no covariance, and "
        "without MRN there is no prior",
        lambda _: 1.0,
    ),
    Condition(
        "label_scale",
        lambda values: _learns(values) and values["prior"] != "paper",
        "the priors paper and predicted have no scales, and without MRN there is no prior",
        lambda _: "equal",
    ),
    Condition(
        "task_correlation",
        lambda values: _learns(values) and values["prior"] != "paper",
        "the paper prior begins with the identity, the predicted one learns nothing, and without MRN there "
        "is no prior",
        lambda _: 0.0,
    ),
    Condition("update_every", _learns, _ONLY_LEARNS, lambda _: 10),
    Condition("update_timing", _learns, _ONLY_LEARNS, lambda _: "interval"),
    Condition("snapshots", _learns, _ONLY_LEARNS, lambda _: 50),
    Condition(
        "lr_encoder",
        lambda values: not _is_frozen(values),
        "a frozen encoder is not trained; set encoder_training to full to use it",
        _encoder_rate,
    ),
    Condition("lr_heads", lambda _: True, "", _head_rate),
    Condition("lr_bilstm", _has_bilstm, _ONLY_BILSTM, lambda _: 1e-3),
    Condition(
        "bilstm_hidden",
        _has_bilstm,
        _ONLY_BILSTM,
        lambda values: _WORD_HIDDEN if _reads_words(values) else 768,
    ),
    Condition(
        "task_order",
        lambda values: values["encoder"] == "lstm-d" and _shares(values),
        "only lstm-d has a layer for each task, and STL has one task",
        lambda _: None,
    ),
    Condition("vectors", _reads_words, _ONLY_WORDS, lambda _: "glove"),
    Condition("vectors_training", _reads_words, _ONLY_WORDS, lambda _: "tuned"),
    Condition("capitals", _reads_words, _ONLY_WORDS, lambda _: True),
    Condition("characters", _reads_words, _ONLY_WORDS, lambda _: "cnn"),
    Condition("context_encoder", _reads_words, _ONLY_WORDS, lambda _: None),
    *(Condition(name, _reads_words, _ONLY_WORDS, lambda _: None) for name in ("shared_dense", "task_dense")),
    Condition(
        "window",
        lambda values: values["encoder"] == "bilstm",
        "only the encoder bilstm reads windows of words",
        lambda _: None,
    ),
    Condition(
        "task_embedding",
        lambda values: _shares(values) and _training(values).trains_all and not _has_bilstm(values),
        "it tells a fine-tuned transformer right below the heads which of several tasks it computes; STL has "
        "one task, and an encoder that is not trained in full, a BiLSTM and encoders that read words have no "
        "task embeddings",
        lambda _: "none",
    ),
    Condition("input_dropout", _reads_words, _ONLY_WORDS, lambda _: 0.5),
    Condition(
        "lstm_layers",
        _stacks,
        "only bilstm and sc-lstm choose it; lstm-d has a layer for each task",
        lambda _: 1,
    ),
    Condition(
        "heads",
        lambda values: values["paradigm"] == "mtl",
        "only MTL can share rows of heads among tasks; the prior of MRN relates rows that each task has, and "
        "STL has one task",
        lambda _: "own",
    ),
    Condition("task_weights", _shares, "STL has one task; set the paradigm to mtl or mrn", lambda _: None),
    Condition(
        "affinity_every",
        lambda values: _shares(values) and (not _is_frozen(values) or _has_bilstm(values)),
        "it compares what tasks do to layers that they share and train; STL has one task, and a frozen "
        "encoder without a BiLSTM trains no layer but the heads",
        lambda _: None,
    ),
)


_LABELS = {
    "lambda": "λ",
    "fraction": "Share",
    "seed": "Seeds",
    "encoder_training": "Training",
    "lr_encoder": "Learning rate, encoder",
    "lr_heads": "Learning rate, heads",
    "lr_bilstm": "Learning rate, BiLSTM",
    "bilstm_hidden": "BiLSTM size",
    "pos_score": "Score of plain labels",
    "select_by": "Best epoch by",
    "learn": "Covariances to learn",
    "head_init": "Heads start from",
    "update_every": "Update covariances every",
    "task_correlation": "Task correlation at first",
    "max_length": "Longest piece",
    "batch_tokens": "Batch budget",
    "truecase": "Restore case",
    "fraction_draw": "Draw the share",
    "dev_sentences": "Held-out dev set",
    "label_inventory": "Labels of the heads",
    "update_timing": "When to update",
    "batching": "Sentences of a batch",
    "corpus_order": "Several corpora",
    "dropout_on": "Dropout sets to zero",
    "lstm_layers": "LSTM layers",
    "vectors": "Word vectors",
    "vectors_training": "Word vectors are",
    "capitals": "Capitalisation",
    "characters": "Characters",
    "context_encoder": "Contextual vectors",
    "window": "Words around each word",
    "shared_dense": "Dense layers of all tasks",
    "task_dense": "Dense layers of each task",
    "task_embedding": "Task embeddings",
    "lr_schedule": "Learning rate schedule",
    "clip_norm": "Clip gradients at",
    "draw_tasks": "Tasks of a step",
    "task_weights": "Weights of tasks",
    "affinity_every": "Measure affinity every",
    "label_scale": "Scale of labels",
    "added_to": "Added to run",
    "pooling": "Vector of a text",
    "pair_encoding": "Pairs are read",
    "pair_heads": "Heads of pairs",
    "heads": "Rows of heads",
}


def field_label(field: str) -> str:
    """What pages call the field, by its public name: `Share` for `fraction`."""
    return _LABELS.get(field, field.replace("_", " ").capitalize())


def public_name(attribute: str) -> str:
    """The field's name outside of Python: `lambda` for `lambda_`."""
    return "lambda" if attribute == "lambda_" else attribute


def attribute_name(field: str) -> str:
    """The field's name in Python: `lambda_` for `lambda`."""
    return "lambda_" if field == "lambda" else field


def fill(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The values with the defaults of the conditional fields that such a run has.

    `defaults` are those of CONTEXT_FIELDS. Raises ConfigError for a field that the run does not have.
    """
    filled = dict(values)
    context = {name: filled.get(name, default) for name, default in defaults.items()}
    context |= {name: filled.get(name) for name in ("lr_encoder", "added_to")}
    for condition in CONDITIONS:
        applies = condition.applies(context)
        is_set = filled.get(condition.field) is not None
        if applies and not is_set:
            filled[condition.field] = condition.default(context)
            if condition.field in context:
                context[condition.field] = filled[condition.field]
        elif is_set and not applies:
            field = public_name(condition.field)
            raise ConfigError(field, f"{FIELD} must be left unset here: {condition.because}.")
    return filled
