"""The environment variables that MRN Lab reads, in one table. A test holds docs/command-line.md to it.

Each is read where it is needed, since tests and started processes change them. A table of our own instead of
pydantic-settings, which reads all at once and names the field of a model where we name the variable.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from core.errors import SettingError


@dataclass(frozen=True)
class Setting:
    """One variable. A number is at least `least`; `accepts` ends the sentence that refuses another value."""

    meaning: str
    type: type[str] | type[int] | type[float] = str
    default: float | None = None
    accepts: str = ""
    least: float = 0


SETTINGS: dict[str, Setting] = {
    "MRNLAB_HOME": Setting("The laboratory's folder: store, checkpoints, logs, caches, uploads."),
    "MRNLAB_DB": Setting("The store's URL: `sqlite:///FILE`, or `postgresql://USER:PASSWORD@HOST/DATABASE`"),
    "MRNLAB_DATA": Setting("A folder with local copies of the catalogue's corpora, each under its name."),
    "MRNLAB_MODELS": Setting(
        "A folder with local copies of the known encoders of the Hub, each under its name"
    ),
    "MRNLAB_DATA_ROOTS": Setting(
        "The folders, separated by `:`, that may contain corpora, encoders and mappings (default: anywhere"
    ),
    "MRNLAB_ALLOWED": Setting("The e-mail addresses and domains that may log in"),
    "MRNLAB_SLOTS": Setting(
        "How many runs train at once on this machine (default: one per GPU, one without).",
        int,
        accepts="how many runs may train at once (1 or more)",
        least=1,
    ),
    "MRNLAB_RUNS_PER_GPU": Setting(
        "How many small runs may share a GPU (default 1).",
        int,
        1,
        accepts="how many runs may share a GPU (1 or more)",
        least=1,
    ),
    "MRNLAB_HANG_S": Setting(
        "Seconds without progress after which a running worker counts as hung and is killed (default 900).",
        float,
        900,
        accepts="the seconds without progress after which a worker is taken for hung (several minutes; 900 "
        "by default)",
        least=1,
    ),
    "MRNLAB_LINGER_S": Setting(
        "Seconds that an idle worker waits for a run before it ends (default 300).",
        float,
        300,
        accepts="the seconds that a worker waits for another run (0 or more)",
    ),
    "MRNLAB_SUPERVISOR": Setting("Set by MRN Lab itself: the process that supervises a worker."),
    "MRNLAB_ENGINE": Setting("Where runs are trained: `local`, `ray`, `slurm`."),
    "MRNLAB_ARTEFACTS": Setting(
        "Where training states and models are kept for other machines: a folder, or a URL"
    ),
    "MRNLAB_RAY_ADDRESS": Setting("`HOST:PORT` of the Ray cluster (default: `RAY_ADDRESS`"),
    "MRNLAB_RAY_CPUS": Setting(
        "CPU cores of the Ray cluster that a run takes (default 1).",
        int,
        1,
        accepts="how many cores a run takes (1 or more)",
        least=1,
    ),
    "MRNLAB_SLURM": Setting(
        "The file with a worker's resource request for Slurm (default: `slurm.toml` in `MRNLAB_HOME`)."
    ),
    "MRNLAB_CHECKPOINT_S": Setting(
        "Minimum seconds between two training states of a run (default 60;",
        float,
        60,
        accepts="the least number of seconds between two training states (0 or more)",
    ),
}
"""Each `meaning` is how the variable's row in docs/command-line.md begins."""


def count(variable: str) -> int | None:
    """A whole number, else the default. Raises SettingError."""
    value = _number(variable)
    return None if value is None else int(value)


def seconds(variable: str) -> float:
    """A number of seconds, else the default. Raises SettingError."""
    value = _number(variable)
    assert value is not None, f"{variable} has no default"
    return float(value)


def _number(variable: str) -> float | None:
    setting = SETTINGS[variable]
    chosen = os.environ.get(variable)
    if not chosen:
        return setting.default
    try:
        value = float(setting.type(chosen))
    except ValueError:
        value = math.nan
    if not setting.least <= value < math.inf:
        raise SettingError(variable, chosen, setting.accepts)
    return value
