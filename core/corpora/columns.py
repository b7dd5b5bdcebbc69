"""The CoNLL column format: a word a line, its labels in columns beside it, an empty line after a sentence.

Columns stand apart by tabs or by spaces; the first line that holds a word decides for the whole file. Where
they stand apart by spaces, a line of spaces is an empty line; where by tabs, it is a mistake and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import intern

from core.corpora.lines import read_lines
from core.corpora.types import Sentence
from core.corpora.wording import counted
from core.errors import CorpusError

__all__ = ["IGNORED", "TOKENS", "Table", "read_columns", "read_table"]

TOKENS = "tokens"
"""The name of the column of words."""
IGNORED = "_"
"""A column whose name starts so is read over."""

_DOCSTART = "-DOCSTART-"
_MOST_COLUMNS = 200
_SPACES = re.compile(" +")


@dataclass(frozen=True)
class Table:
    """The rows of a file by sentence, all with `width` fields; `docstarts` document marks were left out."""

    sentences: tuple[tuple[tuple[str, ...], ...], ...]
    width: int
    docstarts: int


def read_columns(path: Path, columns: Sequence[str]) -> tuple[tuple[Sentence, ...], tuple[str, ...]]:
    """The sentences of a file whose columns have these names, and notes on what was left out.

    Raises CorpusError with file, line and what was expected.
    """
    table = read_table(path, columns)
    words = columns.index(TOKENS)
    tasks = [
        (name, place) for place, name in enumerate(columns) if name != TOKENS and not name.startswith(IGNORED)
    ]
    sentences = []
    for rows in table.sentences:
        fields = tuple(zip(*rows, strict=True))
        sentences.append(
            Sentence(fields[words], {name: tuple(map(intern, fields[place])) for name, place in tasks})
        )
    notes = (
        (f"{path.name}: {counted(table.docstarts, '-DOCSTART- line')} left out.",) if table.docstarts else ()
    )
    return tuple(sentences), notes


def read_table(path: Path, columns: Sequence[str] | None = None) -> Table:
    """The rows of a file, without names. `columns`, where given, says how many fields each row must have.

    Raises CorpusError with file, line and what was expected.
    """
    sentences: list[tuple[tuple[str, ...], ...]] = []
    rows: list[tuple[str, ...]] = []
    expected = len(columns) if columns else 0
    decided_at = 0
    docstarts = 0
    for number, fields, apart in _fields(path):
        if fields is None or fields[0] == _DOCSTART:
            docstarts += fields is not None
            if rows:
                sentences.append(tuple(rows))
                rows = []
            continue
        if not expected:
            expected, decided_at = len(fields), number
            if expected > _MOST_COLUMNS:
                raise CorpusError(
                    f"{path}, line {number}: has {expected:,} columns and the most is {_MOST_COLUMNS}."
                )
        if len(fields) != expected:
            raise CorpusError(
                f"{path}, line {number}: expected {_expectation(expected, columns, decided_at)} set apart by "
                f"{apart}, but found {len(fields)}."
            )
        if not all(fields):
            raise CorpusError(f"{path}, line {number}: column {fields.index('') + 1} is empty.")
        rows.append(fields)
    if rows:
        sentences.append(tuple(rows))
    if not sentences:
        raise CorpusError(f"{path} holds no sentence; it must hold at least one.")
    return Table(tuple(sentences), expected, docstarts)


def _fields(path: Path) -> Iterator[tuple[int, tuple[str, ...] | None, str]]:
    """Line number, fields (None for an empty line) and what sets the columns apart."""
    tabs: bool | None = None
    for number, line in enumerate(read_lines(path), start=1):
        if tabs is None and line.strip():
            tabs = "\t" in line
        if tabs is None or not tabs:
            line = line.strip(" ")
        if not line:
            yield number, None, ""
        elif not line.strip():
            raise CorpusError(
                f"{path}, line {number}: holds nothing but spaces or tabs in a file whose columns are set "
                "apart by tabs; empty the line to end the sentence there, or delete it."
            )
        elif "\0" in line:
            raise CorpusError(f"{path}, line {number}: holds a zero byte; save the file as UTF-8 text.")
        elif tabs:
            yield number, tuple(field.strip(" ") for field in line.split("\t")), "tabs"
        else:
            yield number, tuple(_SPACES.split(line)), "spaces"


def _expectation(expected: int, columns: Sequence[str] | None, decided_at: int) -> str:
    if columns:
        return f"{expected} columns ({', '.join(columns)})"
    return f"{expected} columns as on line {decided_at}"
