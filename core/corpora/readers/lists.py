"""The reader of JSON, JSONL, Parquet, Arrow and CSV files with a sentence a row.

A row has its words in `tokens` or `words`, and in a column for each task a list of labels, as long as that of
the words, or one label of the whole sentence. Labels are strings, or numbers where the file has their names.
Errors name the file and the row.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Any

from core.corpora.assembly import assemble
from core.corpora.layout.cells import Cells, cells_of
from core.corpora.layout.column_names import (
    IGNORED,
    TOKENS,
    is_text_column,
    tasks_of,
    text_columns,
    word_rows,
)
from core.corpora.layout.contents import are_labels, is_skipped
from core.corpora.layout.fields import Content, Field, Layout
from core.corpora.layout.no_label import is_blank, is_code
from core.corpora.layout.report import reported
from core.corpora.layout.rules import beside_words
from core.corpora.readers.char_spans import (
    Counted,
    fields_beside,
    sentences_of,
    span_notes,
    tool_of,
    tool_of_rows,
)
from core.corpora.readers.lines import Source
from core.corpora.readers.row_files import (
    ARROW,
    JSON,
    JSONL,
    ROWS_SEEN,
    Record,
    Records,
    is_list_of,
    numbers_sentences,
    read_records,
    read_text_rows,
    rows_seen,
)
from core.corpora.readers.text_rows import CSV, TSV, check_characters, errors_located
from core.corpora.readers.webanno import is_webanno
from core.corpora.types import Corpus, Scheme, Sentence, Sentences, Split
from core.errors import CorpusError
from core.plain_text import shortened
from core.tasks.packed import Packed
from core.wording import all_of, plural

TITLE = "lists of words or spans"
ENDINGS = (JSON, *ARROW)
"""The endings of files that hold nothing but lists. CSV and JSONL may hold texts too."""

_SPANS = " spans"
_NULL = "null"
_WORDS = (TOKENS, "words")
_NAMES_SUFFIX = "_names"


@dataclass(frozen=True)
class _Columns:
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


@dataclass(frozen=True)
class _Rows:
    """The sentences of a file, with their places.

    title     how it is laid out
    places    the place of each sentence in the file
    wordless  how many rows have no words
    lacking   by task, how many rows are not annotated for it, since a word has no label
    counts    how many spans were changed or left out
    beside    the fields beside spans, with an example
    """

    title: str
    columns: _Columns
    sentences: Sentences
    places: Sequence[str]
    wordless: int
    lacking: Counter[str]
    counts: Counter[Counted]
    beside: Mapping[str, Any]

    def notes(self, file: str) -> Iterator[str]:
        """A sentence for each kind of row that was left out, in whole or for a task."""
        if self.wordless:
            yield f"{file}: {plural(self.wordless, 'row')} without words left out."
        for task, count in self.lacking.items():
            yield f"{file}: {plural(count, 'row')} with a word without a label not annotated for {task}."
        if unannotated := self.counts["not annotated"]:
            yield f"{file}: {plural(unannotated, 'row')} that nobody annotated or accepted left out."


def holds_lists(source: Source) -> bool:
    """Whether a file holds lists of words: by its ending, or of CSV, TSV and JSONL by its first rows."""
    ending = Path(source.name).suffix.lower()
    if (ending == CSV and numbers_sentences(source)) or (ending == TSV and is_webanno(source)):
        return True
    if ending not in (CSV, TSV, JSONL):
        return ending in ENDINGS
    rows = rows_seen(source)
    return _holds_words(rows) or tool_of_rows(rows) is not None or _cells(rows) is not None


def cells_in(source: Source) -> Cells | None:
    """What the cells of a file of texts hold, where its first rows are no lists themselves."""
    if Path(source.name).suffix.lower() not in (CSV, TSV, JSONL) or numbers_sentences(source):
        return None
    rows = rows_seen(source)
    return None if _holds_words(rows) or tool_of_rows(rows) is not None else _cells(rows)


def _cells(rows: Sequence[Record]) -> Cells | None:
    try:
        texts = text_columns(list(rows[0])) if rows else ()
    except ValueError:
        texts = ()
    return cells_of(rows, texts)


def read_lists(
    files: Mapping[Split, Source],
    name: str,
    tag_lists: Mapping[str, Sequence[str]] = MappingProxyType({}),
    notes: Sequence[str] = (),
) -> Corpus:
    """The corpus of these files, training first. Raises CorpusError with file, row and remedy."""
    cells = cells_in(files["train"])
    read: dict[Split, _Rows] = {}
    for split, file in files.items():
        read[split] = _read(file, read["train"].columns if read else None, cells)
    training = read["train"]
    layout = _layout(training)
    values = {column: [_shown(value)] for column, value in training.beside.items()}
    values = {column: [value] for column, value in training.columns.left_out.items()} | values
    skipped = {
        column: task for column, task in training.columns.tasks().items() if column not in layout.tasks
    }
    values |= {
        column: list(training.sentences.column(task).rows.counts()) for column, task in skipped.items()
    }
    notes = [*notes, *chain.from_iterable(rows.notes(files[split].name) for split, rows in read.items())]
    if left_out := [column or "one without a name" for column in layout.left_out]:
        notes.append(f"Columns left out: {', '.join(left_out)}.")

    def location(split: Split, sentence: int, word: int) -> str:
        return f"{files[split]}, {read[split].places[sentence]}, word {word + 1}"

    splits = {split: rows.sentences.without([*skipped.values()]) for split, rows in read.items()}
    names = {split: file.name for split, file in files.items()}
    corpus = assemble(name, splits, notes, tag_lists, layout.task_schemes, location, names)
    words = [word for sentence in corpus.train[:50] for word in sentence.tokens]
    conversions = span_notes({split: rows.counts for split, rows in read.items()})
    return reported(
        corpus,
        layout,
        all_of(list(dict.fromkeys(rows.title for rows in read.values()))),
        {TOKENS: words, **values},
        labelled=_labelled(read),
        notes=dict.fromkeys(training.columns.labels, conversions),
    )


def _layout(training: _Rows) -> Layout:
    """What each column is for, by all values of the training file."""
    columns, tasks = training.columns, training.columns.tasks()
    schemes: dict[str, Scheme | None] = {
        **dict.fromkeys(columns.labels),
        **dict.fromkeys(columns.sentence_columns, "sentence"),
    }
    labels = {column: training.sentences.column(task).rows for column, task in tasks.items()}
    kept = {
        column: scheme for column, scheme in schemes.items() if _holds_labels(column, labels[column], scheme)
    }
    left_out = [*columns.left_out, *training.beside, *(column for column in schemes if column not in kept)]
    # The name of a task of spans is a guess, and so is that a column labels sentences.
    guessed = [column for column, scheme in kept.items() if scheme or training.title.endswith(_SPANS)]
    return Layout(
        (TOKENS, *kept, *dict.fromkeys(left_out)),
        words=TOKENS,
        schemes=kept,
        tasks={column: tasks[column] for column in kept},
        left_out=dict.fromkeys(left_out, ""),
        guessed=frozenset(guessed),
    )


def _labelled(read: Mapping[Split, _Rows]) -> dict[str, list[Split]]:
    """By column that is null in training, the splits where it is not."""
    nulls = [column for column, value in read["train"].columns.left_out.items() if value == _NULL]
    return {
        column: [split for split, rows in read.items() if rows.columns.left_out.get(column, _NULL) != _NULL]
        for column in nulls
    }


def _holds_labels(column: str, labels: Packed, scheme: Scheme | None) -> bool:
    """Whether the content of a column is labels."""
    return are_labels(column, labels.counts()) if scheme == "sentence" else not is_skipped(labels)


def _read(source: Source, training: _Columns | None, cells: Cells | None) -> _Rows:
    """Reads the sentences of a file. Its columns must equal the training file's."""
    counts: Counter[Counted] = Counter()
    beside: dict[str, Any] = {}
    records = _records(source, cells, counts, beside)
    columns: _Columns | None = None
    places: list[str] = []
    lacking: Counter[str] = Counter()
    wordless = 0

    def sentences() -> Iterator[Sentence]:
        nonlocal columns, wordless
        first = list(islice(records.rows, ROWS_SEEN))
        for location, _ in first[:1]:
            with errors_located(source, location):
                columns = _columns([record for _, record in first], records.names, training)
        if columns is None:
            return
        tasks = columns.tasks()
        for location, record in chain(first, records.rows):
            with errors_located(source, location):
                sentence = _sentence(record, columns, tasks, lacking)
            if sentence is None:
                wordless += 1
                continue
            places.append(location)
            yield sentence

    read = Sentences.of(sentences())
    if columns is None or not read:
        raise CorpusError(f"{source} holds no sentence; it must hold at least one.")
    return _Rows(records.layout, columns, read, places, wordless, lacking, counts + records.counts, beside)


