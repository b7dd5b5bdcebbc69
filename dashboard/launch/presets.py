"""Starting points of the Launch page: questions that launch runs, and forms that are filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.config import PRESETS, RunConfig
from core.config.sweep import value_text
from dashboard.launch.draft import OPTIONS, Draft

_SEEDS = range(1, 6)


@dataclass(frozen=True)
class LaunchPreset:
    """A question, what is trained to answer it, and the runs that one click launches."""

    title: str
    words: str
    configs: tuple[RunConfig, ...]


@dataclass(frozen=True)
class FormPreset:
    """A form that one click fills in."""

    title: str
    words: str
    form: Draft


_TAG_SETS: Mapping[str, Any] = {
    "tasks": ("pos-a", "pos-b"),
    "encoder_training": "frozen",
    "fraction": 0.03,
}


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
    "STL, MTL and MRN on two small tag sets. 20 runs, 5 seeds, about 1 min.",
    _try_it(),
)


def _scarce() -> tuple[RunConfig, ...]:
    shared = {**_TAG_SETS, "corpus": "demo-both-pos", "encoder": "minilm", "epochs": 30}
    mrn = {**shared, "paradigm": "mrn", "learn": ("task",), "lambda": 0.003}
    # Under `disjoint` the tasks cannot be related: what MRN gains there is plain shrinkage, not relations.
    kinds = ({**shared, "paradigm": "mtl"}, {**mrn, "alignment": "disjoint"}, {**mrn, "alignment": "exact"})
    return tuple(RunConfig.build(**kind, seed=seed) for kind in kinds for seed in _SEEDS)


SCARCE = LaunchPreset(
    "Is it the relations?",
    "MRN with and without relations, and MTL. 15 runs, 5 seeds, about 20 s.",
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
    "MiniLM frozen and fine-tuned, MTL. 6 runs, 3 seeds, about 2 min.",
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
    "Do I need a transformer at all?",
    "BiLSTM and SC-LSTM over word vectors, MiniLM frozen and fine-tuned. 12 runs, 3 seeds, about 4 min.",
    _without_transformer(),
)

QUESTIONS: tuple[LaunchPreset, ...] = (TRY_IT, SCARCE, FINE_TUNE, NO_TRANSFORMER)

_ENCODERS = ("bert-base-cased", "bert-base-cased+bilstm", "roberta-base")


def _table(
    corpus: str, tasks: tuple[str, ...], preset: str = "dissertation", **lists: str | tuple[str, ...]
) -> Draft:
    """A form with all settings of a preset and five seeds; `lists` say what is otherwise."""
    shared = {
        name: (value_text(value),) if name in OPTIONS else value_text(value)
        for name, value in PRESETS[preset].items()
    }
    return Draft(
        corpus, tasks=tasks, lists={"paradigm": ("stl", "mtl", "mrn"), **shared, "seed": "1-5", **lists}
    )


_CHANG: tuple[FormPreset, ...] = (
    FormPreset(
        "Table 1",
        "CoNLL-2003: NER, chunking and POS; BERT, BERT-BiLSTM and RoBERTa; 5 seeds",
        _table("conll2003", ("pos", "chunk", "ner"), encoder=_ENCODERS),
    ),
    FormPreset(
        "Table 2",
        "CoNLL-2000: chunking and POS; BERT, BERT-BiLSTM and RoBERTa; 5 seeds",
        _table("conll2000", ("pos", "chunk"), encoder=_ENCODERS),
    ),
    FormPreset(
        "Table 3",
        "POS of both corpora together, 5% and 10% of each; BERT; labels of equal name share a row; 5 seeds",
        _table(
            "both-pos",
            ("pos-2003", "pos-2000"),
            paradigm=("mtl", "mrn"),
            alignment=("exact",),
            fraction="0.05, 0.1",
            # As the program draws: corpora in turn, a fresh share in each epoch, no dev sentences.
            select_by=("last",),
            corpus_order=("in_turn",),
            fraction_draw=("each_epoch",),
        ),
    ),
)

_LU: tuple[FormPreset, ...] = (
    FormPreset(
        "SC-LSTM",
        "CoNLL-2003: NER, chunking and POS; LSTM-s, LSTM-d and SC-LSTM with the settings of Table 3; 5 seeds",
        _table("conll2003", ("pos", "chunk", "ner"), "sc-lstm", encoder=("bilstm", "lstm-d", "sc-lstm")),
    ),
)

TABLES: Mapping[str, tuple[FormPreset, ...]] = {"Chang (2022)": _CHANG, "Lu et al. (2019)": _LU}
"""By paper, the forms with its settings."""
