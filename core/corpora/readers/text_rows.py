"""The rows of TSV, CSV and JSONL files with named columns. Errors name the line.

The first line of TSV and CSV names the columns; each line of JSONL is an object with the same keys. TSV knows
no quotes; in CSV a quoted field may hold line ends, and its row has the line that it begins on.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from core.corpora.readers.lines import GivenFile, Source, read_lines
from core.errors import CorpusError
from core.paths import opened
from core.plain_text import shortened
from core.wording import plural

CSV, TSV, JSONL = ".csv", ".tsv", ".jsonl"
"""The endings of text files; a TSV file's first line decides between texts and CoNLL columns."""
_MOST_SEEN = 65_536
_LONGEST_SHOWN = 80

Row = tuple[int, Sequence[Any]]
"""A row's line and its values."""


def beginning(source: Source, most: int = _MOST_SEEN) -> str:
    """The text of the first bytes of a file; empty where it cannot be read, of which its reader says why."""
    if isinstance(source, GivenFile):
        seen = source.content[:most]
    else:
        try:
            with opened(source) as file:
                seen = file.read(most)
        except OSError:
            return ""
    return seen.decode("utf-8-sig", errors="replace")


def read_rows(source: Source) -> tuple[Sequence[str], Iterator[Row]]:
    """The names of the columns, and the rows. Raises CorpusError with file, line and the expected content."""
    ending = Path(source.name).suffix.lower()
    lines = read_lines(source, carriage_returns=ending == CSV)
    while lines and not lines[-1]:
        lines.pop()
    rows = _ROWS[ending](source, lines)
    return [name.strip() for name in next(rows)[1]], rows


def refuse(source: Source, line: int, problem: str) -> NoReturn:
    """Raises CorpusError with file and line."""
    raise CorpusError(problem, source, line)


class _Located:
    """The context of `errors_located`. A class, since a row enters it and generators are slow."""

    __slots__ = ("_location", "_source")

    def __init__(self, source: Source, location: str | int) -> None:
        self._source, self._location = source, location

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, ValueError):
            if isinstance(self._location, int):
                raise CorpusError(str(error), self._source, self._location) from None
            raise CorpusError(f"{self._source}, {self._location}: {error}") from None


def errors_located(source: Source, location: str | int) -> _Located:
    """A context in which a ValueError becomes a CorpusError that names this line, by its number, or row."""
    return _Located(source, location)


def _tsv(source: Source, lines: Sequence[str]) -> Iterator[Row]:
    return _with_equal_width(source, enumerate((line.split("\t") for line in lines), start=1), "tabs")


def _csv(source: Source, lines: Sequence[str]) -> Iterator[Row]:
    def rows() -> Iterator[Row]:
        reader = csv.reader((f"{line}\n" for line in lines), strict=True)
        while True:
            number = reader.line_num + 1
            try:
                yield number, next(reader)
            except StopIteration:
                return
            except csv.Error:
                problem = (
                    "a quoted field is not closed, or goes on behind its closing quote; write a quote inside "
                    "a field twice."
                )
                if "\r" in lines[number - 1]:
                    problem = "has a carriage return inside; end lines with a line feed."
                refuse(source, number, problem)

    return _with_equal_width(source, rows(), "commas")


def _with_equal_width(source: Source, rows: Iterator[Row], separators: str) -> Iterator[Row]:
    names: Sequence[str] = ()
    first: Sequence[str] = ()
    for number, values in rows:
        first = first or values
        names = names or [name.strip() for name in values]
        if not any(values):
            refuse(source, number, "is empty; delete it, or write a row there.")
        if number > 1 and values == first:
            refuse(source, number, "names the columns again; delete it.")
        if len(values) != len(names):
            expected = f"{plural(len(names), 'column')} ({shown(', '.join(names))}) separated by {separators}"
            refuse(source, number, f"expected {expected}, but found {len(values):,}.")
        yield number, values


def _jsonl(source: Source, lines: Sequence[str]) -> Iterator[Row]:
    names: list[str] = []
    for number, line in enumerate(lines, start=1):
        with errors_located(source, number):
            values = json_object(line)
            names = names or list(values)
            for has, lacks, what in ((names, values, "has no"), (values, names, "has also")):
                for name in has:
                    if name not in lacks:
                        problem = f"{what} '{shown(name)}'; every line needs the same keys as line 1."
                        raise ValueError(problem)
        if number == 1:
            yield number, names
        yield number, [values[name] for name in names]


def json_object(line: str, example: str = '{"text": "…", "label": "…"}') -> dict[str, Any]:
    """The object that a line of JSONL holds. Raises ValueError where it holds none."""
    try:
        values = json_value(line)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise ValueError(f"is no JSON ({reason}); expected an object such as {example}.") from error
    if not isinstance(values, dict):
        raise ValueError(f"is no JSON object; expected one such as {example}.")
    return values


def json_value(text: str) -> Any:
    """The value of a JSON text.

    Raises ValueError where it is not JSON or has a key twice, RecursionError where it is nested too deep.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            raise ValueError("a key stands twice")
        return values

    def as_written(text: str) -> float | str:
        """The number; the text where no float holds it."""
        return float(text) if math.isfinite(float(text)) else text

    def no_number(text: str) -> NoReturn:
        raise ValueError(f"{text} is no JSON")

    return json.loads(text, object_pairs_hook=unique, parse_constant=no_number, parse_float=as_written)


_ROWS = {TSV: _tsv, CSV: _csv, JSONL: _jsonl}


def check_names(names: Sequence[str], read: Sequence[str]) -> None:
    """Refuses two columns of one name that are read."""
    if twice := [name for name in read if names.count(name) > 1]:
        raise ValueError(f"two columns are named '{shown(twice[0])}'; give each a name of its own.")


def check_characters(name: str, text: str) -> None:
    """Raises ValueError for characters that no tokenizer takes."""
    if "\0" in text:
        raise ValueError(f"{name} holds a zero byte; save the file as UTF-8 text.")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"{name} holds half a surrogate pair; write the whole character.")


def shown(text: str) -> str:
    """A name or a value, as a sentence shows it."""
    return shortened(text, _LONGEST_SHOWN)
