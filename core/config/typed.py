"""Values of a run's fields as people type them (`0.01, 0.1`; `1-5, 7`; `yes`), read and written."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, get_args

from core.config import FIELD_HELP
from core.config.fields import comma_list
from core.errors import FIELD, ConfigError
from core.plain_text import shortened


def parse_values(field: str, text: str) -> list[Any]:
    """The values of a field in a list as one types it; none where it is empty. Raises ConfigError."""
    if not text.strip():
        return []
    if field == "seed":
        return seeds(text)
    return numbers(text, field) if is_number(field) else comma_list(text)


def format_values(field: str, values: Iterable[Any]) -> str:
    """The text of a list of a field's values; `parse_values` reads it."""
    return seeds_typed(values) if field == "seed" else ", ".join(map(value_text, values))


def value_text(value: Any) -> str:
    """The text of one value: `yes`, `0.01`, `minilm`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else number_typed(value)


def share_typed(share: float) -> str:
    """A share as one types it in percent, `5%`; it reads back as the same number."""
    return f"{(Decimal(number_typed(share)) * 100).normalize():f}%"


MOST_SEEDS = 10_000
"""The most seeds of one list."""

# Digits are those of ASCII: what only Python takes for a number (`1_0`, `inf`, other digits) is refused. At
# most 18 of them, which fit 64 bits: no database, array or file takes a longer one.
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


def _share(text: str) -> float | None:
    """The number of a share, `0.05` or `5%`; None where it is none."""
    typed = text.removesuffix("%").rstrip()
    number = real_number(typed)
    # In decimals as they are typed: 1.1% is 0.011, and not the float next to it.
    return float(Decimal(typed) / 100) if number is not None and text.endswith("%") else number


def is_whole(field: str) -> bool:
    """Whether the field holds a whole number."""
    return int in _types(FIELD_HELP[field].annotation)


def is_number(field: str) -> bool:
    """Whether the field holds a number, whole or not."""
    return is_whole(field) or float in _types(FIELD_HELP[field].annotation)


def _types(annotation: Any) -> set[Any]:
    """The types within an annotation, and the values of a `Literal`."""
    parts = get_args(annotation)
    return {annotation} if not parts else set[Any]().union(*map(_types, parts))


def numbers(text: str, field: str) -> list[float]:
    """The numbers in a list, each once; whole ones where the field holds whole numbers.

    Raises ConfigError for that field, naming what is not a number.
    """
    read, kind = (whole_number, "a whole number") if is_whole(field) else (real_number, "a number")
    if FIELD_HELP[field].unit == "share":
        read, kind = _share, "a share such as 0.05 or 5%"
    values: dict[float, None] = {}
    for part in _parts(text, field):
        if (value := read(part)) is None:
            raise ConfigError(
                field, f"{FIELD}: '{shortened(part)}' is not {kind}; write numbers separated by commas."
            )
        values[value] = None
    return list(values)


def number_typed(value: float) -> str:
    """A number as one types it, `0.01` or `2e-5`, in the fewest digits that read back as the same number."""
    if isinstance(value, int):
        return str(value)
    return repr(value).removesuffix(".0").replace("e-0", "e-").replace("e+0", "e")


def seeds(text: str) -> list[int]:
    """The seeds in a list like `1-5, 7`, each once. Raises ConfigError with the wrong part."""
    values: dict[int, None] = {}
    for part in _parts(text, "seed"):
        match = re.fullmatch(r"([0-9]{1,18})(?:\s*[-–]\s*([0-9]{1,18}))?", part)
        if match is None:
            raise ConfigError(
                "seed",
                f"{FIELD}: '{shortened(part)}' is not a seed; write whole numbers or ranges, such as 1-5, 7.",
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if not 0 <= last - first < MOST_SEEDS:
            raise ConfigError(
                "seed", f"{FIELD}: '{part}' is not a range of at most {MOST_SEEDS:,} seeds, smallest first."
            )
        values |= dict.fromkeys(range(first, last + 1))
        if len(values) > MOST_SEEDS:
            raise ConfigError("seed", f"{FIELD}: the list names more than {MOST_SEEDS:,} seeds; name fewer.")
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
    parts = comma_list(text)
    if not parts:
        raise ConfigError(field, f"{FIELD}: write at least one number.")
    return parts
