"""The form as a link, `?corpus=demo&paradigm=mtl,mrn&seed=1-5`: the fields of a run, lists as typed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dashboard.launch.draft import Draft
from dashboard.launch.start import EXECUTION, OPEN, OPTIONS, START

__all__ = ["FIELDS", "draft_of", "query_of"]

FIELDS: tuple[str, ...] = ("corpus", "columns", "tasks", *START, *EXECUTION)
"""The parameters of a link, named as the fields of a run; and how the runs wait and come back."""

# Always in the link, so that it still makes the same runs when the form starts otherwise one day.
_ALWAYS = ("encoder", "encoder_training", "paradigm", "epochs", "seed")


def query_of(draft: Draft) -> dict[str, str]:
    """The parameters that a link needs for this form."""
    lists = {
        name: given
        for name, given in {**draft.lists, "learn": draft.learn}.items()
        if name in _ALWAYS or given != START[name]
    }
    told = {"corpus": draft.corpus, "columns": draft.columns or "", "tasks": draft.tasks, **lists}
    query = {name: given if isinstance(given, str) else ",".join(given) for name, given in told.items()}
    query |= {name: str(number) for name in EXECUTION if (number := getattr(draft, name))}
    return {name: text for name, text in query.items() if text}


def draft_of(query: Mapping[str, str]) -> tuple[Draft, tuple[str, ...]]:
    """The form that a link describes, and a sentence for each value that the form does not have.

    What the link does not name is as in a fresh form; without tasks, all that the corpus has.
    """
    sentences = []
    lists: dict[str, str | tuple[str, ...]] = {}
    for name, start in START.items():
        text = query.get(name)
        if text is None:
            lists[name] = start
        elif name in OPTIONS:
            picked = _names(text)
            lists[name] = tuple(one for one in picked if _offered(name, one))
            if strange := [one for one in picked if not _offered(name, one)]:
                sentences.append(f"The link asks for {name} {', '.join(strange)}, which does not exist.")
        else:
            lists[name] = text
    learn = lists.pop("learn")
    numbers: dict[str, Any] = {}
    for name, (least, most) in EXECUTION.items():
        text = query.get(name, "0")
        asked = int(text) if re.fullmatch(r"[+-]?\d{1,6}", text) else None
        numbers[name] = min(most, max(least, asked or 0))
        if asked != numbers[name]:
            sentences.append(f"The link asks for {name} {text}; it is a whole number from {least} to {most}.")
    return (
        Draft(
            corpus=query.get("corpus", "demo"),
            columns=_names(query["columns"]) if query.get("columns") else None,
            tasks=_names(query.get("tasks", "")),
            lists=lists,
            learn=tuple(learn),
            **numbers,
        ),
        tuple(sentences),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _offered(name: str, value: str) -> bool:
    return name in OPEN or value.partition(":")[0] in OPTIONS[name]
