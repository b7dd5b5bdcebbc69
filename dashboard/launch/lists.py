"""Lists as one types them: `0.01, 0.1` and `1-5, 7`."""

from __future__ import annotations

import math
import re

from core.config import FIELD_HELP
from core.errors import ConfigError

__all__ = ["numbers", "seeds"]

_MOST = 1000


def numbers(text: str, field: str) -> list[float]:
    """The numbers in a list, each once. Raises ConfigError for that field, naming what is not a number."""
    parts = _parts(text, field)
    try:
        values = [float(part) for part in parts]
    except ValueError:
        wrong = next(part for part in parts if not _is_number(part))
        raise ConfigError(field, f"'{wrong}' is not a number; write numbers separated by commas.") from None
    if not all(math.isfinite(value) for value in values):
        raise ConfigError(field, f"Every {FIELD_HELP[field].symbol or field} must be a finite number.")
    return list(dict.fromkeys(values))


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
            raise ConfigError("seed", f"'{part}' is not a range of at most {_MOST} seeds, smallest first.")
        values.extend(range(first, last + 1))
    return list(dict.fromkeys(values))


def _parts(text: str, field: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ConfigError(field, "Write at least one number.")
    return parts


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
