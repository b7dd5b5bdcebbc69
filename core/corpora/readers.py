"""The strict readers of text files: numbered lines, CoNLL columns, CoNLL-U. Mistakes are told by line.

CoNLL columns: a word a line, its labels in columns beside it, an empty line after a sentence. Columns stand
apart by tabs or by spaces; the first line that holds a word decides for the whole file. Where they stand
apart by spaces, a line of spaces is an empty line; where by tabs, it is a mistake and is refused.

CoNLL-U (https://universaldependencies.org/format.html): FORM becomes the words, UPOS and XPOS the tasks.
Multiword ranges (1-2) and empty nodes (1.1) are not words and are left out; so are comments. `_` says that a
word has no label: a sentence of nothing else is not annotated for the task, and in a sentence with other
labels `_` is a label like them.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import methodcaller
from pathlib import Path
from sys import intern

from core.corpora.types import Sentence
from core.errors import CorpusError
from core.wording import plural

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


TOKENS = "tokens"
"""The name of the column of words."""
IGNORED = "_"
"""Columns whose name begins with this are skipped."""

_DOCSTART = "-DOCSTART-"
_MOST_COLUMNS = 200
_LEAST_ROWS, _USUAL = 3, 0.9
_SPACES = re.compile(" +")


@dataclass(frozen=True)
class Table:
    """The columns of a file from left to right, and its sentences: the k-th has the rows from bounds[k] on,
    up to bounds[k+1]. `docstarts` document marks were left out.
    """

    columns: tuple[Sequence[str], ...]
    bounds: Sequence[int]
    docstarts: int

    def column(self, place: int) -> list[tuple[str, ...]]:
        """One column, sentence by sentence."""
        column = self.columns[place]
        return [tuple(column[first:after]) for first, after in pairwise(self.bounds)]


def read_columns(path: Path, columns: Sequence[str]) -> tuple[tuple[Sentence, ...], tuple[str, ...]]:
    """The sentences of a file whose columns have these names, and notes on what was left out.

    Raises CorpusError with file, line and what was expected.
    """
    return named(read_table(path, columns), columns, path.name)


def named(table: Table, columns: Sequence[str], file: str) -> tuple[tuple[Sentence, ...], tuple[str, ...]]:
    """The sentences of a table whose columns have these names, and notes on what was left out."""
    tasks = [name for name in columns if name != TOKENS and not name.startswith(IGNORED)]
    labels = [table.column(columns.index(name)) for name in tasks]
    sentences = tuple(
        Sentence(words, dict(zip(tasks, own, strict=True)))
        for words, *own in zip(table.column(columns.index(TOKENS)), *labels, strict=True)
    )
    notes = (f"{file}: {plural(table.docstarts, '-DOCSTART- line')} left out.",) if table.docstarts else ()
    return sentences, notes


def read_table(path: Path, columns: Sequence[str] | None = None) -> Table:
    """The columns of a file, without names. `columns`, where given, says how many fields each row must have.

    The file is taken apart as a whole; line by line only to say what is wrong with it.
    Raises CorpusError with file, line and what was expected.
    """
    lines = read_lines(path)
    separator = _separator(lines)
    rows: list[str] = []
    bounds = [0]
    docstarts = 0
    for line in lines:
        if line and not (_DOCSTART in line and _is_docstart(line, separator)):
            rows.append(line)
            continue
        docstarts += bool(line)
        if len(rows) > bounds[-1]:
            bounds.append(len(rows))
    if not rows:
        raise CorpusError(f"{path} holds no sentence; it must hold at least one.")
    if len(rows) > bounds[-1]:
        bounds.append(len(rows))
    width = len(columns) if columns else len(_fields(rows[0], separator))
    fields = _all_fields(rows, separator, width)
    if fields is None:
        raise CorpusError(f"{path}, line {next(_problems(lines, separator, columns))}")
    return Table(tuple(fields[place::width] for place in range(width)), bounds, docstarts)


def usual_rows(path: Path) -> Table | None:
    """The rows of a file that have as many columns as nearly all of its rows have, as one long sentence.

    None where rows differ in width, as the lines of a text do, or have one column. A file with a few
    mistakes still counts: this tells whether it is a table, `read_table` what is wrong with it.
    """
    lines = read_lines(path)
    separator = _separator(lines)
    rows = [_fields(line, separator) for line in lines if line.strip()]
    rows = [row for row in rows if row and row[0] != _DOCSTART]
    width, count = Counter(map(len, rows)).most_common(1)[0] if rows else (0, 0)
    if not 2 <= width <= _MOST_COLUMNS or count < max(_LEAST_ROWS, _USUAL * len(rows)):
        return None
    usual = [row for row in rows if len(row) == width]
    return Table(tuple(list(column) for column in zip(*usual, strict=True)), (0, count), 0)


def _separator(lines: list[str]) -> str:
    """What separates the columns of these lines. Takes away the spaces around lines that mean nothing."""
    first = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    separator = "\t" if first < len(lines) and "\t" in lines[first] else " "
    end = first if separator == "\t" else len(lines)
    lines[:end] = [line.strip(" ") for line in lines[:end]]
    return separator


def _is_docstart(line: str, separator: str) -> bool:
    """Whether a line is left out; one with a zero byte is not, so that it is told of."""
    return _fields(line, separator)[0] == _DOCSTART and "\0" not in line


def _fields(line: str, separator: str) -> list[str]:
    if separator == "\t":
        return [field.strip(" ") for field in line.split("\t")]
    return [field for field in line.split(" ") if field]


def _all_fields(rows: Sequence[str], separator: str, width: int) -> list[str] | None:
    """The fields of all rows, one after the other; None where a row has not so many, or one with nothing."""
    text = "\n".join(rows)
    if separator == " " and "  " in text:
        text = _SPACES.sub(" ", text)
        rows = text.split("\n")
    fields = text.replace("\n", separator).split(separator)
    if separator == "\t" and " " in text:
        fields = [field.strip(" ") for field in fields]
    widths = set(map(methodcaller("count", separator), rows))
    is_regular = widths == {width - 1} and width <= _MOST_COLUMNS
    if not is_regular or "" in fields or "\0" in text or not all(map(str.strip, rows)):
        return None
    # The same words and labels come again and again: each is kept once.
    return list(map(intern, fields))


def _problems(lines: Sequence[str], separator: str, columns: Sequence[str] | None) -> Iterator[str]:
    """What is wrong with a file's lines, from the first on, each with its number."""
    name = "tabs" if separator == "\t" else "spaces"
    expected, expectation = (len(columns), f"({', '.join(columns)})") if columns else (0, "")
    for number, line in enumerate(lines, start=1):
        if line and not line.strip():
            yield (
                f"{number}: holds nothing but spaces or tabs in a file whose columns are set apart by tabs; "
                "empty the line to end the sentence there, or delete it."
            )
        if "\0" in line:
            yield f"{number}: holds a zero byte; save the file as UTF-8 text."
        fields = _fields(line, separator)
        if not line or fields[0] == _DOCSTART:
            continue
        if not expected:
            expected, expectation = len(fields), f"as on line {number}"
        if columns is None and expected > _MOST_COLUMNS:
            yield f"{number}: has {expected:,} columns and the most is {_MOST_COLUMNS}."
        if len(fields) != expected:
            yield (
                f"{number}: expected {expected} columns {expectation} set apart by {name}, but found "
                f"{len(fields)}."
            )
        if not all(fields):
            yield f"{number}: column {fields.index('') + 1} is empty."


