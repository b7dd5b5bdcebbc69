"""Numbers and lists of them as one types them: `0.01, 0.1` and `1-5, 7`. The form, the command line, links
and filters read the same.

Digits are those of ASCII. What only Python takes for a number (`1_0`, `inf`, other digits) is refused.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable

from core.config import RunConfig
from core.errors import ConfigError
from core.plain_text import shortened

__all__ = [
    "MOST_SEEDS",
    "is_number",
    "is_whole",
    "number_typed",
    "numbers",
    "real_number",
    "seeds",
    "seeds_typed",
    "whole_number",
]

MOST_SEEDS = 10_000
"""The most seeds of one list."""

# At most 18 digits, which fit 64 bits: no database, array or file takes a longer one.
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_LONGEST_REAL = 100


def whole_number(text: str) -> int | None:
    """The whole number that the text is; None where it is none, or has more than 18 digits."""
    return int(text) if _WHOLE.fullmatch(text) else None


def real_number(text: str) -> float | None:
    """The finite number that the text is; None where it is none."""
    if len(text) > _LONGEST_REAL or not _REAL.fullmatch(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def is_whole(field: str) -> bool:
    """Whether the field holds a whole number."""
    return "int" in str(RunConfig.model_fields[_attribute(field)].annotation)


def is_number(field: str) -> bool:
    """Whether the field holds a number, whole or not."""
    return is_whole(field) or "float" in str(RunConfig.model_fields[_attribute(field)].annotation)


def numbers(text: str, field: str) -> list[float]:
    """The numbers in a list, each once; whole ones where the field holds whole numbers.

    Raises ConfigError for that field, naming what is not a number.
    """
    read = whole_number if is_whole(field) else real_number
    values: dict[float, None] = {}
    for part in _parts(text, field):
        value = read(part)
        if value is None:
            kind = "a whole number" if is_whole(field) else "a number"
            raise ConfigError(
                field, f"{field}: '{shortened(part)}' is not {kind}; write numbers separated by commas."
            )
        values[value] = None
    return list(values)


def number_typed(value: float) -> str:
    """A number as one types it, `0.01` or `2e-5`, in the fewest digits that read back as the same number."""
    if isinstance(value, int):
        return str(value)
    return repr(value).removesuffix(".0").replace("e-0", "e-").replace("e+0", "e")


def seeds(text: str) -> list[int]:
    """The seeds in a list such as `1-5, 7`, each once. Raises ConfigError with what is wrong."""
    values: dict[int, None] = {}
    for part in _parts(text, "seed"):
        match = re.fullmatch(r"([0-9]{1,18})(?:\s*[-–]\s*([0-9]{1,18}))?", part)
        if match is None:
            raise ConfigError(
                "seed",
                f"seed: '{shortened(part)}' is not a seed; write whole numbers or ranges, such as 1-5, 7.",
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if not 0 <= last - first < MOST_SEEDS:
            raise ConfigError(
                "seed", f"seed: '{part}' is not a range of at most {MOST_SEEDS:,} seeds, smallest first."
            )
        values |= dict.fromkeys(range(first, last + 1))
        if len(values) > MOST_SEEDS:
            raise ConfigError("seed", f"seed: the list names more than {MOST_SEEDS:,} seeds; name fewer.")
    return list(values)


def seeds_typed(values: Iterable[int]) -> str:
    """Seeds as one types them, in rising order: `1-5, 7`."""
    parts: list[str] = []
    # Within a stretch without gaps, value and place differ by the same number.
    for _, stretch in itertools.groupby(enumerate(sorted(set(values))), lambda pair: pair[1] - pair[0]):
        members = [value for _, value in stretch]
        for start in range(0, len(members), MOST_SEEDS):
            some = members[start : start + MOST_SEEDS]
            parts += [f"{some[0]}-{some[-1]}"] if len(some) > 2 else map(str, some)
    return ", ".join(parts)


def _parts(text: str, field: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ConfigError(field, "Write at least one number.")
    return parts


def _attribute(field: str) -> str:
    return "lambda_" if field == "lambda" else field
