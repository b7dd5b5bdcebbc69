"""Named starting points of the Launch page: three that launch at once, three that fill in the form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.config import LEARNABLE, PRESETS, RunConfig
from dashboard.launch.draft import OPTIONS, Draft, option_of

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
    """A form that one click fills in."""

    title: str
    words: str
    form: Draft


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
    "MRN, MTL and STL on the built-in demo corpus. 5 runs, no network.",
    "Try it",
    _try_it(),
)

FINE_TUNE = LaunchPreset(
    "Fine-tune on the demo",
    "One MRN run that trains all of MiniLM on the demo corpus.",
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
    "3% of two tag sets: MTL, MRN that cannot relate them, and MRN that can. 15 runs.",
    "Scarce data",
    _scarce(),
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
