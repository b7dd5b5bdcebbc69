"""Logs: the output of a worker, also that of C code, goes to the log file of its run."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from core.plain_text import terminal_text
from core.wording import UTC_FORMAT

_TAIL_BYTES = 64 * 1024


def set_up_logging() -> None:
    """Sends log lines with their time in UTC to standard error, with control characters escaped."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Escaped("%(asctime)s %(levelname)-7s %(message)s", UTC_FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for chatty in ("httpx", "urllib3", "filelock"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


class _Escaped(logging.Formatter):
    converter = staticmethod(time.gmtime)  # machines of one laboratory may keep different times

    def format(self, record: logging.LogRecord) -> str:
        return terminal_text(super().format(record))


@contextlib.contextmanager
def to_log_file(path: str | Path) -> Iterator[None]:
    """Sends standard output and error to the end of that file while the block runs.

    It replaces the file descriptors, so that a crash in C code is logged there too.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(file, 1)
        os.dup2(file, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor, former in zip((1, 2), saved, strict=True):
            os.dup2(former, descriptor)
            os.close(former)
        os.close(file)


def tail(path: str | Path | None, lines: int = 40) -> str:
    """The last lines of a log; empty where there is none yet."""
    if path is None or not Path(path).is_file():
        return ""
    with Path(path).open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - _TAIL_BYTES))
        text = file.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-lines:])
