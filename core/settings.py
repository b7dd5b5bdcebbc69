"""The environment variables that MRN Lab reads, explained in docs/command-line.md (a test compares).

Each is read where it is needed, since tests and started processes change them. A table of our own instead of
pydantic-settings, which reads all at once and names the field of a model where we name the variable.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from core.errors import MRNLabError


@dataclass(frozen=True)
class Number:
    """A variable that holds a number of at least `least`; `accepts` ends the sentence on another."""

    type: type[int] | type[float]
    default: float | None
    least: float
    accepts: str


SETTINGS: dict[str, Number | None] = {
    "MRNLAB_HOME": None,
    "MRNLAB_DB": None,
    "MRNLAB_DATA": None,
    "MRNLAB_MODELS": None,
    "MRNLAB_DATA_ROOTS": None,
    "MRNLAB_ALLOWED": None,
    "MRNLAB_SLOTS": Number(int, None, 1, "how many runs may train at once (1 or more)"),
    "MRNLAB_RUNS_PER_GPU": Number(int, 1, 1, "how many runs may share a GPU (1 or more)"),
    "MRNLAB_HANG_S": Number(
        float,
        900,
        1,
        "the seconds without progress after which a worker is taken for hung (several minutes; 900 "
        "by default)",
    ),
    "MRNLAB_LINGER_S": Number(float, 300, 0, "the seconds that a worker waits for another run (0 or more)"),
    "MRNLAB_SUPERVISOR": None,
    "MRNLAB_ENGINE": None,
    "MRNLAB_ARTEFACTS": None,
    "MRNLAB_RAY_ADDRESS": None,
    "MRNLAB_RAY_CPUS": Number(int, 1, 1, "how many cores a run takes (1 or more)"),
    "MRNLAB_SLURM": None,
    "MRNLAB_CHECKPOINT_S": Number(
        float, 60, 0, "the least number of seconds between two training states (0 or more)"
    ),
    "MRNLAB_BF16": None,
}
"""By name; None for text, which is checked where it is used."""


def count(variable: str) -> int | None:
    """The whole number that the variable holds, else its default. Raises MRNLabError."""
    value = _number(variable)
    return None if value is None else int(value)


def seconds(variable: str) -> float:
    """The seconds that the variable holds, else its default. Raises MRNLabError."""
    value = _number(variable)
    assert value is not None, f"{variable} has no default"
    return float(value)


def yes_or_no(variable: str) -> bool | None:
    """Whether the variable is `yes`, and not `no`; None where it is not set. Raises MRNLabError."""
    chosen = os.environ.get(variable)
    if not chosen:
        return None
    if chosen not in ("yes", "no"):
        raise MRNLabError(f"{variable} is '{chosen}'; set it to yes or no.")
    return chosen == "yes"


def _number(variable: str) -> float | None:
    setting = SETTINGS[variable]
    assert setting is not None, f"{variable} holds no number"
    chosen = os.environ.get(variable)
    if not chosen:
        return setting.default
    try:
        value = float(setting.type(chosen))
    except ValueError:
        value = math.nan
    if not setting.least <= value < math.inf:
        raise MRNLabError(f"{variable} is '{chosen}'; set it to {setting.accepts}.")
    return value
