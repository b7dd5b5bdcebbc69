"""Which prior helps which tasks: STL, MTL and the priors of MRN, where tasks share little and where much.

Over a frozen encoder tasks share the prior alone, and STL is MTL; the control there is `ridge`, heads that
are drawn to zero independently of each other. Fine-tuned, the encoder itself is shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from core.evaluation.statistics import HIGHER, UNDECIDED
from core.studies.study import Family, Sample, Setting, Study


def _mrn(lambdas: Iterable[float], prior: str, **fields: Any) -> tuple[Mapping[str, Any], ...]:
    """An arm for each λ."""
    return tuple({"paradigm": "mrn", "prior": prior} | fields | {"lambda": value} for value in lambdas)


_WIDE = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
_NARROW = (1e-3, 3e-3, 1e-2)
_ALL = "task,label,feature"

_FAMILIES = (
    Family("stl", "STL", ({"paradigm": "stl"},)),
    Family("mtl", "MTL", ({"paradigm": "mtl"},)),
    Family("ridge", "Ridge", _mrn((1e-3, 1e-2, 1e-1), "relational", learn="task", alignment="disjoint")),
    Family("task", "Relational, tasks", _mrn(_WIDE, "relational", learn="task")),
    Family("task-label", "Relational, tasks and labels", _mrn(_NARROW, "relational", learn="task,label")),
    Family("all", "Relational, all three", _mrn(_NARROW, "relational", learn=_ALL)),
    Family(
        "all-shrunk",
        "Relational, all three, shrinkage 100",
        _mrn(_NARROW, "relational", learn=_ALL, shrinkage=100.0),
    ),
    Family("map", "MAP", _mrn((1e-3, 1e-2, 1e-1), "map")),
    Family("paper", "Paper", _mrn((0.005, 0.05, 0.5, 1.0), "paper")),
    # One λ without a search, where a run takes minutes.
    Family("task-fixed", "Relational, tasks, λ = 0.01", _mrn((1e-2,), "relational", learn="task")),
    Family("paper-fixed", "Paper, λ = 0.05", _mrn((0.05,), "paper")),
)
_FROZEN = ("mtl", "ridge", "task", "task-label", "all", "all-shrunk", "map", "paper")
_MAIN = ("mtl", "ridge", "task", "task-label", "all", "paper")
_CONTRAST = ("mtl", "ridge", "task", "all")
_FINETUNED = ("stl", "mtl", "task-fixed", "paper-fixed")
_FEW = ("mtl", "task-fixed")


def _frozen(
    name: str, title: str, corpus: str, tasks: str, epochs: int, families: tuple[str, ...], targets: str = ""
) -> Setting:
    base = {
        "corpus": corpus,
        "tasks": tuple(tasks.split()),
        "encoder_training": "frozen",
        "label_inventory": "train",  # as measured for docs/studies/priors.md
        "alignment": "exact",
        "epochs": epochs,
        "lr_heads": 0.03,
    }
    return Setting(name, title, "frozen", base, tuple((targets or tasks).split()), families)


def _simulated(words: int, beside: int, alpha: float, families: tuple[str, ...] = _CONTRAST) -> Setting:
    """NER on few words beside simulated tasks of 2,000 words each, related to it as α says."""
    return _frozen(
        f"ner-{words}-beside-{beside}-at-{alpha:g}",
        f"NER, {words:,} words, beside {beside} simulated tasks, α = {alpha:g}",
        f"simulated:conll2003?task=ner&tasks={beside}&alpha={alpha}&samples=2000&tokens={words}&dev=1000",
        " ".join(["ner", *(f"sim-{number}" for number in range(1, beside + 1))]),
        20,
        families,
        targets="ner",
    )


def _both_pos(words: str, title: str, epochs: int, families: tuple[str, ...] = _FROZEN) -> Setting:
    corpus = f"apart:both-pos?tokens={words}&dev=1000"
    name = f"both-pos-{words.replace(',', '-')}"
    return _frozen(name, f"POS of two corpora, {title}", corpus, "pos-2003 pos-2000", epochs, families)


def _apart(words: int, epochs: int) -> Setting:
    """Label sets without a name in common on disjoint sentences: no label co-occurs with another task's."""
    title = f"POS, chunks and NER on disjoint sentences, {words:,} words each"
    corpus = f"apart:conll2003?tokens={words}&dev=1000"
    return _frozen(f"apart-{words}", title, corpus, "pos chunk ner", epochs, _CONTRAST)


def _finetuned(
    corpus: str, title: str, percent: int, tasks: str, alignment: str, families: tuple[str, ...] = _FEW
) -> Setting:
    names = tuple(tasks.split())
    base = {
        "corpus": f"{corpus}?dev=500",
        "tasks": names,
        "fraction": percent / 100,
        "label_inventory": "train",
        "alignment": alignment,
        "epochs": 5,
    }
    return Setting(f"tuned-{corpus}-{percent}", f"{title}, {percent}%", "fine-tuned", base, names, families)


_SETTINGS = (
    _simulated(500, 5, 0.9, _FROZEN),
    *(_simulated(500, 5, alpha) for alpha in (0.2, 0.6, 0.99)),
    *(_simulated(2000, 5, alpha) for alpha in (0.2, 0.6, 0.9, 0.99)),
    *(_simulated(words, beside, 0.9) for words in (500, 2000) for beside in (1, 15)),
    _both_pos("300", "300 words each", 60),
    _both_pos("3000", "3,000 words each", 20),
    _both_pos("300,3000", "300 and 3,000 words", 30, _MAIN),
    _apart(500, 40),
    _apart(2000, 20),
    _finetuned("both-pos", "POS of two corpora", 2, "pos-2003 pos-2000", "exact", _FINETUNED),
    _finetuned("conll2000", "CoNLL-2000", 5, "pos chunk", "cooccurrence"),
    _finetuned("conll2003", "CoNLL-2003", 5, "pos chunk ner", "cooccurrence"),
    _finetuned("both-pos", "POS of two corpora", 10, "pos-2003 pos-2000", "exact"),
)

STUDY = Study(
    "priors",
    "Priors",
    "Which prior helps which tasks, and how much, over no prior at all?",
    _SETTINGS,
    _FAMILIES,
    "mtl",
    sample=Sample(
        "Measured on 2026-11-21 (docs/studies/priors.md): NER on 500 words beside five simulated tasks. The "
        "more these are related to it (α), the more the prior gains.",
        "MTL",
        {
            "α = 0.99": {"ner": (24.15, 19.94, 28.37, HIGHER)},
            "α = 0.9": {"ner": (21.54, 18.21, 24.88, HIGHER)},
            "α = 0.6": {"ner": (13.97, 11.34, 16.59, HIGHER)},
            "α = 0.2": {"ner": (3.45, 0.55, 6.35, UNDECIDED)},
        },
    ),
    small={"setting": "both-pos-300"},
)
