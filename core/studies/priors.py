"""Which prior helps which tasks: MTL beside MRN, over frozen features and few sentences."""

from __future__ import annotations

from core.studies.study import Family, Setting, Study

__all__ = ["STUDY"]

_FAMILIES = (
    Family("mtl", "MTL", ({"paradigm": "mtl"},)),
    Family(
        "relational",
        "MRN, relational",
        tuple(
            {"paradigm": "mrn", "prior": "relational", "learn": "task", "lambda": strength}
            for strength in (0.001, 0.003, 0.01)
        ),
    ),
)


def _both_pos(name: str, title: str, fraction: float) -> Setting:
    return Setting(
        name,
        title,
        "frozen",
        {
            "corpus": "demo-both-pos",
            "tasks": ("pos-a", "pos-b"),
            "encoder_training": "frozen",
            "alignment": "exact",
            "fraction": fraction,
            "epochs": 30,
        },
        ("pos-a", "pos-b"),
        tuple(family.name for family in _FAMILIES),
    )


STUDY = Study(
    "priors",
    "Priors",
    "Which prior helps which tasks, and how much, over no prior at all?",
    (
        _both_pos("both-pos-3", "Two tag sets, 3% of the sentences", 0.03),
        _both_pos("both-pos-10", "Two tag sets, 10% of the sentences", 0.1),
    ),
    _FAMILIES,
    "mtl",
)
