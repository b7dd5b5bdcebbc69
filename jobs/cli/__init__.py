"""The command line: the same verbs as the pages, for servers and scripts."""

from __future__ import annotations

import io
import sys

from core.paths import keep_private

# Each module adds its verbs to the app.
from jobs.cli import (  # noqa: F401
    control,
    corpus,
    laboratory,
    launch,
    listing,
    relations,
    results,
    study,
    tagging,
    transfer,
)
from jobs.cli.app import app, guarded

__all__ = ["app", "main"]


def main() -> None:
    """The console script `mrnlab`."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that is not UTF-8 shows what it cannot write as \\u03bb.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with guarded():
        keep_private()
        app()
