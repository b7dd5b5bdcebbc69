"""The description of a run's field, for the form, the command line and the docs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.wording import all_of, any_of


@dataclass(frozen=True)
class FieldHelp:
    """The description of a field, for the form, the command line and the docs."""

    name: str
    description: str
    unit: str
    range: str
    accepted: str
    """The range in words, as it follows "must be": `above 0 and at most 1`, `stl, mtl or mrn`."""
    symbol: str | None
    label: str
    """The name of the field on the pages."""

    @property
    def sentence(self) -> str:
        """Description, range and unit in one line."""
        details = ", ".join(part for part in (self.range, self.unit) if part)
        return f"{self.description} ({details})" if details else self.description


_LIMITS = {
    "exclusiveMinimum": (">", "above"),
    "minimum": ("≥", "at least"),
    "exclusiveMaximum": ("<", "below"),
    "maximum": ("≤", "at most"),
}


def help_of(name: str, schema: Mapping[str, Any]) -> FieldHelp:
    """The help of a field from its JSON schema; its range are the choices or the limits."""
    range_ = accepted = ""
    for option in (schema, *schema.get("anyOf", [])):
        limits = [(sign, words, option[key]) for key, (sign, words) in _LIMITS.items() if key in option]
        choices = [choice for choice in option.get("enum", ()) if choice is not None]
        range_ = range_ or " | ".join(choices) or ", ".join(f"{sign} {value:g}" for sign, _, value in limits)
        in_words = [f"{words} {value:,.10g}" for _, words, value in limits]
        accepted = accepted or any_of(choices) or all_of(in_words)
    description = " ".join(schema["description"].split())
    unit, symbol = schema["unit"], schema.get("symbol")
    label = schema.get("label", name.replace("_", " ").capitalize())
    return FieldHelp(name, description, unit, range_, accepted, symbol, label)
