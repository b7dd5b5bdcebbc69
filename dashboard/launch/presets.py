"""Starting points of the Launch page: three questions that launch runs, three forms that are filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.config import LEARNABLE, PRESETS, RunConfig
from dashboard.launch.draft import OPTIONS, Draft, option_of

_SEEDS = range(1, 6)


@dataclass(frozen=True)
class LaunchPreset:
    """A question, what is trained to answer it, and the runs that one click launches."""

    title: str
    words: str
    button: str
    configs: tuple[RunConfig, ...]


@dataclass(frozen=True)
class FormPreset:
    """A form that one click fills in."""

    title: str
    words: str
    form: Draft


def _try_it() -> tuple[RunConfig, ...]:
    # Over a frozen encoder tasks share trained weights only in a BiLSTM. Each task has sentences of its own:
    # on common ones they have the same words to learn from, and little to give each other.
    shared: Mapping[str, Any] = {
        "corpus": "apart:demo?tokens=300&dev=100",
        "encoder": "minilm+bilstm",
        "encoder_training": "frozen",
        "bilstm_hidden": 64,
        "lr_bilstm": 6e-3,
        "batch_size": 4,
        "epochs": 10,
    }
    tasks = ("pos", "chunk", "ner")
    kinds: tuple[Mapping[str, Any], ...] = (
        # All three covariances, so that every matrix has something to show; they want a weaker prior.
        {"paradigm": "mrn", "tasks": tasks, "learn": LEARNABLE, "lambda": 1e-3},
        {"paradigm": "mtl", "tasks": tasks},
        *({"paradigm": "stl", "tasks": (task,)} for task in tasks),
    )
    # Seed by seed: after a few seconds there is something of each paradigm to look at.
    return tuple(RunConfig.build(**shared, **kind, seed=seed) for seed in _SEEDS for kind in kinds)


TRY_IT = LaunchPreset(
    "Does sharing help?",
    "STL, MTL and MRN, 300 words a task. 25 runs, 5 seeds, about 1 min.",
    "Try it",
    _try_it(),
)


def _scarce() -> tuple[RunConfig, ...]:
    shared: Mapping[str, Any] = {
        "corpus": "demo-both-pos",
        "tasks": ("pos-a", "pos-b"),
        "encoder": "minilm",
        "encoder_training": "frozen",
        "fraction": 0.03,
        "epochs": 30,
    }
    mrn = {**shared, "paradigm": "mrn", "learn": ("task",), "lambda": 0.003}
    # Under `disjoint` the tasks cannot be related: what MRN gains there is plain shrinkage, not relations.
    kinds = ({**shared, "paradigm": "mtl"}, {**mrn, "alignment": "disjoint"}, {**mrn, "alignment": "exact"})
    return tuple(RunConfig.build(**kind, seed=seed) for kind in kinds for seed in _SEEDS)


SCARCE = LaunchPreset(
    "Do related tag sets help?",
    "MTL, MRN without and with relations. 15 runs, 5 seeds, about 20 s.",
    "Launch 15 runs",
    _scarce(),
)


def _fine_tune() -> tuple[RunConfig, ...]:
    return tuple(
        RunConfig.build(
            corpus="demo",
            tasks=("pos", "chunk", "ner"),
            paradigm="mtl",
            encoder="minilm",
            encoder_training=training,
            fraction=0.1,
            epochs=5,
            seed=seed,
        )
        for training in ("frozen", "full")
        for seed in _SEEDS
    )


FINE_TUNE = LaunchPreset(
    "Is fine-tuning worth it?",
    "MiniLM frozen and fine-tuned, MTL. 10 runs, 5 seeds, about 1 min.",
    "Launch 10 runs",
    _fine_tune(),
)

_ENCODERS = ("bert-base-cased", "bert-base-cased+bilstm", "roberta-base")


def _table(corpus: str, tasks: tuple[str, ...], **lists: str | tuple[str, ...]) -> Draft:
    """A form with all of the dissertation's settings and five seeds; `lists` say what is otherwise."""
    shared = {
        name: (option_of(value),) if name in OPTIONS else option_of(value)
        for name, value in PRESETS["dissertation"].items()
    }
    return Draft(
        corpus, tasks=tasks, lists={**shared, "seed": "1-5", "paradigm": ("stl", "mtl", "mrn"), **lists}
    )


TABLES: tuple[FormPreset, ...] = (
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
