"""The names of the columns of a CoNLL file, and of the comments that label its sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from core.corpora.layout import contents
from core.corpora.layout.column_names import IGNORED, TOKENS
from core.corpora.layout.contents import are_labels
from core.corpora.readers.conll import Table
from core.corpora.readers.lines import Source
from core.corpora.readers.unread import check_format
from core.errors import CorpusError

_SHORT = re.compile(r"[0-9]{1,9}")
# So many different numbers that grow, each on some words, are no labels.
_NUMBERED_SENTENCES = 3
_NEARLY_ALL = 0.9


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
    try:
        names = contents.name_columns(table.header, [table.column(index) for index in range(table.width)])
    except ValueError as error:
        raise CorpusError(f"{source}: {error}") from None
    if table.header is None:
        _check_sentences(table, names.index(TOKENS), source)
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


def labels_of_comments(table: Table, columns: Sequence[str]) -> tuple[str, ...]:
    """The names of the comments that label nearly all sentences of a table and are no column's name.

    Not each comment is a label: `# sent_id = 1` and `# text = …` are none (`are_labels`). What is taken for
    one stands in the reading report, and a run chooses its tasks.
    """
    values: dict[str, list[str]] = {}
    for comment in table.comments:
        if comment.label is not None:
            name, value = comment.label
            values.setdefault(name, []).append(value)
    return tuple(
        name
        for name, labels in values.items()
        if len(labels) >= _NEARLY_ALL * len(table.starts)
        if name not in columns and are_labels(name, Counter(labels))
    )
