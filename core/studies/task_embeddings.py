"""Does telling POS from NER help? Task embeddings for taggers, with MTL and with MRN, on 5% of CoNLL-2003."""

from __future__ import annotations

from typing import Any

from core.studies.study import Setting, Study
from core.studies.tea import injections

TASKS = ("pos", "ner")
_INJECTIONS = ("none", "input", "attention", "projected")

# Nothing is chosen on dev: 20 sentences show where a run is.
_BASE: dict[str, Any] = {
    "corpus": "conll2003?dev=20&test=500",
    "tasks": TASKS,
    "encoder": "minilm",
    "fraction": 0.05,
    "epochs": 5,
    "select_by": "last",
}
_PARADIGMS: dict[str, dict[str, Any]] = {
    "mtl": {},
    "mrn": {"prior": "relational", "alignment": "cooccurrence", "lambda": 0.01},
}

STUDY = Study(
    "task-embeddings",
    "Telling POS from NER",
    "Does a learned vector of the task help one transformer for POS and NER, with MTL and with MRN?",
    tuple(
        Setting(
            name,
            f"POS and NER, {name.upper()}, 5%",
            "5%",
            _BASE | {"paradigm": name} | fields,
            TASKS,
            _INJECTIONS,
            words=f"POS and NER, with {name.upper()}",
        )
        for name, fields in _PARADIGMS.items()
    ),
    tuple(injections(_INJECTIONS)),
    "none",
    search_seeds=(1,),
    by_task=True,
    small={"setting": "mtl"},
)