def _records(
    source: Source, cells: Cells | None, counts: Counter[Counted], beside: dict[str, Any]
) -> Records:
    """The rows of a file, where rows with spans of characters become rows of words.

    The changes to spans are added to `counts` as the rows are read, and to `beside` the fields beside them.
    """
    records = read_records(source) if cells is None else read_text_rows(source)
    first = list(islice(records.rows, ROWS_SEEN))
    rows: Iterator[tuple[str, Record]] = chain(first, records.rows)
    seen = [record for _, record in first]
    if cells is None and not _holds_words(seen) and tool_of_rows(seen) is None:
        cells = _cells(seen)
    if cells is not None:
        rows = _unpacked(source, rows, cells)
        first = list(islice(rows, ROWS_SEEN))
        rows = chain(first, rows)
        seen = [record for _, record in first]
    tool = None if _holds_words(seen) else tool_of_rows(seen)
    if tool is None:
        return replace(records, rows=rows)

    def sentences() -> Iterator[tuple[str, Record]]:
        for location, record in rows:
            with errors_located(source, location):
                sentences_here = list(sentences_of(record, counts))
            beside.update({**fields_beside(record), **beside})
            yield from ((location, sentence) for sentence in sentences_here)

    return Records(f"{tool}{_SPANS}", sentences())


