"""Does balancing tasks help, beside sharing and beside relations? All methods at their defaults.

Tasks share a BiLSTM over a frozen encoder, as in the first card of Launch, or the last two layers of the
encoder. Nothing is searched: a method is judged as a reader gets it, and dev chooses the epoch alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.studies.study import PUBLISHED, RELATIONAL, Asked, Method, Setting, Study

_TITLES = {
    "uncertainty": "Uncertainty",
    "dwa": "DWA",
    "pcgrad": "PCGrad",
    "upgrad": "UPGrad",
    "cagrad": "CAGrad",
}
_MEANINGS = {
    "uncertainty": "MTL that learns a weight for the loss of each task from its uncertainty "
    "(Kendall and others, 2018).",
    "dwa": "Dynamic weight average: MTL in which the loss of a task weighs more while it falls slowly "
    "(Liu and others, 2019).",
    "pcgrad": "MTL in which a task's gradient loses the part that conflicts with another task's "
    "(Yu and others, 2020).",
    "upgrad": "MTL that turns each task's gradient until it conflicts with none, and takes their mean "
    "(Quinton and Rey, 2024).",
    "cagrad": "MTL that steps near the mean gradient, in the direction that helps the worst-off task most "
    "(Liu and others, 2021).",
}
_METHODS = (
    Method("stl", "STL", ({"paradigm": "stl"},)),
    Method("mtl", "MTL", ({"paradigm": "mtl"},)),
    *(
        Method(
            name,
            title,
            ({"paradigm": "mtl", "balancing": name},),
            words="uncertainty weighting" * (name == "uncertainty"),
            meaning=_MEANINGS[name],
        )
        for name, title in _TITLES.items()
    ),
    Method(
        "relational",
        "MRN, relational",
        ({"paradigm": "mrn", "prior": "relational"},),
        words=RELATIONAL,
    ),
    Method("paper", "MRN, published", ({"paradigm": "mrn", "prior": "paper"},), words=PUBLISHED),
)

_BILSTM: dict[str, Any] = {
    "encoder": "minilm+bilstm",
    "encoder_training": "frozen",
    "bilstm_hidden": 64,
    "lr_bilstm": 6e-3,
}
_LAST_LAYERS: dict[str, Any] = {"encoder": "minilm", "encoder_training": "top:2"}


def _setting(
    name: str,
    title: str,
    corpus: str,
    tasks: str,
    alignment: str,
    *,
    part: str = "real",
    shared: Mapping[str, Any] = _BILSTM,
    **fields: Any,
) -> Setting:
    names = tuple(tasks.split())
    base = {"corpus": corpus, "tasks": names, "alignment": alignment, **shared, **fields}
    return Setting(name, title, part, base, names, tuple(method.name for method in _METHODS))


STUDY = Study(
    "balancing",
    "Balancing tasks",
    "Does MTL gain from weighting the losses of tasks, or from combining their gradients?",
    (
        _setting(
            "tag-sets",
            "Two small tag sets",
            "demo-both-pos?dev=50",
            "pos-a pos-b",
            "exact",
            part="demo",
            fraction=0.03,
            batch_size=4,
            epochs=15,
        ),
        _setting(
            "unequal-tag-sets",
            "Two unequal tag sets, 1,200 and 150 words",
            "apart:demo-both-pos?tokens=1200,150&dev=50",
            "pos-a pos-b",
            "exact",
            part="demo",
            batch_size=4,
            epochs=6,
        ),
        _setting(
            "unequal-corpora",
            "POS of two unequal corpora, 5,000 and 500 words",
            "apart:both-pos?tokens=5000,500&dev=250&test=1000",
            "pos-2003 pos-2000",
            "exact",
            epochs=10,
        ),
        _setting(
            "conll2003-5",
            "POS, chunks and NER, 5% of CoNLL-2003",
            "conll2003?dev=200&test=1000",
            "pos chunk ner",
            "cooccurrence",
            shared=_LAST_LAYERS,
            fraction=0.05,
            epochs=5,
        ),
    ),
    _METHODS,
    "mtl",
    small={"setting": "tag-sets"},
    asked=Asked(tuple(_TITLES), noun="method of balancing"),
)
