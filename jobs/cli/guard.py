"""The guard at the door: an error that nobody foresaw ends in one sentence, its details in a file."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core import __version__
from core.paths import home
from core.plain_text import without_passwords
from jobs.cli.output import say

__all__ = ["UNFORESEEN", "guarded"]

UNFORESEEN = 70
"""The exit code: EX_SOFTWARE of sysexits.h, an internal error."""


@contextmanager
def guarded() -> Iterator[None]:
    """Ends the program with UNFORESEEN where the block raises an error that nothing else has answered.

    Ctrl-C, a closed pipe and exit codes pass.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 (whatever nobody foresaw; its details are kept)
        name, details = type(error).__name__, _details(error)
        file = _written(details)
        if file is None:
            say(f"mrnlab met an unknown error ({name}), and no file takes its details:\n{details}")
        else:
            say(f"mrnlab met an unknown error ({name}). The details are in {file}: please report them.")
        raise SystemExit(UNFORESEEN) from None


def _details(error: Exception) -> str:
    """Versions, the call and the traceback, without passwords."""
    lines = [
        f"mrnlab {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"{time.strftime('%Y-%m-%d %H:%M:%S %z')}, process {os.getpid()}",
        f"Call: {sys.argv!r}",
        "",
        *traceback.format_exception(error),
    ]
    settings = [value for name, value in os.environ.items() if name.startswith("MRNLAB_")]
    return without_passwords("\n".join(lines), *sys.argv, *settings)


def _written(details: str) -> Path | None:
    """The file that holds the details: a log of the laboratory, else a temporary file; None without."""
    name = f"error-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    for folder in (home() / "logs", Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / name).open("x", encoding="utf-8", errors="backslashreplace") as file:
                file.write(details)
        except OSError:
            continue
        return folder / name
    return None