def _unpacked(
    source: Source, rows: Iterable[tuple[str, Record]], cells: Cells
) -> Iterator[tuple[str, Record]]:
    """The rows with the lists that their cells hold."""
    for location, row in rows:
        with errors_located(source, location):
            record = cells.record(row)
        yield location, record


# What is wrong with a row is a ValueError from here on: `at` adds the file and the place.


def _words_column(record: Record) -> str | None:
    """The column of words; None where no column holds a list of them."""
    return next((name for name in _WORDS if is_list_of(record.get(name), str)), None)


def _holds_words(rows: Sequence[Record]) -> bool:
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


def _columns(
    rows: Sequence[Record], names: Mapping[str, Sequence[str]], training: _Columns | None
) -> _Columns:
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
    left_out = {column: _shown(record[column]) for column in fields if column not in roles}
    if training is not None:
        if not labels and record.keys().isdisjoint(sentence_columns):
            return _Columns(words, {}, {}, left_out)  # of hidden gold
        _check_like(labels, record, training)
        for column in [column for column in labels if training.left_out.get(column) == _NULL]:
            left_out[column] = _shown(record[column])  # as the reading report says
            del labels[column]
    elif not labels and not sentence_columns:
        raise ValueError(_no_labels(words, record))
    return _Columns(words, labels, sentence_columns, left_out)


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


def _check_like(labels: Collection[str], record: Record, training: _Columns) -> None:
    """Refuses columns of labels that are not those of training."""
    if missing := [column for column in training.labels if column not in labels]:
        raise ValueError(f"has no {missing[0]}, which the training file has.")
    more = [column for column in labels if column not in training.labels]
    if more := [column for column in more if training.left_out.get(column) != _NULL]:
        raise ValueError(
            f"has a column {more[0]}, which the training file has not; begin its name with {IGNORED} to skip "
            "it."
        )


def _shown(value: Any) -> str:
    """A value of a column that is left out, as JSON writes it."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _names_numbers(column: str, record: Record) -> bool:
    """Whether a column has the names of another column's numbers."""
    return column.endswith(_NAMES_SUFFIX) and column.removesuffix(_NAMES_SUFFIX) in record


def _sentence(
    record: Record, columns: _Columns, tasks: Mapping[str, str], lacking: Counter[str]
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
