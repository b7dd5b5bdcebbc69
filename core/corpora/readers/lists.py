"""The reader of JSON, JSONL, Parquet, Arrow and CSV files with a sentence a row.

A row has its words in `tokens` or `words`, and in a column for each task a list of labels, as long as that of
the words, or one label of the whole sentence. Labels are strings, or numbers where the file has their names.
Errors name the file and the row.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Any

from core.corpora.assembly import assemble
from core.corpora.layout.cells import Cells, cells_of
from core.corpora.layout.gold import untrained_doubt
from core.corpora.layout.no_label import is_blank, is_code
from core.corpora.layout.sentence_labels import are_labels
from core.corpora.layout.word_columns import (
    TASK_SUFFIX,
    are_flags_or_blank,
    is_named_other,
    is_skipped,
    tasks_of,
)
from core.corpora.layout.word_rows import word_rows
from core.corpora.readers.char_spans import (
    Counted,
    fields_beside,
    sentences_of,
    span_notes,
    tool_of,
    tool_of_rows,
)
from core.corpora.readers.lines import IGNORED, TOKENS, Source
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
from core.corpora.readers.text_files import (
    CSV,
    TSV,
    check_characters,
    errors_located,
    is_text_column,
    text_columns,
)
from core.corpora.readers.webanno import is_webanno
from core.corpora.reading import ColumnReading, values_shown
from core.corpora.types import Corpus, Scheme, Sentence, Sentences, Split
from core.errors import CorpusError
from core.plain_text import shortened
from core.tasks.packed import Packed
from core.wording import all_of, plural

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
    def known(self) -> frozenset[str]:
        """All of them."""
        return frozenset([self.words, *self.labels, *self.sentence_columns, *self.left_out])

    def tasks(self) -> dict[str, str]:
        """The task of each column of labels."""
        return tasks_of([*self.labels, *self.sentence_columns])


@dataclass(frozen=True)
class _Rows:
    """The sentences of a file, with their places.

    `lacking` has how many rows are not annotated for a task, since a word has no label; `beside` the fields
    beside spans, with an example.
    """

    layout: str
    columns: _Columns
    sentences: Sentences
    places: Sequence[str]
    wordless: int
    lacking: Counter[str]
    counts: Counter[Counted]
    beside: Mapping[str, Any]


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
    notes = list(notes)
    read: dict[Split, _Rows] = {}
    training: _Columns | None = None
    cells = cells_in(files["train"])
    for split, file in files.items():
        read[split] = found = _read(file, training, cells)
        training = training or found.columns
        if found.wordless:
            notes.append(f"{file.name}: {plural(found.wordless, 'row')} without words left out.")
        for task, count in found.lacking.items():
            rows = plural(count, "row")
            notes.append(f"{file.name}: {rows} with a word without a label not annotated for {task}.")
        if unannotated := found.counts["not annotated"]:
            rows = plural(unannotated, "row")
            notes.append(f"{file.name}: {rows} that nobody annotated or accepted left out.")
    assert training is not None
    tasks = training.tasks()
    train = read["train"].sentences
    schemes: dict[str, Scheme] = {tasks[column]: "sentence" for column in training.sentence_columns}
    labelled = {
        column: [split for split, rows in read.items() if rows.columns.left_out.get(column, _NULL) != _NULL]
        for column, example in training.left_out.items()
        if example == _NULL
    }
    doubts = {column: (untrained_doubt(splits),) for column, splits in labelled.items() if splits}
    skipped = {
        task: values_shown(train.column(task).rows.counts())
        for column, task in tasks.items()
        if not _holds_labels(column, train.column(task).rows, schemes.get(task))
    }
    beside = {column: _shown(value) for column, value in read["train"].beside.items()}
    examples = {**training.left_out, **beside}
    left_out = {column: values_shown([example]) for column, example in examples.items()} | skipped
    if left_out:
        notes.append(f"Columns left out: {', '.join(column or 'one without a name' for column in left_out)}.")
    splits = {split: rows.sentences.without(skipped) for split, rows in read.items()}

    def location(split: Split, sentence: int, word: int) -> str:
        return f"{files[split]}, {read[split].places[sentence]}, word {word + 1}"

    schemes = {task: scheme for task, scheme in schemes.items() if task not in skipped}
    names = {split: file.name for split, file in files.items()}
    corpus = assemble(name, splits, notes, tag_lists, schemes, location, names)
    (reading,) = corpus.readings
    words = values_shown(word for sentence in corpus.train[:50] for word in sentence.tokens)
    conversion_notes = span_notes({split: rows.counts for split, rows in read.items()})
    layout = all_of(list(dict.fromkeys(rows.layout for rows in read.values())))
    is_guess = layout.endswith(_SPANS)  # the name of the task
    columns = (
        ColumnReading(TOKENS, "words", examples=words),
        *(
            replace(
                each,
                guessed=is_guess or each.name in schemes,
                notes=each.notes if each.name in schemes else (*each.notes, *conversion_notes),
            )
            for each in reading.columns
        ),
        *(
            ColumnReading(column, "skipped", examples=examples, doubts=doubts.get(column, ()))
            for column, examples in left_out.items()
        ),
    )
    reading = replace(reading, columns=columns, layout=layout)
    return replace(corpus, readings=(reading,), notes=reading.all_notes)


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
                found = list(sentences_of(record, counts))
            beside.update({**fields_beside(record), **beside})
            yield from ((location, sentence) for sentence in found)

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
    told = next((row for row in rows if _words_column(row) is not None or tool_of(row) is not None), None)
    return told is not None and _words_column(told) is not None


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


def _labels_words(column: str, words: str, rows: Sequence[Record]) -> bool:
    """Whether the lists of a column are as long as those of the words, in the first or most of these rows."""
    pairs = [(record.get(column), record[words]) for record in rows if record.get(words)]
    fits = [len(values) == len(row) for values, row in pairs if isinstance(values, list)]
    return all(fits[:1]) or 2 * sum(fits) >= len(fits)


def _columns(
    rows: Sequence[Record], names: Mapping[str, Sequence[str]], training: _Columns | None
) -> _Columns:
    """The roles of the columns by the first rows of a file. Names of numbers may be in the training file."""
    record = _merged(rows)
    words = _words_column(record)
    shown = shortened(", ".join(f"{column} (null)" * (record[column] is None) or column for column in record))
    if words is None:
        if len(rows) == 1 and _is_of_columns(record):
            raise ValueError(
                "expected an object for each row, but found one of whole columns; write a list of rows, as "
                'to_json(orient="records") of pandas does.'
            )
        if problem := word_rows(list(record)):
            raise ValueError(problem)
        hint = (
            " Texts are read from CSV, TSV or JSONL, or from the folder of a copy, as hub:FOLDER."
            if any(map(is_text_column, record))
            else ""
        )
        raise ValueError(
            f"expected a list of words in {' or '.join(_WORDS)}, but the columns are {shown}.{hint}"
        )
    known = {} if training is None else training.labels
    labels: dict[str, Sequence[str]] = {}
    sentence_columns = {} if training is None else dict(training.sentence_columns)
    left_out = {}
    for column, value in record.items():
        if column == words or _names_numbers(column, record):
            continue
        # A list of another length is of something else, unless its name is surely that of labels.
        may_be_labels = is_list_of(value, (str, int, NoneType)) and not are_flags_or_blank(
            chain.from_iterable(each for row in rows if isinstance(each := row.get(column), list))
        )
        is_list = may_be_labels and (column.endswith(TASK_SUFFIX) or _labels_words(column, words, rows))
        if column in known or (is_list and not is_named_other(column)):
            beside = record.get(f"{column}{_NAMES_SUFFIX}")
            if beside is not None and not is_list_of(beside, str):
                raise ValueError(f"{column}{_NAMES_SUFFIX} must be a list of names.")
            labels[column] = beside or names.get(column) or known.get(column, ())
        elif column in sentence_columns or (
            training is None and not is_named_other(column) and _may_label_sentences(column, value, names)
        ):
            sentence_columns[column] = names.get(column) or sentence_columns.get(column, ())
        else:
            left_out[column] = _shown(value)
    if not labels and training is not None and record.keys().isdisjoint(sentence_columns):
        return _Columns(words, {}, {}, left_out)  # of hidden gold
    nested = [column for column, value in record.items() if value and is_list_of(value, list)]
    if nested and not labels and not sentence_columns:
        raise ValueError(
            f"{nested[0]} holds a list of labels for each word, and one label is learned; write a column for "
            "each layer."
        )
    if not labels and not sentence_columns:
        raise ValueError(
            f"expected a list of labels beside {words}, such as ner_tags, but the columns are {shown}."
        )
    if missing := [column for column in known if column not in labels]:
        raise ValueError(f"has no {missing[0]}, which the training file has.")
    for column in [column for column in labels if training and training.left_out.get(column) == _NULL]:
        left_out[column] = _shown(record[column])  # as the reading says
        del labels[column]
    if training is not None and (more := [column for column in labels if column not in known]):
        raise ValueError(
            f"has a column {more[0]}, which the training file has not; begin its name with {IGNORED} to skip "
            "it."
        )
    return _Columns(words, labels, sentence_columns, left_out)


def _shown(value: Any) -> str:
    """A value of a column that is left out, as JSON writes it."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _may_label_sentences(column: str, value: Any, names: Mapping[str, Sequence[str]]) -> bool:
    """Whether the values of a column may be labels of sentences, by the first."""
    return (isinstance(value, str) and not is_text_column(column)) or (type(value) is int and column in names)


