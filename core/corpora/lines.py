"""A text file as numbered lines. Bytes that are not UTF-8 are refused with their line."""

from __future__ import annotations

import codecs
from pathlib import Path

from core.errors import CorpusError

__all__ = ["MOST_BYTES", "MOST_CHARACTERS", "MOST_LINES", "read_bytes", "read_lines"]

MOST_BYTES = 2_000_000_000
MOST_LINES = 20_000_000
MOST_CHARACTERS = 100_000
"""The most a file may hold, in all and in a line: ten times the largest treebanks. More would fill the memory
of the page or the worker that reads it, and end it without a word."""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_bytes(path: Path) -> bytes:
    """What a file of text holds. Raises CorpusError where it is missing, no file, or too large.

    A device or a pipe is no such file: reading it might never end.
    """
    try:
        if path.exists() and not path.is_file():
            raise CorpusError(f"{path} is not a file; give one that holds text.")
        if path.exists() and path.stat().st_size > MOST_BYTES:
            raise CorpusError(
                f"{path} holds {path.stat().st_size / 1e6:,.0f} MB and the most is "
                f"{MOST_BYTES / 1e6:,.0f} MB; take a part of it."
            )
        return path.read_bytes()
    except FileNotFoundError:
        raise CorpusError(f"There is no file {path}; check the name.") from None
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}.") from error


def read_lines(path: Path) -> list[str]:
    """The file's lines without their ends (LF or CRLF) and without a byte order mark.

    Raises CorpusError where the file is missing, no file, empty, not UTF-8, or has too much in it.
    """
    data = read_bytes(path)
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
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    if not lines[-1]:
        lines.pop()
    if len(lines) > MOST_LINES:
        raise CorpusError(f"{path} has {len(lines):,} lines and the most is {MOST_LINES:,}.")
    longest = max(map(len, lines))
    if longest > MOST_CHARACTERS:
        number = next(number for number, line in enumerate(lines, start=1) if len(line) > MOST_CHARACTERS)
        raise CorpusError(
            f"{path}, line {number}: has {len(lines[number - 1]):,} characters and the most is "
            f"{MOST_CHARACTERS:,}; is it the text that you mean?"
        )
    return lines