CONLLU_TASKS = {"upos": 3, "xpos": 4}
"""The tasks by name, with the number of their column, counted from 0."""

OTHER_COLUMNS = ("lemma", "feats", "head", "deprel", "deps", "misc")
"""The columns that are no tasks yet."""

ONLY_TASKS = (
    f"CoNLL-U offers the tasks {' and '.join(CONLLU_TASKS)} alone, not yet {', '.join(OTHER_COLUMNS)}. "
    "To learn such a column, write the words and it as CoNLL columns (.conll)."
)

_WIDTH = 10
_NO_LABEL = "_"
_NOT_A_WORD = re.compile(r"\d+-\d+|\d+\.\d+")


def read_conllu(path: Path) -> tuple[tuple[Sentence, ...], tuple[str, ...]]:
    """The sentences of a CoNLL-U file, and notes on what was left out.

    Raises CorpusError with file, line and what was expected.
    """
    sentences: list[Sentence] = []
    rows: list[list[str]] = []
    left_out = 0
    for number, line in enumerate([*read_lines(path), ""], start=1):
        if not line:
            if rows:
                sentences.append(_sentence(rows))
                rows = []
            continue
        if line.startswith("#"):
            continue
        fields = _checked(path, number, line)
        if _NOT_A_WORD.fullmatch(fields[0]):
            left_out += 1
            continue
        if fields[0] != str(len(rows) + 1):
            raise CorpusError(
                f"{path}, line {number}: expected word number {len(rows) + 1} in the first column, but found "
                f"'{fields[0]}'; sentences end with an empty line."
            )
        rows.append(fields)
    if not sentences:
        raise CorpusError(f"{path} holds no sentence; it must hold at least one.")
    return tuple(sentences), _notes(path, sentences, left_out)


def _checked(path: Path, number: int, line: str) -> list[str]:
    if not line.strip():
        raise CorpusError(
            f"{path}, line {number}: holds nothing but spaces or tabs; empty the line to end the sentence "
            "there, or delete it."
        )
    fields = line.split("\t")
    if len(fields) != _WIDTH:
        raise CorpusError(
            f"{path}, line {number}: expected the 10 columns of CoNLL-U set apart by tabs, but found "
            f"{len(fields)}."
        )
    if not all(field.strip() for field in fields):
        place = next(place for place, field in enumerate(fields, start=1) if not field.strip())
        raise CorpusError(f"{path}, line {number}: column {place} is empty; CoNLL-U writes '_' for no value.")
    return fields


def _sentence(rows: list[list[str]]) -> Sentence:
    labels = {task: tuple(intern(row[place]) for row in rows) for task, place in CONLLU_TASKS.items()}
    return Sentence(
        tuple(row[1] for row in rows),
        {task: column for task, column in labels.items() if set(column) != {_NO_LABEL}},
    )


def _notes(path: Path, sentences: list[Sentence], left_out: int) -> tuple[str, ...]:
    notes = []
    if left_out:
        notes.append(f"{path.name}: {plural(left_out, 'row')} of multiword ranges and empty nodes left out.")
    for task in CONLLU_TASKS:
        annotated = [sentence.labels[task] for sentence in sentences if task in sentence.labels]
        if not annotated:
            continue
        if len(annotated) < len(sentences):
            notes.append(
                f"{path.name}: {plural(len(sentences) - len(annotated), 'sentence')} without any {task}."
            )
        unlabelled = sum(column.count(_NO_LABEL) for column in annotated)
        if unlabelled:
            notes.append(
                f"{path.name}: {plural(unlabelled, 'word')} without {task} in sentences that have it; "
                f"'{_NO_LABEL}' is kept as their label."
            )
    return tuple(notes)