def _names_numbers(column: str, record: Record) -> bool:
    """Whether a column has the names of another column's numbers."""
    return column.endswith(_NAMES_SUFFIX) and column.removesuffix(_NAMES_SUFFIX) in record


def _sentence(
    record: Record, columns: _Columns, tasks: Mapping[str, str], lacking: Counter[str]
) -> Sentence | None:
    """The sentence of a row; None where it has no words.

    `lacking` counts the rows with a word without a label, by task.
    """
    for column in record.keys() - columns.known:
        if isinstance(record[column], list) and not _names_numbers(column, record):
            raise ValueError(f"has also {shortened(column)}; every row needs the columns of the first.")
    words = record.get(columns.words)
    if not isinstance(words, list):
        raise ValueError(f"{columns.words} must be a list of words.")
    known = columns.checked[columns.words]
    if _known(words, known) is None:
        if not is_list_of(words, str):
            raise ValueError(f"{columns.words} must be a list of words.")
        for number, word in enumerate(words, start=1):
            check_characters(columns.words, word)
            if not word.strip():
                raise ValueError(f"word {number} of {columns.words} is empty.")
            known[word] = word
    labels = {}
    for column, names in columns.labels.items():
        if column not in record:
            raise ValueError(f"has no {column}; write null where a row has no labels of it.")
        if (values := record[column]) is None:
            continue
        if not isinstance(values, list) or len(values) != len(words):
            found = plural(len(values), "label") if isinstance(values, list) else "no list"
            raise ValueError(
                f"{column} has {found}, and {columns.words} {plural(len(words), 'word')}; both need one for "
                f"each word. A column whose name begins with {IGNORED} is skipped."
            )
        known_labels = columns.checked[column]
        if (row := _known(values, known_labels)) is None:
            checked = [_label(column, value, names, known_labels) for value in values]
            row = tuple(label for label in checked if label is not None)
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


def _known(values: Sequence[Any], known: Mapping[str, str]) -> tuple[str, ...] | None:
    """The values, where each is a text that was checked before; else None. Fast, since it is of each row."""
    try:
        return tuple(map(known.__getitem__, values))
    except (KeyError, TypeError):  # a new text, or no text: a list has no hash
        return None


def _label(column: str, value: Any, names: Sequence[str], known: dict[str, str]) -> str | None:
    """The label as it is written, or the name of its number; None where the value stands for no label.

    `known` has the labels checked before.
    """
    if type(value) is str and value in known:
        return known[value]
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
    if value not in known:
        check_characters(column, value)
        known[value] = value
    return known[value]
