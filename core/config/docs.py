"""Writes docs/run-description.md: `python -m core.config.docs > docs/run-description.md`. A test compares."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from core.config import CONDITIONS, FIELD_HELP, PRESETS, RunConfig
from core.config.fields import attribute_name, public_name
from core.registry import ALIGNMENTS, ENCODERS, PRIORS

_HEAD = """\
# The description of a run

One `RunConfig` describes a run everywhere: in the form, on the command line, in the store and in the worker.
Runs that differ only in `seed` are seeds of one configuration. On the command line the fields are options of
[`mrnlab launch`](command-line.md), the rarer ones by `--set field=value`.

This page is written by `python -m core.config.docs`; change the descriptions in
`core/config/run_config.py`.

## Fields

| Field | What it is | Accepted | Unit | Default |
|---|---|---|---|---|
"""
# A run that has every field, to read the defaults from.
_EXAMPLE = RunConfig.build(corpus="corpus", tasks=("one", "two"), encoder="minilm+bilstm")


def lines() -> Iterator[str]:
    """The page, line by line."""
    yield from _HEAD.splitlines()
    for name, help_ in FIELD_HELP.items():
        symbol = f" ({help_.symbol})" if help_.symbol else ""
        accepted = help_.range.replace("|", "·") or "–"
        yield f"| `{name}`{symbol} | {help_.description} | {accepted} | {help_.unit} | {_default(name)} |"
    yield from ("", "## Fields that only some runs have", "")
    for condition in CONDITIONS:
        if condition.because:
            yield f"- `{public_name(condition.field)}`: {condition.because}."
    yield from _registry("Encoders", {spec.name: spec.description for spec in ENCODERS.values()})
    yield from _registry("Priors", PRIORS)
    yield from _registry("Alignments", ALIGNMENTS)
    yield from ("", "## Presets")
    for name, values in PRESETS.items():
        yield ""
        yield f"`{name}`: " + ", ".join(f"`{field}={value}`" for field, value in values.items()) + "."


def _registry(title: str, entries: Mapping[str, str]) -> Iterator[str]:
    yield from ("", f"## {title}", "")
    yield from (f"- `{name}`: {description}" for name, description in entries.items())


def _default(name: str) -> str:
    attribute = attribute_name(name)
    field = RunConfig.model_fields[attribute]
    if field.is_required():
        return "required"
    value = field.default if name == "encoder" else getattr(_EXAMPLE, attribute)
    if value is None:
        return "unset"
    text = f"`{','.join(map(str, value)) if isinstance(value, tuple) else value}`"
    return f"{text} for minilm" if name in ("lr_encoder", "lr_heads") else text


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines()) + "\n")
