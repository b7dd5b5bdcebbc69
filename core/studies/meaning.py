"""What a method of a study is, in words: as it is declared, else from the fields of its candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.registry import FULL, PREDICTED, PRIORS
from core.studies.study import Method
from core.wording import all_of

PARADIGMS: Mapping[str, str] = {
    "stl": "An encoder and a head for each task, trained alone.",
    "mtl": "One encoder for all tasks and a head for each.",
}
"""What the two plain paradigms are."""
_MRN = {
    "relational": "MTL whose heads are drawn to each other, as strongly as it finds their {} to be related.",
    "map": "MTL that finds how {} are related and the scale of heads at once; a large λ shrinks all heads.",
    "paper": "MTL whose heads are drawn to each other as published (Long and others, 2017), by relations of "
    "{}; the pull can vanish in training.",
}


def meaning(method: Method, base: Mapping[str, Any]) -> str:
    """A short description of the method in a setting with these fields; empty where they do not tell it."""
    if method.meaning:
        return method.meaning
    (fields, *_) = method.among(base).candidates or ({},)
    paradigm = str(fields.get("paradigm", ""))
    if fields.get("heads") == "shared":
        return "All tasks share one head: labels of the same name have one row."
    if not set(fields) <= {"paradigm", "tasks", "corpus"} and paradigm in PARADIGMS:
        return ""
    if paradigm != "mrn":
        return PARADIGMS.get(paradigm, "")
    prior, correlation = str(fields.get("prior", "")), fields.get("task_correlation", 0.0)
    scaled = " Rare labels are drawn less strongly." * (fields.get("label_scale") == "counts")
    if fields.get("alignment") == "disjoint":
        return f"MTL whose heads are drawn to zero, each by itself.{scaled}"
    if prior == PREDICTED:
        return "The head of the new task is drawn to what the trained heads predict."
    if fields.get("learn") == "none":
        return "Rows of the same label are drawn to each other as strongly for each pair of tasks." * bool(
            correlation
        )
    if prior not in PRIORS:
        return ""
    modes = fields.get("learn") or PRIORS[prior].default("learn", str(base.get("encoder_training", FULL)))
    learned = all_of([f"{mode}s" for mode in (modes.split(",") if isinstance(modes, str) else modes)])
    shrunk = " What it learns is held close to no relation (shrinkage)." * ("shrinkage" in fields)
    return f"{_MRN[prior].format(learned)}{scaled}{shrunk}"
