"""Settings in environment variables that are numbers of seconds."""

from __future__ import annotations

import math
import os

from core.errors import MRNLabError


def seconds(variable: str, default: float, meaning: str, *, least: float = 0.0) -> float:
    """What the variable says, else the default. `meaning` tells what to set it to.

    Raises MRNLabError where it is no number of seconds, or fewer than `least`.
    """
    chosen = os.environ.get(variable)
    if not chosen:
        return default
    try:
        found = float(chosen)
    except ValueError:
        found = math.nan
    if not least <= found < math.inf:
        raise MRNLabError(f"{variable} is '{chosen}'; set it to the {meaning}.")
    return found
