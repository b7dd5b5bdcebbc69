"""Named starting points of the Launch page: three that launch at once, three that fill in the form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.config import LEARNABLE, PRESETS, RunConfig

__all__ = ["FINE_TUNE", "SCARCE", "TABLES", "TRY_IT", "FormPreset", "LaunchPreset"]

_DEMO: Mapping[str, Any] = {"corpus": "demo", "encoder": "minilm"}
_DEMO_TASKS = ("pos", "chunk", "ner")


@dataclass(frozen=True)
class LaunchPreset:
    """Runs that one click launches."""

    title: str
    words: str
    button: str
    configs: tuple[RunConfig, ...]


@dataclass(frozen=True)
class FormPreset:
    """Values that one click puts into the form."""

    title: str
    words: str
    values: Mapping[str, Any]


def _try_it() -> tuple[RunConfig, ...]:
    shared = {**_DEMO, "encoder_training": "frozen", "epochs": 5}
    return (
        # All three covariances, so that every matrix has something to show; they want a weaker prior.
        RunConfig.build(**shared, paradigm="mrn", tasks=_DEMO_TASKS, learn=LEARNABLE, lambda_=1e-3),
        RunConfig.build(**shared, paradigm="mtl", tasks=_DEMO_TASKS),
        *(RunConfig.build(**shared, paradigm="stl", tasks=(task,)) for task in _DEMO_TASKS),
    )


TRY_IT = LaunchPreset(
    "Try it, 1 minute",
    "MRN, MTL and STL on the built-in demo corpus over frozen MiniLM features. 5 runs, no network.",
    "Try it",
    _try_it(),
)

FINE_TUNE = LaunchPreset(
    "Fine-tune on the demo",
    "One MRN run that trains the whole of MiniLM on the demo corpus. Under a minute on two cores.",
    "Fine-tune",
    (RunConfig.build(**_DEMO, encoder_training="full", epochs=3, paradigm="mrn", tasks=_DEMO_TASKS),),
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
    return tuple(RunConfig.build(**kind, seed=seed) for kind in kinds for seed in range(1, 6))


SCARCE = LaunchPreset(
    "Scarce data",
    "Two tag sets with 3% of their sentences each: MTL, MRN that cannot relate the tasks, and MRN that can. "
    "15 runs, half a minute.",
    "Scarce data",
    _scarce(),
)

_SHARED = {
    name: value for name, value in PRESETS["dissertation"].items() if name not in ("encoder", "lambda")
}
_ENCODERS = ["bert-base-cased", "bert-base-cased+bilstm", "roberta-base"]

TABLES: tuple[FormPreset, ...] = (
    FormPreset(
        "Table 1",
        "CoNLL-2003: NER, chunking and POS; BERT, BERT-BiLSTM and RoBERTa; 5 seeds",
        {
            **_SHARED,
            "corpus": "conll2003",
            "tasks": ["pos", "chunk", "ner"],
            "encoders": _ENCODERS,
            "paradigms": ["stl", "mtl", "mrn"],
            "lambdas": "0.05",
            "seeds": "1-5",
            "fractions": "1",
        },
    ),
    FormPreset(
        "Table 2",
        "CoNLL-2000: chunking and POS; BERT, BERT-BiLSTM and RoBERTa; 5 seeds",
        {
            **_SHARED,
            "corpus": "conll2000",
            "tasks": ["pos", "chunk"],
            "encoders": _ENCODERS,
            "paradigms": ["stl", "mtl", "mrn"],
            "lambdas": "0.05",
            "seeds": "1-5",
            "fractions": "1",
        },
    ),
    FormPreset(
        "Table 3",
        "POS of both corpora together, 5% and 10% of each; BERT; labels of equal name share a row; 5 seeds",
        {
            **_SHARED,
            "corpus": "both-pos",
            "tasks": ["pos-2003", "pos-2000"],
            "encoders": ["bert-base-cased"],
            "paradigms": ["mtl", "mrn"],
            "alignment": "exact",
            "lambdas": "0.05",
            "seeds": "1-5",
            "fractions": "0.05, 0.1",
        },
    ),
)
