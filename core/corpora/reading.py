"""The reading report: the role of each column of a corpus, and the conversions and omissions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from core.plain_text import shortened
from core.tasks.kinds import KINDS
from core.wording import plural

ROLES: dict[str, str] = {
    "words": "words",
    "text": "text",
    **{kind.role: kind.role_title for kind in KINDS.values()},
    "skipped": "skipped",
}
"""The roles of a column as they are stored, each in the words of pages and terminal."""

FEATURE = "feats:"
"""The prefix of the names of tasks that are a feature of FEATS in CoNLL-U."""

EXAMPLES = 3
"""How many values of a column are shown."""
MANY = 20
"""More different values than this in a column of labels may be too many: titles, dates."""
_LONGEST_EXAMPLE = 40


@dataclass(frozen=True)
class ColumnReading:
    """The role that a column was given.

    name      of the task, `tokens`, or of a column that is skipped
    taken     its role, one of `ROLES`
    column    what the column itself is called, where it is a task by another name
    guessed   the name is a guess by what the column holds
    labels    how many different labels it has, as they are written; None where it has none
    spans     how many spans there are in all splits; None where it holds none
    examples  at most three values
    notes     what was converted, counted or left out, a sentence each
    doubts    what looks wrong, a sentence each
    """

    name: str
    taken: str
    guessed: bool = False
    labels: int | None = None
    spans: int | None = None
    examples: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    column: str = ""

    def __post_init__(self) -> None:
        if self.taken not in ROLES:  # as facts of another version may have it
            raise ValueError(f"'{self.taken}' is no role of a column; roles are {', '.join(ROLES)}.")

    @property
    def title(self) -> str:
        """`ner (column ner_tags)`, `tag (guessed)`: the name, as pages and terminal say it."""
        more = [f"column {self.column}"] * bool(self.column) + ["guessed"] * self.guessed
        return f"{self.name} ({', '.join(more)})" if more else self.name

    @property
    def taken_for(self) -> str:
        """`spans of words: 12 of 3 labels`, as pages and terminal say it."""
        counts = [] if self.spans is None else [plural(self.spans, "span")]
        counts += [] if self.labels is None else [plural(self.labels, "label")]
        return ": ".join(filter(None, (ROLES[self.taken], ", ".join(counts))))


@dataclass(frozen=True)
class Reading:
    """The reading report of the files of one corpus.

    files    by split, the name of its file; empty where there are none, as on the Hub
    layout   how they are laid out: `CoNLL columns separated by tabs`
    columns  from left to right
    notes    what was left out of the files, a sentence each
    revision of a dataset, the commit that was read, or a hash of the files of a copy
    """

    corpus: str
    files: Mapping[str, str]
    layout: str
    columns: tuple[ColumnReading, ...]
    notes: tuple[str, ...] = ()
    revision: str = ""

    @property
    def title(self) -> str:
        """`my-corpus, CoNLL columns separated by tabs: train.conll (train), test.conll (test)`."""
        files = ", ".join(f"{file} ({split})" for split, file in self.files.items())
        return ": ".join(filter(None, (", ".join(filter(None, (self.corpus, self.layout))), files)))

    @property
    def all_notes(self) -> tuple[str, ...]:
        """Notes on omissions, conversions and suspicious content, with the names of the columns."""
        return (*self.notes, *chain.from_iterable(map(column_notes, self.columns)))


def column_notes(column: ColumnReading) -> list[str]:
    """The notes and doubts on a column, each with its name."""
    return [f"{column.name}: {note}" for note in (*column.notes, *column.doubts)]


def reading_rows(reading: Reading) -> list[dict[str, str]]:
    """A row for each column, for a table: its name, its role, and examples."""
    return [
        {
            "Name": column.title,
            "Read as": column.taken_for,
            "Examples": ", ".join(column.examples),
        }
        for column in reading.columns
    ]


def values_shown(values: Iterable[str]) -> tuple[str, ...]:
    """The first three different values, shortened."""
    first = list(dict.fromkeys(value for value in values if value))[:EXAMPLES]
    return tuple(shortened(value, _LONGEST_EXAMPLE) for value in first)


def guessed(reading: Reading) -> Reading:
    """The same reading, where the names of columns are guesses."""
    return replace(reading, columns=tuple(replace(column, guessed=True) for column in reading.columns))
