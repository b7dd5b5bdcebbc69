"""What a fresh form holds, and which values it offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.config import FIELD_HELP, LEARNABLE, PARADIGMS, RunConfig
from core.lists import number_typed
from core.models.registry import BILSTM_SUFFIX, ENCODERS
from core.mrn.registry import ALIGNMENTS, PRIORS
from core.sweep import LISTED
from jobs.queueing import MOST_RETRIES, PRIORITIES

__all__ = ["EXECUTION", "NEEDED", "OPEN", "OPTIONS", "RARE", "START", "option_of"]

# What the form asks in its own place, in the order a researcher thinks; all other fields are rare.
_ASKED = (
    "encoder",
    "encoder_training",
    "paradigm",
    "prior",
    "alignment",
    "lambda",
    "fraction",
    "seed",
    "epochs",
)
RARE: tuple[str, ...] = tuple(name for name in (*LISTED, "learn") if name not in _ASKED)
"""The fields under *More settings*."""
NEEDED: tuple[str, ...] = tuple(name for name in _ASKED if name != "lambda")
"""The fields that must have a value where they are asked; the others take their default."""
OPEN: tuple[str, ...] = ("encoder",)
"""The fields whose options are only the known ones: another one may be typed."""

EXECUTION: Mapping[str, tuple[int, int]] = {"priority": PRIORITIES, "retries": (0, MOST_RETRIES)}
"""What is asked of how runs wait and come back: the least and the most. Each starts at 0."""


def option_of(value: bool | float | str) -> str:
    """A field's value as the form has it: as an option, or as one types it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else number_typed(value)


def _options(field: str) -> tuple[str, ...]:
    if FIELD_HELP[field].unit == "yes or no":
        return ("no", "yes")
    return tuple(option.strip() for option in FIELD_HELP[field].range.split("|"))


OPTIONS: Mapping[str, tuple[str, ...]] = {
    "encoder": tuple(name + suffix for name in ENCODERS for suffix in ("", BILSTM_SUFFIX)),
    "paradigm": PARADIGMS,
    "prior": tuple(PRIORS),
    "alignment": tuple(ALIGNMENTS),
    "learn": LEARNABLE,
    **{
        field: _options(field)
        for field in LISTED
        if field != "paradigm" and ("|" in FIELD_HELP[field].range or FIELD_HELP[field].unit == "yes or no")
    },
}
"""The fields of which values are picked, and what they are picked from. Of the others they are typed."""


def _start(field: str) -> str | tuple[str, ...]:
    default: Any = RunConfig.model_fields["lambda_" if field == "lambda" else field].default
    text = "" if default is None else option_of(default)
    return text if field not in OPTIONS else (text,) if text else ()


START: Mapping[str, str | tuple[str, ...]] = {
    **{field: _start(field) for field in (*LISTED, "learn")},
    # Quick and telling on any machine: heads over frozen features, three seeds.
    "encoder_training": ("frozen",),
    "seed": "1-3",
    "prior": (next(iter(PRIORS)),),
    "alignment": (next(iter(ALIGNMENTS)),),
}
"""By field, what a fresh form holds: what is picked, or the text that is typed."""
