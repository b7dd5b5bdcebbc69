"""A text file as numbered lines. Bytes that are not UTF-8 are refused with their line."""

from __future__ import annotations

import codecs
from pathlib import Path

from core.errors import CorpusError

__all__ = ["read_lines"]

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_lines(path: Path) -> list[str]:
    """The file's lines without their ends (LF or CRLF) and without a byte order mark.

    Raises CorpusError where the file is missing, empty or not UTF-8.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise CorpusError(f"There is no file {path}; check the name.") from None
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}.") from error
    if data.startswith(_UTF16):
        raise CorpusError(f"{path}, line 1: is UTF-16, not UTF-8; save the file as UTF-8.")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise CorpusError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} at position {column} is not UTF-8; "
            "save the file as UTF-8."
        ) from None
    if not text.strip():
        raise CorpusError(f"{path} is empty; it must hold at least one sentence.")
    # Not str.splitlines: it also splits at characters that may stand inside a token (U+2028, U+0085).
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if not lines[-1]:
        lines.pop()
    return lines
