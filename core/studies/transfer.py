"""Which task helps which: every pair of twelve real tasks trained together, less each task alone.

Bingel and Søgaard (EACL 2017) train one small BiLSTM on each of ten tasks and on every pair of them. A model
of two tasks does not tell main from auxiliary, so one run gives two ordered pairs. The parts `scarce` and
`scarce-minilm` have 2,000 training words a task, `all words` all sentences of each corpus.
"""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

from core.studies.study import Method, Setting, Study, one_rate

TASKS: dict[str, str] = {
    "pos@conll2003": "CoNLL-2003 POS",
    "chunk@conll2003": "CoNLL-2003 chunks",
    "ner": "CoNLL-2003 NER",
    "pos@conll2000": "CoNLL-2000 POS",
    "chunk@conll2000": "CoNLL-2000 chunks",
    "upos@ud-lines": "LinES UPOS",
    "deprel": "LinES relations",
    "feats:Number": "LinES Number",
    "feats:Tense": "LinES Tense",
    "feats:PronType": "LinES PronType",
    "mwe": "STREUSLE MWEs",
    "supersense": "STREUSLE supersenses",
}
"""The tasks by name, with their names in the report."""

_BASES = "conll2003+conll2000+ud-lines+streusle"
_SCARCE = f"apart:{_BASES}?tokens=2000&dev=100&test=500&tasks={','.join(TASKS)}"

# Bingel and Søgaard: one BiLSTM of 100 over GloVe, one drawn task per step, batches of 32, Adadelta, the last
# model. They train each task for 25,000 batches; 60 epochs of 2,000 words are 240 to 420.
_TRAINING: dict[str, Any] = {
    "batch_size": 32,
    "bilstm_hidden": 100,
    "draw_tasks": "uniform",
    "lr_schedule": "constant",
    "weight_decay": 0.0,
    "label_inventory": "train",
    "select_by": "last",
}
_SMALL: dict[str, Any] = _TRAINING | {
    "encoder": "bilstm",
    "characters": "none",
    "lstm_layers": 1,
    "optimiser": "adadelta",
    **one_rate(1.0),
}
_MINILM: dict[str, Any] = _TRAINING | {
    "encoder": "minilm+bilstm",
    "encoder_training": "frozen",
    "optimiser": "adam",
    "lr_bilstm": 5e-3,
    "lr_heads": 5e-3,
}
_PARTS: dict[str, dict[str, Any]] = {
    "scarce": _SMALL | {"corpus": _SCARCE, "epochs": 60},
    "scarce-minilm": _MINILM | {"corpus": _SCARCE, "epochs": 25},
    "all words": _SMALL | {"corpus": f"joined:{_BASES}?dev=100", "epochs": 10},
}

_METHODS = (
    Method("stl", "STL", ({"paradigm": "stl"},)),
    Method("mtl", "MTL", ({"paradigm": "mtl"},)),
    # What may predict gains: what one run of all tasks measures, and what MRN learns of them.
    Method("joint", "MTL of all tasks", ({"paradigm": "mtl"},)),
    Method(
        "mrn",
        "MRN of all tasks",
        (
            {"paradigm": "mrn", "prior": "relational", "alignment": "exact", "learn": "task", "epochs": 20}
            | {"encoder": "minilm", "encoder_training": "frozen", "lr_heads": 0.03, "draw_tasks": "together"}
            | {"optimiser": "adamw", "lr_schedule": "linear"},
        ),
    ),
)


def _setting(part: str, tasks: tuple[str, ...], methods: tuple[str, ...], base: dict[str, Any]) -> Setting:
    name = "-".join([part, *tasks]) if len(tasks) == 2 else f"{part}-joint"
    return Setting(
        re.sub(r"[^a-z0-9]+", "-", name.lower()),
        " and ".join(TASKS.get(task, task) for task in tasks) if len(tasks) == 2 else "all tasks together",
        part,
        base | {"tasks": tasks},
        tasks,
        methods,
    )


_DEMO_TASKS = ("pos", "chunk", "ner")
_DEMO = _SMALL | {"corpus": "apart:demo?tokens=500&dev=50&test=200", "epochs": 10, "bilstm_hidden": 32}


# A measurement takes a forward and a backward pass for each drawn task.
_MEASURED_EVERY = {"all words": 500, "demo": 10}


def _settings(part: str, tasks: tuple[str, ...], base: dict[str, Any]) -> list[Setting]:
    pairs = [_setting(part, pair, ("stl", "mtl"), base) for pair in combinations(tasks, 2)]
    measured = base | {"affinity_every": _MEASURED_EVERY.get(part, 100)}
    return [*pairs, _setting(part, tasks, ("stl", "joint", "mrn"), measured)]


STUDY = Study(
    "transfer",
    "Which task helps which",
    "Which task gains from training together with which other, and what predicts the gain?",
    (
        *(setting for part, base in _PARTS.items() for setting in _settings(part, tuple(TASKS), base)),
        *_settings("demo", _DEMO_TASKS, _DEMO),
    ),
    _METHODS,
    "stl",
    search_seeds=(1,),
    seeds=(1, 2, 3),
    pairs=TASKS,
    small={"part": "demo"},
)
