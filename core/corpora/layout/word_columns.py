"""The content of each column of a CoNLL file: the words, the labels of a task, or nothing to read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from core.corpora.layout.unread import check_format
from core.corpora.readers.conll import Table
from core.corpora.readers.conllu import OTHER_COLUMNS
from core.corpora.readers.lines import (
    IGNORED,
    TOKENS,
    Source,
    is_document_number,
    is_sentence_number,
)
from core.corpora.readers.text_files import is_left_out
from core.errors import CorpusError
from core.tasks.packed import Packed
from core.tasks.schemes import NOT_ANNOTATED, Notation, notation

_CHUNK_TYPES = frozenset(["NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP"])
# A column with more kinds of values than this, and one for every few words, holds lemmas or the like.
_MOST_LABELS = 200
_WORDS_PER_LABEL = 10
_NOTHING = frozenset([*NOT_ANNOTATED, "-", "*", "-X-"])
# What stands for the words that a column says nothing of: it holds no parts of speech.
_OUTSIDE = frozenset("Oo0-_*")
_TREE = re.compile(r"[^*]*\*\)*")
_DIGITS = re.compile(r"\d+")
_SHORT = re.compile(r"[0-9]{1,9}")
# So many different numbers that grow, each on some words, are no labels.
_NUMBERED_SENTENCES = 3
_NUMBER = re.compile(r"\d+([-:.,]\d+)*")
# What separates names on the command line and in the form, and control characters.
_NOT_IN_NAMES = re.compile("[,;\x00-\x20]+")


TASK_SUFFIX = "_tags"
"""The suffix of the names of columns of labels, as `datasets` has them."""


@dataclass(frozen=True)
class ColumnProposal:
    """A name for each column, from left to right, and the first sentence's rows to check them by.

    A name that begins with `_` is a column to skip (lemmas). `guessed`: names are guesses by what the columns
    hold; else the file's header has them.
    """

    columns: tuple[str, ...]
    sample: tuple[tuple[str, ...], ...]
    guessed: bool


def propose(table: Table, source: Source) -> ColumnProposal:
    """The names of a table's columns, with the rows of its first sentence. Raises as `name_columns`."""
    names = name_columns(table, source)
    (first,) = table.first_sentences(1)
    return ColumnProposal(names, tuple(zip(*first, strict=True)), table.header is None)


def name_columns(table: Table, source: Source) -> tuple[str, ...]:
    """A name for each column, from left to right: the header's, else by its content. One is `tokens`.

    Raises CorpusError where no column holds labels.
    """
    if table.width < 2:
        check_format(source)
        raise CorpusError(
            f"{source}, line {table.starts[0]}: has one column; expected words and at least one column of "
            "labels."
        )
    columns = [table.column(index) for index in range(table.width)]
    values = [set(column.counts()) for column in columns]
    notations = [notation(column.counts()) for column in columns]
    names = [_guess_name(*column_values) for column_values in zip(columns, values, notations, strict=True)]
    words = _words(table.header, names, values, notations)
    names[words] = TOKENS
    if table.header is None:
        _check_sentences(table, words, source)
    else:
        names = [
            name if index == words else _header_name(header, name)
            for index, (header, name) in enumerate(zip(table.header, names, strict=True))
        ]
    names = [
        name if name not in names[:index] else f"{name}{names[:index].count(name) + 1}"
        for index, name in enumerate(names)
    ]
    if all(name == TOKENS or name.startswith(IGNORED) for name in names):
        raise CorpusError(
            f"{source}: no column holds labels ({', '.join(names)}); name the columns from left to right."
        )
    return tuple(names)


def _check_sentences(table: Table, words: int, source: Source) -> None:
    """Raises CorpusError where no blank line ends one, and a column before the words seems to number them."""
    for index in range(words if len(table.starts) == 1 else 0):
        (values,) = table.column(index)
        if len(set(values)) < _NUMBERED_SENTENCES or not all(map(_SHORT.fullmatch, values)):
            continue
        numbers = list(map(int, values))
        if len(set(numbers)) < len(numbers) and numbers == sorted(numbers):
            raise CorpusError(
                f"{source}, line {table.starts[0]}: column {index + 1} seems to number sentences, and no "
                "blank line ends one. Put a blank line after each sentence, or name the columns in the first "
                "line, this one sentence_id."
            )


def _words(
    header: Sequence[str] | None,
    names: Sequence[str],
    values: Sequence[Set[str]],
    notations: Sequence[Notation | None],
) -> int:
    """The place of the column of words: the header's, else the one with the most different values."""
    if header is not None:
        return header.index(TOKENS)
    kinds = [
        len(column_values)
        * (name not in ("_id", "_empty", "_parse") and (found is None or found.is_bare))
        * (not all(map(_NUMBER.fullmatch, column_values)))
        for column_values, name, found in zip(values, names, notations, strict=True)
    ]
    return kinds.index(max(kinds))


