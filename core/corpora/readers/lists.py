"""The reader of JSON, JSONL, Parquet, Arrow and CSV files with a sentence a row.

A row has its words in `tokens` or `words`, and in a column for each task a list of labels, as long as that of
the words, or one label of the whole sentence. Labels are strings, or numbers where the file has their names.
Errors name the file and the row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

from core.corpora.assembly import assemble
from core.corpora.layout.cells import Cells, cells_of
from core.corpora.layout.column_names import (
    TOKENS,
    text_columns,
)
from core.corpora.layout.contents import are_labels, is_skipped
from core.corpora.layout.fields import Layout
from core.corpora.layout.report import reported
from core.corpora.readers.char_spans import (
    Counted,
    fields_beside,
    sentences_of,
    span_notes,
    tool_of_rows,
)
from core.corpora.readers.lines import Source
from core.corpora.readers.list_rows import NULL, ListColumns, columns_of, holds_words, json_text, sentence_of
from core.corpora.readers.row_files import (
    ARROW,
    JSON,
    JSONL,
    ROWS_SEEN,
    Record,
    Records,
    numbers_sentences,
    read_records,
    read_text_rows,
    rows_seen,
)
from core.corpora.readers.text_rows import CSV, TSV, errors_located
from core.corpora.readers.webanno import is_webanno
from core.corpora.types import Corpus, Scheme, Sentence, Sentences, Split
from core.errors import CorpusError
from core.tasks.packed import Packed
from core.wording import all_of, plural

TITLE = "lists of words or spans"
ENDINGS = (JSON, *ARROW)
"""The endings of files that hold nothing but lists. CSV and JSONL may hold texts too."""

_SPANS = " spans"


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
    columns: ListColumns
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
    return holds_words(rows) or tool_of_rows(rows) is not None or _cells(rows) is not None


def cells_in(source: Source) -> Cells | None:
    """What the cells of a file of texts hold, where its first rows are no lists themselves."""
    if Path(source.name).suffix.lower() not in (CSV, TSV, JSONL) or numbers_sentences(source):
        return None
    rows = rows_seen(source)
    return None if holds_words(rows) or tool_of_rows(rows) is not None else _cells(rows)


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
    values = {column: [json_text(value)] for column, value in training.beside.items()}
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
    nulls = [column for column, value in read["train"].columns.left_out.items() if value == NULL]
    return {
        column: [split for split, rows in read.items() if rows.columns.left_out.get(column, NULL) != NULL]
        for column in nulls
    }


def _holds_labels(column: str, labels: Packed, scheme: Scheme | None) -> bool:
    """Whether the content of a column is labels."""
    return are_labels(column, labels.counts()) if scheme == "sentence" else not is_skipped(labels)


def _read(source: Source, training: ListColumns | None, cells: Cells | None) -> _Rows:
    """Reads the sentences of a file. Its columns must equal the training file's."""
    counts: Counter[Counted] = Counter()
    beside: dict[str, Any] = {}
    records = _records(source, cells, counts, beside)
    columns: ListColumns | None = None
    places: list[str] = []
    lacking: Counter[str] = Counter()
    wordless = 0

    def sentences() -> Iterator[Sentence]:
        nonlocal columns, wordless
        first = list(islice(records.rows, ROWS_SEEN))
        for location, _ in first[:1]:
            with errors_located(source, location):
                columns = columns_of([record for _, record in first], records.names, training)
        if columns is None:
            return
        tasks = columns.tasks()
        for location, record in chain(first, records.rows):
            with errors_located(source, location):
                sentence = sentence_of(record, columns, tasks, lacking)
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
    if cells is None and not holds_words(seen) and tool_of_rows(seen) is None:
        cells = _cells(seen)
    if cells is not None:
        rows = _unpacked(source, rows, cells)
        first = list(islice(rows, ROWS_SEEN))
        rows = chain(first, rows)
        seen = [record for _, record in first]
    tool = None if holds_words(seen) else tool_of_rows(seen)
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
