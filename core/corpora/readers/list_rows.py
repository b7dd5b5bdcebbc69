"""The rows of the reader of lists: what each column holds, and the sentence of a row.

What is wrong with a row is a ValueError: the reader adds the file and the place.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import NoneType
from typing import Any

from core.corpora.layout.column_names import IGNORED, TOKENS, is_text_column, tasks_of, word_rows
from core.corpora.layout.fields import Content, Field
from core.corpora.layout.no_label import is_blank, is_code
from core.corpora.layout.rules import beside_words
from core.corpora.readers.char_spans import tool_of
from core.corpora.readers.row_files import Record, is_list_of
from core.corpora.readers.text_rows import check_characters
from core.corpora.types import Sentence
from core.plain_text import shortened
from core.wording import plural

NULL = "null"
"""The text of a null."""
_WORDS = (TOKENS, "words")
_NAMES_SUFFIX = "_names"


@dataclass(frozen=True)
class ListColumns:
    """The columns of a file: of the words, of labels of words, and of possible labels of sentences.

    Each has the names of its numbers; each that is left out has an example.
    """

    words: str
    labels: Mapping[str, Sequence[str]]
    sentence_columns: Mapping[str, Sequence[str]]
    left_out: Mapping[str, str]
    checked: defaultdict[str, dict[str, str]] = field(
        default_factory=lambda: defaultdict(dict), compare=False
    )
    """By column, the label of each text that was checked before."""

    @cached_property
    def all(self) -> frozenset[str]:
        """All of them."""
        return frozenset([self.words, *self.labels, *self.sentence_columns, *self.left_out])

    def tasks(self) -> dict[str, str]:
        """The task of each column of labels."""
        return tasks_of([*self.labels, *self.sentence_columns])


def _words_column(record: Record) -> str | None:
    """The column of words; None where no column holds a list of them."""
    return next((name for name in _WORDS if is_list_of(record.get(name), str)), None)


def holds_words(rows: Sequence[Record]) -> bool:
    """Whether rows have a column of words: the first of them that has words or spans tells."""
    first = next((row for row in rows if _words_column(row) is not None or tool_of(row) is not None), None)
    return first is not None and _words_column(first) is not None


def _merged(rows: Sequence[Record]) -> Record:
    """The columns of these rows, each with its first value, in a row with words, that is not null.

    A list that the first row has not is no column: it is an error where it stands.
    """
    merged: Record = dict.fromkeys(rows[0])
    for record in [row for row in rows if any(map(row.get, _WORDS))] or rows:
        for column, value in record.items():
            is_column = column in merged or not isinstance(value, list) or _names_numbers(column, rows[0])
            if is_column and merged.get(column) is None:
                merged[column] = value
    return merged


def _is_of_columns(record: Record) -> bool:
    """Whether the only row of a file is the whole table: each value is a list, or has the numbers of rows."""
    return not {*_WORDS, "text"}.isdisjoint(record) and all(
        isinstance(value, list) or (isinstance(value, dict) and all(map(str.isdecimal, value)))
        for value in record.values()
    )


def columns_of(
    rows: Sequence[Record], names: Mapping[str, Sequence[str]], training: ListColumns | None
) -> ListColumns:
    """The roles of the columns by the first rows of a file. Names of numbers may be in the training file."""
    record = _merged(rows)
    words = _words_column(record)
    if words is None:
        raise ValueError(_no_words(rows, record))
    fields = {
        column: _field(column, value, [row.get(column) for row in rows], names.get(column))
        for column, value in record.items()
        if not _names_numbers(column, record)
    }
    word_labels, sentence_labels, _ = beside_words(list(fields.values()), fields[words], in_file=True)
    if training is not None:
        word_labels = [column for column in fields if column in {*training.labels, *word_labels}]
        sentence_labels = list(training.sentence_columns)
    labels = {
        column: _names_beside(column, record)
        or names.get(column)
        or (training.labels.get(column, ()) if training else ())
        for column in word_labels
    }
    sentence_columns = {
        column: names.get(column) or (training.sentence_columns.get(column, ()) if training else ())
        for column in sentence_labels
    }
    roles = {words, *labels, *sentence_columns}
    left_out = {column: json_text(record[column]) for column in fields if column not in roles}
    if training is not None:
        if not labels and record.keys().isdisjoint(sentence_columns):
            return ListColumns(words, {}, {}, left_out)  # of hidden gold
        _check_like(labels, record, training)
        for column in [column for column in labels if training.left_out.get(column) == NULL]:
            left_out[column] = json_text(record[column])  # as the reading report says
            del labels[column]
    elif not labels and not sentence_columns:
        raise ValueError(_no_labels(words, record))
    return ListColumns(words, labels, sentence_columns, left_out)


def _field(column: str, value: Any, seen: Sequence[Any], names: Sequence[str] | None) -> Field:
    """A column of these first rows; its first value that is not null tells its type."""
    if is_list_of(value, (str, int, NoneType)):
        return Field(column, True, "text", seen)
    content: Content = (
        "text" if isinstance(value, str) else "names" if names and type(value) is int else "other"
    )
    return Field(column, isinstance(value, list), content, seen, tuple(names or ()))


def _names_beside(column: str, record: Record) -> Sequence[str] | None:
    """The names of the numbers of a column, where another column has them."""
    names = record.get(f"{column}{_NAMES_SUFFIX}")
    if names is not None and not is_list_of(names, str):
        raise ValueError(f"{column}{_NAMES_SUFFIX} must be a list of names.")
    return names


def _no_words(rows: Sequence[Record], record: Record) -> str:
    """Why rows without a list of words are not read."""
    if len(rows) == 1 and _is_of_columns(record):
        return (
            "expected an object for each row, but found one of whole columns; write a list of rows, as "
            'to_json(orient="records") of pandas does.'
        )
    if problem := word_rows(list(record)):
        return problem
    hint = (
        " Texts are read from CSV, TSV or JSONL, or from the folder of a copy, as hub:FOLDER."
        if any(map(is_text_column, record))
        else ""
    )
    return f"expected a list of words in {' or '.join(_WORDS)}, but the columns are {_listed(record)}.{hint}"


def _no_labels(words: str, record: Record) -> str:
    """Why rows without labels are not read."""
    if nested := [column for column, value in record.items() if value and is_list_of(value, list)]:
        return (
            f"{nested[0]} holds a list of labels for each word, and one label is learned; write a column for "
            "each layer."
        )
    return (
        f"expected a list of labels beside {words}, such as ner_tags, but the columns are {_listed(record)}."
    )


def _listed(record: Record) -> str:
    """The names of the columns, with those that are null."""
    return shortened(", ".join(f"{column} (null)" * (record[column] is None) or column for column in record))


def _check_like(labels: Collection[str], record: Record, training: ListColumns) -> None:
    """Refuses columns of labels that are not those of training."""
    if missing := [column for column in training.labels if column not in labels]:
        raise ValueError(f"has no {missing[0]}, which the training file has.")
    more = [column for column in labels if column not in training.labels]
    if more := [column for column in more if training.left_out.get(column) != NULL]:
        raise ValueError(
            f"has a column {more[0]}, which the training file has not; begin its name with {IGNORED} to skip "
            "it."
        )


def json_text(value: Any) -> str:
    """A value of a column that is left out, as JSON writes it."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _names_numbers(column: str, record: Record) -> bool:
    """Whether a column has the names of another column's numbers."""
    return column.endswith(_NAMES_SUFFIX) and column.removesuffix(_NAMES_SUFFIX) in record