def _guess_name(column: Packed, values: Set[str], found: Notation | None) -> str:
    """The name of a column of labels; it begins with `_` where the column holds none."""
    if found is not None:
        types = {label[2:] for label in found.canonical(column).counts() if label != "O"}
        return "chunk" if len(types & _CHUNK_TYPES) * 2 >= len(types) else "ner"
    if values == {"O"}:
        return "ner"
    if values <= _NOTHING:
        return "_empty"
    if is_numbering(column):
        return "_id"
    if any(value.startswith("(") for value in values) and all(map(_TREE.fullmatch, values)):
        return "_parse"
    if len(values) > max(_MOST_LABELS, len(column.numbers) / _WORDS_PER_LABEL):
        return "_other"
    is_of_sentences = all(len(set(row)) == 1 for row in column) and any(len(row) > 1 for row in column)
    return "labels" if values & _OUTSIDE or is_of_sentences else "pos"


def is_skipped(column: Packed) -> bool:
    """Whether a column, given sentence by sentence, holds no labels but numbers of words or lemmas."""
    counts = column.counts()
    return _guess_name(column, set(counts), notation(counts)).startswith(IGNORED)


def are_flags_or_blank(values: Iterable[Any]) -> bool:
    """Whether values beside words are no labels: nothing but booleans, or nothing but blanks."""
    given = list(values)  # no set: a list among them has no hash
    return bool(given) and (
        all(isinstance(value, bool) for value in given)
        or all(value is None or (isinstance(value, str) and not value.strip()) for value in given)
    )


def is_empty(column: Packed) -> bool:
    """Whether a column holds nothing but marks for nothing, such as `_`."""
    return column.counts().keys() <= _NOTHING


def cleaned(name: str) -> str:
    """A column's name without the separators of names on the command line; may be empty."""
    return _NOT_IN_NAMES.sub("-", name).strip("-")


def is_named_other(column: str) -> bool:
    """Whether the name of a column says that it holds no labels: identifiers, lemmas, `_x`."""
    is_other = column.lower() in OTHER_COLUMNS or column.lower().removesuffix("s") in OTHER_COLUMNS
    return is_other or is_left_out(column) or column.startswith(IGNORED)


def tasks_of(columns: Sequence[str]) -> dict[str, str]:
    """The task of each column of labels: `ner` of `ner_tags`, where no two would be called the same."""
    short = {column: cleaned(column.removesuffix(TASK_SUFFIX)) or column for column in columns}
    uses = Counter(short.values())
    return {column: task if uses[task] == 1 else column for column, task in short.items()}


def _header_name(header: str, name: str) -> str:
    is_number = is_sentence_number(header) or is_document_number(header)
    header = cleaned(header)
    return f"{IGNORED}{header}" if is_number or name.startswith(IGNORED) else header or name


def is_numbering(column: Packed) -> bool:
    """Whether the values number words, sentences or characters.

    In each sentence they grow, or in each they stay the same; where every sentence has one word, they are
    different numbers.
    """
    if not (column.lengths > 1).any():
        values = column.counts()
        return 1 < len(values) == len(column.numbers) and all(map(_NUMBER.fullmatch, values))
    grows = stays = True
    for row in column:
        if len(row) < 2:
            continue
        shapes = {_DIGITS.sub("#", value) for value in row}
        if len(shapes) > 1 or "#" not in next(iter(shapes)):
            return False
        numbers = [tuple(map(int, _DIGITS.findall(value))) for value in row]
        grows &= all(before < after for before, after in pairwise(numbers))
        stays &= len(set(numbers)) == 1
    return grows or stays


def check_names(columns: Sequence[str], tasks: Sequence[str] | None = None) -> None:
    """Raises CorpusError unless one column is named `tokens` and the names are unique.

    Where `tasks` are given, each other name must be one of them. Names of skipped columns are free.
    """
    if TOKENS not in columns:
        raise CorpusError(f"One of the columns must be named '{TOKENS}'; they are {', '.join(columns)}.")
    for name in columns:
        if name.startswith(IGNORED):
            continue
        if tasks is not None and name not in (TOKENS, *tasks):
            raise CorpusError(
                f"There is no task '{name}' here; name a column {', '.join((TOKENS, *tasks))}, or begin its "
                f"name with '{IGNORED}' to skip it."
            )
        if columns.count(name) > 1:
            raise CorpusError(f"Two columns are named '{name}'; give each a name of its own.")
