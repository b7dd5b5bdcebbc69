"""The command line: the same verbs as the pages, for servers and scripts."""

from __future__ import annotations

from core.paths import keep_private

# Each module adds its verbs to the app.
from jobs.cli import (
    backup,
    control,
    doctor,
    launch,
    learned,
    listing,
    queue,
    results,
    service,
    study,
    tagging,
    transfer,
)
from jobs.cli.app import app

__all__ = [
    "app",
    "backup",
    "control",
    "doctor",
    "launch",
    "learned",
    "listing",
    "main",
    "queue",
    "results",
    "service",
    "study",
    "tagging",
    "transfer",
]


def main() -> None:
    """The console script `mrnlab`."""
    keep_private()
    app()
