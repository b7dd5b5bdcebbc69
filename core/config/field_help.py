"""What the form, the command line and the docs say of a field: description, range, unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["FieldHelp", "error_sentence", "read_schema"]


@dataclass(frozen=True)
class FieldHelp:
    """What the form, the command line and the docs say of a field."""

    name: str
    description: str
    unit: str
    range: str
    symbol: str | None

    @property
    def sentence(self) -> str:
        """Description, range and unit in one line."""
        details = ", ".join(part for part in (self.range, self.unit) if part)
        return f"{self.description} ({details})" if details else self.description


def _range(schema: Mapping[str, Any]) -> str:
    options = [schema, *schema.get("anyOf", [])]
    for option in options:
        if "enum" in option:
            return " | ".join(map(str, option["enum"]))
    for option in options:
        bounds = [
            f"{sign} {option[key]:g}"
            for key, sign in (
                ("exclusiveMinimum", ">"),
                ("minimum", "≥"),
                ("exclusiveMaximum", "<"),
                ("maximum", "≤"),
            )
            if key in option
        ]
        if bounds:
            return ", ".join(bounds)
    return ""


def read_schema(properties: Mapping[str, Mapping[str, Any]]) -> dict[str, FieldHelp]:
    """FieldHelp by field name, from the properties of a JSON schema."""
    return {
        name: FieldHelp(name, schema["description"], schema["unit"], _range(schema), schema.get("symbol"))
        for name, schema in properties.items()
    }


def error_sentence(field: str, error: Mapping[str, Any], fields: Mapping[str, FieldHelp]) -> str:
    """One sentence for pydantic's `error` on `field`: what was given and what is accepted."""
    help_ = fields.get(field)
    what = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        return f"{field}: a run has no such field; the fields are {', '.join(fields)}."
    if error["type"] == "missing":
        return f"{field}: is missing ({help_.sentence if help_ else 'required'})."
    accepted = f" Accepted: {help_.range} ({help_.unit})." if help_ and help_.range else ""
    return f"{field}: {error.get('input')!r} is not possible: {what[0].lower()}{what[1:]}.{accepted}"