def sentence_of(
    record: Record, columns: ListColumns, tasks: Mapping[str, str], lacking: Counter[str]
) -> Sentence | None:
    """The sentence of a row; None where it has no words.

    `lacking` counts the rows with a word without a label, by task.
    """
    for column in record.keys() - columns.all:
        if isinstance(record[column], list) and not _names_numbers(column, record):
            raise ValueError(f"has also {shortened(column)}; every row needs the columns of the first.")
    words = record.get(columns.words)
    if not isinstance(words, list):
        raise ValueError(f"{columns.words} must be a list of words.")
    checked = columns.checked[columns.words]
    if _checked(words, checked) is None:
        if not is_list_of(words, str):
            raise ValueError(f"{columns.words} must be a list of words.")
        for number, word in enumerate(words, start=1):
            check_characters(columns.words, word)
            if not word.strip():
                raise ValueError(f"word {number} of {columns.words} is empty.")
            checked[word] = word
    labels = {}
    for column, names in columns.labels.items():
        if column not in record:
            raise ValueError(f"has no {column}; write null where a row has no labels of it.")
        if (values := record[column]) is None:
            continue
        if not isinstance(values, list) or len(values) != len(words):
            given = plural(len(values), "label") if isinstance(values, list) else "no list"
            raise ValueError(
                f"{column} has {given}, and {columns.words} {plural(len(words), 'word')}; both need one for "
                f"each word. A column whose name begins with {IGNORED} is skipped."
            )
        checked_labels = columns.checked[column]
        if (row := _checked(values, checked_labels)) is None:
            labels_of_row = [_label(column, value, names, checked_labels) for value in values]
            row = tuple(label for label in labels_of_row if label is not None)
        if len(row) < len(values):
            lacking[tasks[column]] += 1
        else:
            labels[tasks[column]] = row
    for column, names in columns.sentence_columns.items():
        if not is_blank(value := record.get(column)):
            # Whether it is a label shows when all values are known: a text in a column like this is no error.
            label = _label(column, value, names, {}) if names else str(value)
            labels |= {} if label is None else {tasks[column]: (label,)}
    whole = tuple(tasks[column] for column in columns.sentence_columns)
    return Sentence(tuple(words), labels, text_tasks=whole) if words else None


def _checked(values: Sequence[Any], checked: Mapping[str, str]) -> tuple[str, ...] | None:
    """The values, where each is a text that was checked before; else None. Fast, since it is of each row."""
    try:
        return tuple(map(checked.__getitem__, values))
    except (KeyError, TypeError):  # a new text, or no text: a list has no hash
        return None


def _label(column: str, value: Any, names: Sequence[str], checked: dict[str, str]) -> str | None:
    """The label as it is written, or the name of its number; None where the value stands for no label.

    `checked` has the labels checked before.
    """
    if type(value) is str and value in checked:
        return checked[value]
    if value is None or is_code(value):
        return None
    if type(value) is int:
        if not names:
            raise ValueError(
                f"{column} holds numbers, and their names are not in the file. Write the names as labels, or "
                f'add the list of names, in JSON as "{column}{_NAMES_SUFFIX}" to the first row, in Parquet '
                "and Arrow as a ClassLabel of datasets, or in a labels.json beside the file. A column whose "
                "name begins with _ is skipped."
            )
        if not 0 <= value < len(names):
            raise ValueError(f"{column} has the number {value}, and {plural(len(names), 'name')}.")
        value = names[value]
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{column} has a label that is empty or no text: {shortened(json.dumps(value))}.")
    if value not in checked:
        check_characters(column, value)
        checked[value] = value
    return checked[value]
