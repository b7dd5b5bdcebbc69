"""What a method of a study is, in words: as it is declared, else from the fields of its candidates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.registry import FULL, PREDICTED, PRIORS
from core.studies.analysis import Result
from core.studies.study import Method
from core.wording import all_of

PARADIGMS: Mapping[str, str] = {
    "stl": "Single-task learning: an encoder and a head for each task, trained alone.",
    "mtl": "Multi-task learning: one encoder for all tasks and a head for each.",
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


def meanings(results: Sequence[Result]) -> dict[str, str]:
    """What each method of these settings is, by its name in a sentence, where it is known."""
    return {
        outcome.method.in_sentence: text
        for result in results
        for outcome in result.outcomes
        if (text := meaning(outcome.method, result.setting.base))
    }


def meanings_in(text: str, by_name: Mapping[str, str]) -> dict[str, str]:
    """The meanings of the methods that the text names, in their order there."""
    rest, places = text.casefold(), dict[str, int]()
    for name in sorted(by_name, key=len, reverse=True):  # a name may hold a shorter one
        words = rf"(?<!\w){re.escape(name.casefold())}(?!\w)"
        if match := re.search(words, rest):
            places[name] = match.start()
            rest = re.sub(words, "_" * len(name), rest)
    return {name: by_name[name] for name in sorted(places, key=places.__getitem__)}
