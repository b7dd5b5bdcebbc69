"""The command line: the same verbs as the pages, for servers and scripts."""

from __future__ import annotations

# Each module adds its verbs to the app.
from jobs.cli import backup, control, launch, learned, listing, results, service, study, tagging
from jobs.cli.app import app

__all__ = [
    "app",
    "backup",
    "control",
    "launch",
    "learned",
    "listing",
    "main",
    "results",
    "service",
    "study",
    "tagging",
]


def main() -> None:
    """The console script `mrnlab`."""
    app()
