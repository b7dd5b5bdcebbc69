"""The command line: the same verbs as the pages, for servers and scripts."""

from __future__ import annotations

from core.paths import set_umask

# Each module adds its verbs to the app.
from jobs.cli import (  # noqa: F401
    compare,
    control,
    corpus,
    decide,
    laboratory,
    launch,
    listing,
    relations,
    report,
    results,
    study,
    suspects,
    tagging,
    transfer,
)
from jobs.cli.app import app, guarded
from jobs.cli.output import guard_standard_streams

__all__ = ["app", "main"]


def main() -> None:
    """Runs the console script `mrnlab`."""
    guard_standard_streams()
    with guarded():
        set_umask()
        app()
