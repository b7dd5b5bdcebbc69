"""What a method of a study is, in words: as it is declared, else from the fields of its candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.registry import MODES, PREDICTED, PRIORS
from core.studies.study import Method
from core.wording import all_of

_PARADIGMS = {
    "stl": "An encoder and a head for each task, trained alone.",
    "mtl": "One encoder for all tasks and a head for each.",
}


def meaning(method: Method, base: Mapping[str, Any]) -> str:
    """A short description of the method in a setting with these fields; empty where they do not tell it."""
    if method.meaning:
        return method.meaning
    (fields, *_) = method.among(base).candidates or ({},)
    paradigm = str(fields.get("paradigm", ""))
    if fields.get("heads") == "shared":
        return "All tasks share one head: labels of the same name have one row."
    if not set(fields) <= {"paradigm", "tasks", "corpus"} and paradigm in _PARADIGMS:
        return ""
    if paradigm != "mrn":
        return _PARADIGMS.get(paradigm, "")
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
    learned = tuple(filter(None, str(fields.get("learn", "")).split(",")))
    modes = f" Here it learns relations of {all_of([f'{mode}s' for mode in learned])} alone." * (
        0 < len(learned) < len(MODES)
    )
    modes += scaled + " What it learns is held close to no relation (shrinkage)." * ("shrinkage" in fields)
    return f"MTL with a prior on the heads. {PRIORS[prior].description}{modes}" if prior in PRIORS else ""
