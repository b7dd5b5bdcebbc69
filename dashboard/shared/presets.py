"""Questions that one click answers: their runs, on Launch and on pages without a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.config import RunConfig

_SEEDS = range(1, 6)


@dataclass(frozen=True)
class LaunchPreset:
    """A question, the runs that answer it, and their description, for launching with one click."""

    title: str
    description: str
    configs: tuple[RunConfig, ...]


_TAG_SETS: Mapping[str, Any] = {"tasks": ("pos-a", "pos-b"), "encoder_training": "frozen", "fraction": 0.03}


def _try_it() -> tuple[RunConfig, ...]:
    # Over a frozen encoder tasks share trained weights only in a BiLSTM. The two tag sets are on sentences of
    # their own: on common ones tasks have the same words to learn from, and little to give each other.
    shared: Mapping[str, Any] = {
        **_TAG_SETS,
        "corpus": "demo-both-pos?dev=50",
        "encoder": "minilm+bilstm",
        "bilstm_hidden": 64,
        "lr_bilstm": 6e-3,
        "batch_size": 4,
        "epochs": 15,
    }
    kinds: tuple[Mapping[str, Any], ...] = (
        {"paradigm": "mrn", "alignment": "exact"},
        {"paradigm": "mtl"},
        *({"paradigm": "stl", "tasks": (task,)} for task in _TAG_SETS["tasks"]),
    )
    # Seed by seed: after a few seconds there is something of each paradigm to look at.
    return tuple(RunConfig.build(**{**shared, **kind}, seed=seed) for seed in _SEEDS for kind in kinds)


TRY_IT = LaunchPreset(
    "Does sharing help?",
    "STL, MTL and MRN on two small tag sets. 20 runs, 5 seeds, about 1\u00a0min.",
    _try_it(),
)


def _scarce() -> tuple[RunConfig, ...]:
    shared = {**_TAG_SETS, "corpus": "demo-both-pos", "encoder": "minilm", "epochs": 30}
    mrn = {**shared, "paradigm": "mrn", "learn": ("task",), "lambda": 0.003}
    # Under `disjoint` the tasks cannot be related: what MRN gains there is plain shrinkage, not relations.
    kinds = ({**shared, "paradigm": "mtl"}, {**mrn, "alignment": "disjoint"}, {**mrn, "alignment": "exact"})
    return tuple(RunConfig.build(**kind, seed=seed) for kind in kinds for seed in _SEEDS)


SCARCE = LaunchPreset(
    "Do relations help?",
    "MRN with and without relations, and MTL. 15 runs, 5 seeds, under 1\u00a0min.",
    _scarce(),
)


def _fine_tune() -> tuple[RunConfig, ...]:
    shared: Mapping[str, Any] = {"corpus": "demo", "tasks": ("pos", "chunk", "ner"), "paradigm": "mtl"}
    return tuple(
        RunConfig.build(**shared, encoder="minilm", encoder_training=training, epochs=3, seed=seed)
        for training in ("frozen", "full")
        for seed in range(1, 4)
    )


FINE_TUNE = LaunchPreset(
    "Is fine-tuning worth it?",
    "MiniLM frozen and fine-tuned, with MTL. 6 runs, 3 seeds, about 2\u00a0min.",
    _fine_tune(),
)


def _without_transformer() -> tuple[RunConfig, ...]:
    # MiniLM as in FINE_TUNE, whose runs are then used again. LSTMs start from word vectors alone: they need
    # more epochs, which are shorter, and a higher rate.
    shared: Mapping[str, Any] = {"corpus": "demo", "tasks": ("pos", "chunk", "ner"), "paradigm": "mtl"}
    rates = dict.fromkeys(("lr_encoder", "lr_heads", "lr_bilstm"), 5e-3)
    words: Mapping[str, Any] = {"epochs": 8, "bilstm_hidden": 100, **rates}
    return (
        tuple(
            RunConfig.build(**shared, encoder=encoder, **words, seed=seed)
            for encoder in ("bilstm", "sc-lstm")
            for seed in range(1, 4)
        )
        + FINE_TUNE.configs
    )


NO_TRANSFORMER = LaunchPreset(
    "Do I need a transformer?",
    "BiLSTM and SC-LSTM against MiniLM, frozen and fine-tuned, with MTL. 12 runs, 3 seeds, about 4\u00a0min.",
    _without_transformer(),
)

QUESTIONS: tuple[LaunchPreset, ...] = (TRY_IT, SCARCE, FINE_TUNE, NO_TRANSFORMER)
