"""Writes docs/run-description.md: `python -m core.config.docs > docs/run-description.md`. A test compares."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from core.config import CONDITIONS, FIELD_HELP, PRESETS, RunConfig
from core.registry import ALIGNMENTS, ENCODERS, PRIORS

_HEAD = """\
# The description of a run

One `RunConfig` describes a run everywhere: in the form, on the command line, in the store and in the worker.
Runs that differ only in `seed` are seeds of one configuration. On the command line the fields are options of
[`mrnlab launch`](command-line.md), the rarer ones by `--set field=value`.

This page is written by `python -m core.config.docs`; change the descriptions in
`core/config/run_config.py`.

## Fields
"""


def lines() -> Iterator[str]:
    """The page, line by line."""
    yield from _HEAD.splitlines()
    yield ""
    yield "| Field | What it is | Accepted | Unit | Default |"
    yield "|---|---|---|---|---|"
    for name, help_ in FIELD_HELP.items():
        symbol = f" ({help_.symbol})" if help_.symbol else ""
        accepted = help_.range.replace("|", "·") or "–"
        yield f"| `{name}`{symbol} | {help_.description} | {accepted} | {help_.unit} | {_default(name)} |"
    yield ""
    yield "## Fields that only some runs have"
    yield ""
    for condition in CONDITIONS:
        if condition.because:
            yield f"- `{_public(condition.field)}`: {condition.because}."
    yield from _registry("Encoders", {spec.name: spec.description for spec in ENCODERS.values()})
    yield from _registry("Priors", PRIORS)
    yield from _registry("Alignments", ALIGNMENTS)
    yield ""
    yield "## Presets"
    for name, values in PRESETS.items():
        yield ""
        yield f"`{name}`: " + ", ".join(f"`{field}={value}`" for field, value in values.items()) + "."


def _registry(title: str, entries: dict[str, str]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    for name, description in entries.items():
        yield f"- `{name}`: {description}"


def _public(field: str) -> str:
    return "lambda" if field == "lambda_" else field


# A run that has every field there is: what it was not told are the defaults.
_EXAMPLE = RunConfig.build(corpus="corpus", tasks=("one", "two"), encoder="minilm+bilstm")


def _default(name: str) -> str:
    field = RunConfig.model_fields["lambda_" if name == "lambda" else name]
    if field.is_required():
        return "required"
    if name == "encoder":
        return _told(field.default)
    value = _told(getattr(_EXAMPLE, "lambda_" if name == "lambda" else name))
    return f"{value} for minilm" if name in ("lr_encoder", "lr_heads") else value


def _told(value: object) -> str:
    if value is None:
        return "unset"
    if isinstance(value, tuple):
        return "`" + ",".join(map(str, value)) + "`"
    return f"`{value}`"


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines()) + "\n")
