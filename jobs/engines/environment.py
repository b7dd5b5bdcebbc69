"""What a worker on another machine shares with the process that asked for it."""

from __future__ import annotations

import os

from core.paths import home

__all__ = ["handed_on"]

_NAMES = (
    *("MRNLAB_DATA", "MRNLAB_DATA_ROOTS", "MRNLAB_MODELS"),
    *("MRNLAB_ARTEFACTS", "MRNLAB_CHECKPOINT_S", "MRNLAB_HANG_S"),
)


def handed_on() -> dict[str, str]:
    """Settings for machines that do not make these themselves; the laboratory's folder among them."""
    chosen = {name: os.environ[name] for name in _NAMES if os.environ.get(name)}
    return {"MRNLAB_HOME": str(home()), **chosen}
