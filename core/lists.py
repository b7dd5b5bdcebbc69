"""Lists as one types them: `0.01, 0.1` and `1-5, 7`. The form and the command line read the same."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable

from core.config import FIELD_HELP, RunConfig
from core.errors import ConfigError

__all__ = ["is_number", "is_whole", "number_typed", "numbers", "seeds", "seeds_typed"]

_MOST = 10_000


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
    whole = is_whole(field)
    values: list[float] = []
    for part in _parts(text, field):
        try:
            values.append(int(part) if whole else float(part))
        except ValueError:
            kind = "a whole number" if whole else "a number"
            raise ConfigError(field, f"'{part}' is not {kind}; write numbers separated by commas.") from None
    if not all(math.isfinite(value) for value in values):
        raise ConfigError(field, f"Every {FIELD_HELP[field].symbol or field} must be a finite number.")
    return list(dict.fromkeys(values))


def number_typed(value: float) -> str:
    """A number as one types it, `0.01` or `2e-5`, in the fewest digits that read back as the same number."""
    if isinstance(value, int):
        return str(value)
    return repr(value).removesuffix(".0").replace("e-0", "e-").replace("e+0", "e")


def seeds(text: str) -> list[int]:
    """The seeds in a list such as `1-5, 7`, each once. Raises ConfigError with what is wrong."""
    values: list[int] = []
    for part in _parts(text, "seed"):
        match = re.fullmatch(r"(\d+)(?:\s*[-–]\s*(\d+))?", part)
        if match is None:
            raise ConfigError(
                "seed", f"'{part}' is not a seed; write whole numbers or ranges, such as 1-5, 7."
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if not 0 <= last - first < _MOST:
            raise ConfigError("seed", f"'{part}' is not a range of at most {_MOST:,} seeds, smallest first.")
        values.extend(range(first, last + 1))
    return list(dict.fromkeys(values))


def seeds_typed(values: Iterable[int]) -> str:
    """Seeds as one types them, in rising order: `1-5, 7`."""
    parts: list[str] = []
    # Within a stretch without gaps, value and place differ by the same number.
    for _, stretch in itertools.groupby(enumerate(sorted(set(values))), lambda pair: pair[1] - pair[0]):
        members = [value for _, value in stretch]
        for start in range(0, len(members), _MOST):
            some = members[start : start + _MOST]
            parts += [f"{some[0]}-{some[-1]}"] if len(some) > 2 else map(str, some)
    return ", ".join(parts)


def _parts(text: str, field: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ConfigError(field, "Write at least one number.")
    return parts


def _attribute(field: str) -> str:
    return "lambda_" if field == "lambda" else field
