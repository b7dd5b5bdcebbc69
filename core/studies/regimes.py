"""A study of the settings in which learned relations pay: encoder training, and sentences of a task.

*Alike*: two corpora with one tag set. *Mixed*: NER beside three simulated tasks of unequal relatedness, each
on sentences of its own. The controls are the simple ways to share: one head on the words of all tasks, and a
task correlation that is fixed instead of learned.
"""

from __future__ import annotations

from functools import partial
from itertools import product, starmap
from typing import Any

from core.registry import FROZEN
from core.studies.study import PUBLISHED, RELATIONAL, Asked, Method, Setting, Study, mrn_candidates

# With 1e-3 to 1e-2 dev chose the lower edge over a frozen encoder and the upper one with a layer trained.
_relational = partial(mrn_candidates, (3e-4, 1e-3, 3e-3, 1e-2, 3e-2), "relational", alignment="exact")
_METHODS = (
    Method("mtl", "MTL", ({"paradigm": "mtl"},)),
    Method("pooled", "Pooled", ({"paradigm": "mtl", "heads": "shared"},), words="one head for all tasks"),
    Method(
        "fixed",
        "Fixed task correlation of 0.9",
        _relational(learn="none", task_correlation=0.9),
        base="pooled",
        words="a fixed task correlation",
    ),
    Method(
        "relational",
        "Relational, tasks",
        _relational(learn="task"),
        base="pooled",
        words=RELATIONAL,
    ),
    Method(
        "paper",
        "Paper, tasks",
        mrn_candidates((5e-3, 5e-2, 5e-1), "paper", alignment="exact", learn="task"),
        base="pooled",
        words=PUBLISHED,
    ),
)

_WORDS_PER_SENTENCE = 15
_TRAININGS = {"frozen": "frozen", "top:1": "top 1", "top:2": "top 2", "full": "full"}
_ASKED = {FROZEN: "with a frozen encoder", "full": "with all of it trained"} | dict.fromkeys(
    ("top:1", "top:2"), "with its last layers trained"
)
# Dev chooses the epoch. A frozen encoder's heads need more epochs, and these cost next to nothing.
_EPOCHS = {50: (60, 15), 200: (30, 8), 1000: (20, 5)}
KINDS = ("alike", "mixed")
PARTS = (*KINDS, "1000 sentences")


def _corpora(sentences: int) -> dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Corpus, tasks and targets of the alike and of the mixed tasks, for a number of sentences a task."""
    words = sentences * _WORDS_PER_SENTENCE
    both = ("pos-2003", "pos-2000")
    simulated = "simulated:conll2003?task=ner&tasks=3&alpha=0.95,0.7,0.3"
    return {
        "alike": (f"apart:both-pos?tokens={words}", both, both),
        "mixed": (
            f"{simulated}&samples={words}&tokens={words}",
            ("ner", "sim-1", "sim-2", "sim-3"),
            ("ner",),
        ),
    }


def _setting(kind: str, sentences: int, training: str) -> Setting:
    corpus, tasks, targets = _corpora(sentences)[kind]
    base: dict[str, Any] = {
        "corpus": f"{corpus}&dev=200&test=1000",
        "tasks": tasks,
        "encoder_training": training,
        "label_inventory": "train",
        "epochs": _EPOCHS[sentences][training != FROZEN],
    }
    if training == FROZEN:
        base["lr_heads"] = 0.03
    short = training.replace(":", "-")
    return Setting(
        f"{kind}-{sentences}-{short}",
        f"{kind.capitalize()} tasks, {sentences:,} sentences each, {_TRAININGS[training]}",
        "1000 sentences" if sentences == 1000 else kind,  # those that cost most stand apart
        base,
        targets,
        tuple(method.name for method in _METHODS),
        words=f"{kind} tasks of {sentences:,} sentences",
    )


STUDY = Study(
    "regimes",
    "Frozen or fine-tuned",
    "Does MRN still help when the encoder is trained too, or over a frozen encoder alone?",
    tuple(
        sorted(
            starmap(_setting, product(KINDS, _EPOCHS, _TRAININGS)),
            key=lambda setting: PARTS.index(setting.part),
        )
    ),
    _METHODS,
    "mtl",
    search_seeds=(41, 42),
    seeds=(41, 42, 43, 44, 45),
    small={"setting": "alike-50-frozen"},
    about={
        "alike": "Two corpora with one tag set, 50 and 200 sentences of each.",
        "mixed": "NER beside three simulated tasks of unequal relatedness, 50 and 200 sentences of each.",
        "1000 sentences": "Alike and mixed tasks with 1,000 sentences each.",
    },
    asked=Asked(("relational",), lambda setting: _ASKED[setting.base["encoder_training"]]),
)
