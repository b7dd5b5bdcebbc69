"""The facts of runs as the store has them: JSON, with one reader and one writer.

Fields that a version added have defaults, so that facts of versions before are read.
"""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from core.events import RunFacts
from core.plain_text import shortened
from core.tasks import KINDS

OTHER_VERSION = "Made by another version"
DAMAGED = "Damaged in the store"
LONGEST_PROBLEM = 300


@cache
def facts_adapter() -> TypeAdapter[RunFacts]:
    """Reads facts from JSON. Raises ValidationError."""
    return TypeAdapter(RunFacts)


def facts_document(facts: RunFacts | None) -> dict[str, Any]:
    """The facts as a JSON object; empty where there are none. `error` is in those of a failed run alone."""
    document = {} if facts is None else dataclasses.asdict(facts)
    if not document.get("error"):
        document.pop("error", None)
    return document


def write_facts(facts: RunFacts | None) -> str:
    """The facts as the store keeps them; `read_facts` reads them."""
    return json.dumps(facts_document(facts), ensure_ascii=False)


def read_facts(text: str) -> tuple[RunFacts | None, str | None]:
    """The stored facts, and why they cannot be read if so; None where there are none, or they cannot."""
    try:
        # Strictly: in what is stored, a number must be one.
        facts = facts_adapter().validate_json(text, strict=True)
    except ValidationError as error:
        if _is_empty(text):  # of a run from elsewhere that had none
            return None, None
        if path := shortened(".".join(map(str, error.errors()[0]["loc"])), LONGEST_PROBLEM):
            return None, unlike_now(path)
        return None, f"{DAMAGED}: its facts are no JSON object."
    except ValueError:
        return None, f"{DAMAGED}: its facts are no JSON object."
    if unknown := [task.scheme for task in facts.tasks if task.scheme not in KINDS]:
        kind = shortened(unknown[0], LONGEST_PROBLEM)
        return None, f"{OTHER_VERSION}: this one has no kind of task called '{kind}'."
    return facts, None


def unlike_now(path: str) -> str:
    """A sentence on facts that are not as this version has them."""
    return f"{OTHER_VERSION}: its facts are not as this one has them, at {path}."


def _is_empty(text: str) -> bool:
    try:
        return bool(from_json(text) == {})
    except ValueError:
        return False
