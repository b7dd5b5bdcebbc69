"""The strict readers of text files: lines, CoNLL columns, CoNLL-U. Errors name the line.

CoNLL columns: a word a line, its labels in columns beside it, an empty line after a sentence. Columns stand
apart by tabs or by spaces; the first line that holds a word decides for the whole file. Where they stand
apart by spaces, a line of spaces is an empty line; where by tabs, it is a mistake and is refused.

CoNLL-U (https://universaldependencies.org/format.html): FORM becomes the words; UPOS, XPOS and DEPREL are
tasks, and so is each feature of FEATS (`feats:Number`). Multiword ranges (1-2) and empty nodes (1.1) are not
words and are left out; so are comments. `_` says that a word has no label: a sentence with nothing else in
the column of UPOS, XPOS or DEPREL, and a file with nothing else in FEATS, is not annotated for the tasks of
that column. Elsewhere `_` is a label like the others.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from sys import intern

from core.corpora.types import Sentence
from core.errors import CorpusError
from core.paths import opened
from core.wording import plural

MOST_BYTES = 2_000_000_000
MOST_LINES = 20_000_000
MOST_CHARACTERS = 100_000
"""The most a file may hold, in all and in a line: ten times the largest treebanks. More would fill the memory
of the page or the worker that reads it, and end it without a word."""

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
    """The content of a file. Raises CorpusError where it is missing, larger than `most`, or one that `opened`
    refuses.
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


def read_lines(source: Source) -> list[str]:
    """The lines of a file without their ends (LF or CRLF) and without a byte order mark.

    Raises CorpusError as `read_bytes` does, and where the file is empty, not UTF-8, or too long.
    """
    data = source.content if isinstance(source, GivenFile) else read_bytes(source)
    if data.startswith(_UTF16):
        raise CorpusError(f"{source}, line 1: is UTF-16, not UTF-8; save the file as UTF-8.")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise CorpusError(
            f"{source}, line {line}: byte 0x{data[error.start]:02x} at position {column} is not UTF-8; "
            "save the file as UTF-8."
        ) from None
    if not text.strip():
        raise CorpusError(f"{source} is empty; it must hold at least one line of text.")
    # Not str.splitlines: it also splits at characters that may stand inside a token (U+2028, U+0085).
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    if not lines[-1]:
        lines.pop()
    if len(lines) > MOST_LINES:
        raise CorpusError(f"{source} has {len(lines):,} lines and the most is {MOST_LINES:,}.")
    longest = max(map(len, lines))
    if longest > MOST_CHARACTERS:
        number = next(number for number, line in enumerate(lines, start=1) if len(line) > MOST_CHARACTERS)
        raise CorpusError(
            f"{source}, line {number}: has {len(lines[number - 1]):,} characters and the most is "
            f"{MOST_CHARACTERS:,}; is it the text that you mean?"
        )
    return lines


TOKENS = "tokens"
"""The name of the column of words."""
IGNORED = "_"
"""Columns whose name begins with this are skipped."""

DOCSTART = "-DOCSTART-"
_MOST_COLUMNS = 200
_METADATA = re.compile(r"#\s*\S+ = ")


@dataclass(frozen=True)
class Table:
    """The sentences of a file, each as its columns from left to right; what was left out: document marks and
    comments.
    """

    sentences: Sequence[Sequence[tuple[str, ...]]]
    docstarts: int
    comments: int = 0

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.sentences[0])

    def column(self, place: int) -> list[tuple[str, ...]]:
        """One column, sentence by sentence."""
        return [columns[place] for columns in self.sentences]


def named(table: Table, columns: Sequence[str], file: str) -> tuple[tuple[Sentence, ...], tuple[str, ...]]:
    """The sentences of a table whose columns have these names, and notes on what was left out."""
    tokens = columns.index(TOKENS)
    tasks = [
        (name, place)
        for place, name in enumerate(columns)
        if place != tokens and not name.startswith(IGNORED)
    ]
    sentences = tuple(
        Sentence(sentence[tokens], {name: sentence[place] for name, place in tasks})
        for sentence in table.sentences
    )
    left_out = {"-DOCSTART- line": table.docstarts, "comment": table.comments}
    notes = [f"{file}: {plural(count, what)} left out." for what, count in left_out.items() if count]
    return sentences, tuple(notes)


def read_table(source: Source, columns: Sequence[str] | None = None, *, comments: bool = False) -> Table:
    """The columns of a file, without names. `columns`, where given, says how many fields each row must have.

    With `comments`, lines such as `# text = …` before a sentence are left out. A sentence may begin with the
    word `#`: its line has as many fields as the others.

    Raises CorpusError with file, line and what was expected.
    """
    lines = read_lines(source)
    marks = ("#",) if comments else ()
    first = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith(marks)), 0)
    separator = "\t" if "\t" in lines[first] else " "
    # Spaces around a line mean nothing, but where tabs separate columns a line of spaces may be a word.
    end = first if separator == "\t" else len(lines)
    lines[:end] = [line.strip(" ") for line in lines[:end]]

    width, expectation = (len(columns), f"({', '.join(columns)})") if columns else (0, "")
    sentences: list[tuple[tuple[str, ...], ...]] = []
    rows: list[tuple[str, ...]] = []
    docstarts = left_out = 0
    # Lines come again and again: each is taken apart and checked once.
    known: dict[str, tuple[str, ...]] = {"": ()}
    for number, line in enumerate([*lines, ""], start=1):
        if not rows and line.startswith(marks) and (_METADATA.match(line) or len(line.split()) != width):
            left_out += 1
            continue
        fields = known.get(line)
        if fields is None:
            fields = tuple(intern(field.strip(" ")) for field in line.split(separator))
            fields = fields if separator == "\t" else tuple(filter(None, fields))
            if fields[:1] == (DOCSTART,):
                problem = _problem(line, fields[:1], 1, "", separator)
                fields = fields[:1]
            else:
                if not width:
                    width, expectation = len(fields), f"as on line {number}"
                problem = _problem(line, fields, width, expectation, separator)
            if problem is None and columns is None and width > _MOST_COLUMNS:
                problem = f"has {width:,} columns and the most is {_MOST_COLUMNS}."
            if problem is not None:
                raise CorpusError(f"{source}, line {number}: {problem}")
            known[line] = fields
        if fields and fields[0] != DOCSTART:
            rows.append(fields)
            continue
        docstarts += bool(fields)
        if rows:
            sentences.append(tuple(zip(*rows, strict=True)))
            rows = []
    if not sentences:
        raise CorpusError(f"{source} holds no sentence; it must hold at least one.")
    return Table(sentences, docstarts, left_out)


