"""The fields that only some runs have: when, why not otherwise, and their defaults where they apply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core.models.registry import has_bilstm, recommended_learning_rate

__all__ = ["CONDITIONS", "CONTEXT_FIELDS", "LEARNABLE", "Condition"]

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
