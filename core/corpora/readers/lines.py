"""The lines of text files, and what all strict readers refuse. Errors name the line."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NoReturn

from core.corpora.reading import FEATURE as FEATURE
from core.errors import CorpusError
from core.paths import opened
from core.wording import plural

MOST_BYTES = 2_000_000_000
MOST_LINES = 20_000_000
MOST_CHARACTERS = 100_000
"""The most bytes of a file and of a line: ten times the largest treebanks.

More would fill the memory of the page or the worker that reads it, and end it without a message.
"""

_BLOCK = 1 << 18
"""Bytes of a file that are split into lines at a time."""
_PACKED = (b"\x1f\x8b", b"PK\x03\x04")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class GivenFile:
    """A file that is not on this disk (uploaded, pasted): its name, for errors and notes, and its content."""

    name: str
    content: bytes

    def __str__(self) -> str:
        return self.name


Source = Path | GivenFile


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a file.

    Raises CorpusError where it is missing, larger than `most`, or one that `opened` refuses.
    """
    try:
        with opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                holds = f"holds {size / 1e6:,.0f} MB and the most is {most / 1e6:,.0f} MB"
                raise CorpusError(f"{path} {holds}; take a part of it.")
            return file.read()
    except FileNotFoundError:
        raise CorpusError(f"There is no file {path}; check the name.") from None
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}.") from error


class Lines:
    """The lines of a file without their ends (LF, CRLF or CR) and without byte order marks before them.

    They can be gone through more than once, and are never all in memory at once. With `carriage_returns` a
    line may have one inside, as a quoted field of CSV has. Making it raises CorpusError as `read_bytes` does,
    and where the file is empty or has too many lines; both raise it where a line is too long or no UTF-8.
    """

    def __init__(self, source: Source, *, carriage_returns: bool = False) -> None:
        data = source.content if isinstance(source, GivenFile) else read_bytes(source)
        if data.startswith(_UTF16):
            raise CorpusError("is UTF-16, not UTF-8; save the file as UTF-8.", source, 1)
        if data.startswith(_PACKED):
            raise CorpusError(f"{source} is compressed (gzip or ZIP); unpack it, or save the table as text.")
        self._source, self._carriage_returns = source, carriage_returns
        self._data = data.removeprefix(codecs.BOM_UTF8)
        self._end = b"\n" if b"\n" in self._data else b"\r"
        self._data = self._data.replace(self._end + codecs.BOM_UTF8, self._end)
        if not any(map(str.strip, self)):
            raise CorpusError(f"{source} is empty; it must hold at least one line of text.")
        count = self._data.count(self._end) + (not self._data.endswith(self._end))
        if count > MOST_LINES:
            raise CorpusError(f"{source} has {count:,} lines and the most is {MOST_LINES:,}.")

    def blocks(self) -> Iterator[list[bytes]]:
        """The lines as they are in the file, without their ends, some thousands at a time."""
        start = 0
        while start < len(self._data):
            end = self._data.find(self._end, start + _BLOCK)
            stop = len(self._data) if end < 0 else end
            yield self._data[start:stop].removesuffix(self._end if end < 0 else b"").split(self._end)
            start = stop + 1

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(chain.from_iterable(self.blocks()), start=1):
            yield self.text(line, number)

    def text(self, line: bytes, number: int) -> str:
        """The text of the line of this number. Raises CorpusError."""
        # Not str.splitlines: it also splits at characters that may stand inside a token (U+2028, U+0085).
        try:
            text = line.decode().rstrip("\r")
        except UnicodeDecodeError as error:
            byte, column = line[error.start], error.start + 1
            self._refuse(
                number, f"byte 0x{byte:02x} at position {column} is not UTF-8; save the file as UTF-8."
            )
        if len(text) > MOST_CHARACTERS:
            self._refuse(
                number,
                f"has {len(text):,} characters and the most is {MOST_CHARACTERS:,}; is it the text that you "
                "mean?",
            )
        if "\r" in text and not self._carriage_returns:
            self._refuse(number, "has a carriage return inside; end lines with a line feed.")
        return text

    def _refuse(self, number: int, problem: str) -> NoReturn:
        raise CorpusError(problem, self._source, number)


def read_lines(source: Source, *, carriage_returns: bool = False) -> list[str]:
    """All of `Lines` at once."""
    return list(Lines(source, carriage_returns=carriage_returns))


def marks_inside(source: Source) -> str:
    """A sentence on the byte order marks that `Lines` leaves out behind the first line; empty without any."""
    data = source.content if isinstance(source, GivenFile) else read_bytes(source)
    end = b"\n" if b"\n" in data else b"\r"
    if (first := data.find(end + codecs.BOM_UTF8)) < 0:
        return ""
    marks = plural(data.count(end + codecs.BOM_UTF8), "byte order mark")
    line = data.count(end, 0, first) + 2
    return f"{source.name}: {marks} inside left out (the first on line {line:,}); files were joined there."


BLANKS = " \t"


def row_problem(line: str, fields: Sequence[str], width: int, expectation: str, separator: str) -> str | None:
    """The problem of a line that holds a word; None where there is none."""
    if "\0" in line:
        return "holds a zero byte; save the file as UTF-8 text."
    if separator == " " and "\t" in line:
        return "holds a tab, and the columns of this file are separated by spaces; use one of the two."
    if len(fields) != width:
        name = "tabs" if separator == "\t" else "spaces"
        hint = " A comment begins with '# '." if line.startswith("#") else ""
        return f"expected {width} columns {expectation} separated by {name}, but found {len(fields)}.{hint}"
    return None