def _problem(line: str, fields: Sequence[str], width: int, expectation: str, separator: str) -> str | None:
    """What is wrong with a line that is not empty; None where nothing is."""
    if not line.strip():
        return (
            "holds nothing but spaces or tabs in a file whose columns are separated by tabs; "
            "empty the line to end the sentence there, or delete it."
        )
    if "\0" in line:
        return "holds a zero byte; save the file as UTF-8 text."
    if len(fields) != width:
        name = "tabs" if separator == "\t" else "spaces"
        return f"expected {width} columns {expectation} separated by {name}, but found {len(fields)}."
    return None if all(fields) else f"column {fields.index('') + 1} is empty."


CONLLU_TASKS = {"upos": 3, "xpos": 4, "deprel": 7}
"""The tasks that are a whole column, with its number, counted from 0."""

FEATURE = "feats:"
"""What the names of the tasks begin with that are a feature of FEATS."""

OTHER_COLUMNS = ("lemma", "feats", "head", "deps", "misc")
"""The columns that are no tasks themselves."""

ONLY_TASKS = (
    f"The tasks of CoNLL-U are {', '.join(CONLLU_TASKS)} and each feature, as {FEATURE}Number. To learn "
    "another column, write the words and it as CoNLL columns (.conll)."
)

CONLLU_WIDTH = 10
_FEATS = 5
_NO_LABEL = "_"
_NOT_A_WORD = re.compile(r"\d+-\d+|\d+\.\d+")


def read_conllu(
    source: Source, features: Sequence[str] | None = None
) -> tuple[tuple[Sentence, ...], tuple[str, ...]]:
    """The sentences of a CoNLL-U file, and notes on what was left out.

    `features` are the tasks to make of FEATS; None: all that the file has. Raises CorpusError with file, line
    and what was expected.
    """
    sentences: list[list[list[str]]] = []
    rows: list[list[str]] = []
    left_out = 0
    for number, line in enumerate([*read_lines(source), ""], start=1):
        if not line and rows:
            sentences.append(rows)
            rows = []
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        problem = _problem(line, [field.strip() for field in fields], CONLLU_WIDTH, "of CoNLL-U", "\t")
        is_word = not _NOT_A_WORD.fullmatch(fields[0])
        if problem is None and is_word and fields[0] != str(len(rows) + 1):
            problem = (
                f"expected word number {len(rows) + 1} in the first column, but found '{fields[0]}'; "
                "sentences end with an empty line."
            )
        if problem is not None:
            raise CorpusError(f"{source}, line {number}: {problem}")
        if is_word:
            rows.append(fields)
        left_out += not is_word
    if not sentences:
        raise CorpusError(f"{source} holds no sentence; it must hold at least one.")
    rows_left_out = plural(left_out, "row")
    notes = (f"{source.name}: {rows_left_out} of multiword ranges and empty nodes left out.",)
    values = {row[_FEATS]: _features(row[_FEATS]) for rows in sentences for row in rows}
    occurring = sorted({task for labels in values.values() for task in labels})
    features = (occurring if features is None else features) if occurring else ()
    return tuple(_sentence(rows, values, features) for rows in sentences), notes if left_out else ()


def _features(text: str) -> dict[str, str]:
    """The label of each task that a word's FEATS, `Number=Sing|Person=3`, give it."""
    pairs = [feature.partition("=") for feature in text.split("|") if "=" in feature]
    return {intern(FEATURE + name): intern(value) for name, _, value in pairs}


def _sentence(
    rows: Sequence[Sequence[str]], values: Mapping[str, Mapping[str, str]], features: Sequence[str]
) -> Sentence:
    columns = {task: tuple(intern(row[place]) for row in rows) for task, place in CONLLU_TASKS.items()}
    labels = {task: column for task, column in columns.items() if set(column) != {_NO_LABEL}}
    of_words = [values[row[_FEATS]] for row in rows]
    without = _unlabelled(len(rows))
    has = set().union(*of_words)
    labels |= {
        task: tuple(word.get(task, _NO_LABEL) for word in of_words) if task in has else without
        for task in features
    }
    return Sentence(tuple(row[1] for row in rows), labels)


@cache
def _unlabelled(words: int) -> tuple[str, ...]:
    """The column of a feature that no word of a sentence has: one for all sentences of that length."""
    return (_NO_LABEL,) * words
