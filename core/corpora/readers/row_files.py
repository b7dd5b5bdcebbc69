"""The rows of JSON, JSONL, Parquet, Arrow and CSV files as objects, each with its place. Errors name both.

JSON is a list of objects, alone or in `data`. CSV has a word a line and a column that numbers the sentences:
an object of it is a sentence, as in the other formats.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

from core.corpora.layout.column_names import (
    IGNORED,
    TOKENS,
    WORD_NAMES,
    is_document_number,
    is_left_out,
    is_sentence_number,
    is_text_column,
)
from core.corpora.readers.char_spans import Counted
from core.corpora.readers.lines import GivenFile, Lines, Source, read_bytes
from core.corpora.readers.text_rows import (
    CSV,
    TSV,
    beginning,
    check_names,
    errors_located,
    json_object,
    json_value,
    read_rows,
)
from core.corpora.readers.webanno import webanno_rows
from core.errors import CorpusError
from core.foreign import arrow
from core.foreign.child import Refused

JSON, JSONL = ".json", ".jsonl"
ARROW = {".parquet": "Parquet", ".arrow": "Arrow", ".feather": "Feather"}
"""The formats of Arrow's files, by ending."""

NAMES_FILES = ("labels.json", "dataset_info.json")
"""The files that may hold the names of numbers, beside the files of the splits."""

ROWS_SEEN = 1000
"""The first rows of a file, by which its columns are told: in some of them a column may be null."""
_MOST_SEEN = 500_000
"""The characters within which the first rows are looked for."""
_LINES_SEEN = 4 * ROWS_SEEN
"""The lines within which the first rows are looked for: a row of CSV may have some."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Records:
    """The content of a file: its layout, its rows with locations for errors, and names of numbers by column.

    The names are of labels that are numbers.
    """

    layout: str
    rows: Iterator[tuple[str, Record]]
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    counts: Counter[Counted] = field(default_factory=Counter)
    """How many spans were changed or left out, as the rows are read."""


def is_list_of(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Whether a value is a list of nothing but that."""
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def read_records(source: Source) -> Records:
    """The rows of a file, one after another; its ending decides the format.

    Names of numbers may be in a `labels.json` or `dataset_info.json` beside it.

    Raises CorpusError, at once or where a row is asked for.
    """
    records = _READERS[Path(source.name).suffix.lower()](source)
    return records if isinstance(source, GivenFile) else _with_names_beside(source.parent, records)


def _with_names_beside(folder: Path, records: Records) -> Records:
    """The rows with the names of numbers in a file beside theirs; names in the file itself win."""
    file = next((folder / name for name in NAMES_FILES if (folder / name).is_file()), None)
    if file is None:
        return records
    first = list(islice(records.rows, ROWS_SEEN))
    records = replace(records, rows=chain(first, records.rows))
    values = chain.from_iterable(record.items() for _, record in first)
    numbers = [
        column for column, value in values if value and is_list_of(value, int) and column not in records.names
    ]
    return replace(records, names={**_names_in(file, numbers), **records.names}) if numbers else records


def _names_in(file: Path, numbers: Sequence[str]) -> dict[str, Sequence[str]]:
    """The names of numbers in a file, by column. Names without a column are for every column of numbers."""
    try:
        value = json_value(_content(file).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{file} is no JSON ({error}).") from None
    if isinstance(value, dict) and isinstance(features := value.get("features"), dict):
        return _feature_names(features)
    if (names := _numbered(value)) is not None:
        return dict.fromkeys(numbers, names)
    by_column = (
        {str(column): _numbered(each) for column, each in value.items()} if isinstance(value, dict) else {}
    )
    names_by_column: dict[str, Sequence[str]] = {
        column: names for column, names in by_column.items() if names is not None
    }
    if not names_by_column or len(names_by_column) < len(by_column):
        raise CorpusError(
            f'{file}: expected the names of labels in the order of their numbers, as ["O", "B-PER"], by '
            'column as {"ner_tags": ["O", "B-PER"]}, or each with its number as {"O": 0, "B-PER": 1}.'
        )
    return names_by_column


def _numbered(value: Any) -> list[str] | None:
    """The names in the order of their numbers, of a list, of `{name: number}` or `{number: name}`."""
    if isinstance(value, list):
        return value if is_list_of(value, str) else None
    if not isinstance(value, dict):
        return None
    pairs = [(item, key) if isinstance(item, str) else (key, item) for key, item in value.items()]
    by_number = {
        int(number): name
        for name, number in pairs
        if type(number) is int or (isinstance(number, str) and number.isdecimal())
    }
    in_order = range(len(value))
    return [by_number[number] for number in in_order] if value and by_number.keys() == {*in_order} else None


def _content(source: Source) -> bytes:
    return source.content if isinstance(source, GivenFile) else read_bytes(source)


def _jsonl(source: Source) -> Records:
    def rows() -> Iterator[tuple[str, Record]]:
        blank = 0
        for number, line in enumerate(Lines(source), start=1):
            if not line.strip():
                blank = blank or number  # no error at the end of the file
                continue
            location = f"line {blank or number}"
            with errors_located(source, location):
                record = json_object("" if blank else line, _EXAMPLE)
            yield location, record

    return Records("JSONL lists", rows())


def _json(source: Source) -> Records:
    try:
        text = _content(source).removeprefix(codecs.BOM_UTF8).decode("utf-8")
        value = json_value(text)
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{source}: byte 0x{error.object[error.start]:02x} at position {error.start + 1} is not UTF-8; "
            "save the file as UTF-8."
        ) from None
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # an object a line, as datasets writes files of this ending too
            return _jsonl(source)
        raise CorpusError(f"is no JSON ({error.msg}).", source, error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{source} is no JSON ({error}).") from None
    if isinstance(value, dict):
        value = value["data"] if isinstance(value.get("data"), list) else [value]
    if not isinstance(value, list):
        raise CorpusError(f"{source}: expected a list of objects such as {_EXAMPLE}.")

    def rows() -> Iterator[tuple[str, Record]]:
        for number, record in enumerate(value, start=1):
            if not isinstance(record, dict):
                raise CorpusError(f"{source}, row {number}: expected an object such as {_EXAMPLE}.")
            yield f"row {number}", record

    return Records("JSON lists", rows())


_EXAMPLE = '{"tokens": ["…"], "ner_tags": ["…"]}'


def _arrow(source: Source) -> Records:
    """The rows of a Parquet, Arrow or Feather file. Numbers have the names that `datasets` stored."""
    kind = ARROW[Path(source.name).suffix.lower()]
    content = _content(source)
    try:
        arrow.check(content, kind)
    except Refused as refused:
        raise CorpusError(
            f"{source} cannot be read as {kind} ({refused.reason}); write it anew, or a part of it."
        ) from None
    # Nothing of it fails from here on: a child process has read the same bytes in the same way.
    schema, batches = arrow.batches(content, kind)

    def rows() -> Iterator[tuple[str, Record]]:
        numbers = count(1)
        for batch in batches:
            for record in batch.to_pylist():
                yield f"row {next(numbers)}", record

    return Records(f"{kind} lists", rows(), _stored_names((schema.metadata or {}).get(b"huggingface", b"")))


def _stored_names(metadata: bytes) -> dict[str, Sequence[str]]:
    """The names of the numbers in each column, as `datasets` stores its ClassLabels beside the schema."""
    try:
        features = json.loads(metadata)["info"]["features"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}  # of another writer
    return _feature_names(features) if isinstance(features, dict) else {}


def _feature_names(features: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """The names of the ClassLabels among features, as `datasets` writes them in JSON."""
    names = {}
    for column, feature in features.items():
        item_feature = feature[0] if isinstance(feature, list) and feature else feature
        if isinstance(item_feature, dict):
            item_feature = item_feature.get("feature", item_feature)
        if isinstance(item_feature, dict) and is_list_of(item_feature.get("names"), str):
            names[column] = item_feature["names"]
    return names


def numbers_sentences(source: Source) -> bool:
    """Whether a CSV file has a word a line: its first line names columns of sentence numbers and of words."""
    header = [name.strip() for name in next(csv.reader(beginning(source).splitlines()), ())]
    has_words = not WORD_NAMES.isdisjoint(map(str.lower, header))
    return has_words and any(map(is_sentence_number, header)) and not any(map(is_text_column, header))


def _csv(source: Source) -> Records:
    """The sentences of a CSV file with one word per line.

    The number of a sentence is at its first word or at each word. In each document, where a column numbers
    them, the numbers may begin anew.
    """
    names, lines = read_rows(source)
    numbering = next(index for index, name in enumerate(names) if is_sentence_number(name))
    document = next((index for index, name in enumerate(names) if is_document_number(name)), None)
    words = next(index for index, name in enumerate(names) if name.lower() in WORD_NAMES)
    needed = [
        index for index, name in enumerate(names) if not (is_left_out(name) or name.startswith(IGNORED))
    ]

    with errors_located(source, "line 1"):
        check_names(names, [names[index] for index in needed])

    def sentence(rows: Sequence[Sequence[str]]) -> Record:
        columns = zip(names, zip(*rows, strict=True), strict=True)
        record: Record = {name: list(column) for name, column in columns}
        return record | {TOKENS: record.pop(names[words]), names[numbering]: rows[0][numbering]}

    def sentences() -> Iterator[tuple[str, Record]]:
        seen: set[tuple[str, str]] = set()
        current, start = ("", ""), 0
        rows: list[Sequence[str]] = []
        for line, values in lines:
            with errors_located(source, f"line {line}"):
                of_document = current[0] if document is None else values[document].strip() or current[0]
                number = of_document, values[numbering].strip() or current[1]
                if not number[1]:
                    raise ValueError(f"{names[numbering]} is empty; the first word of a sentence needs it.")
                if number != current and number in seen:
                    raise ValueError(
                        f"{number[1]} goes on after another sentence; put its words together, or, where "
                        "numbers begin anew in each document, add a column doc_id."
                    )
                for index in needed:
                    if index not in (numbering, document) and not values[index].strip():
                        raise ValueError(f"{names[index]} is empty.")
            if number != current:
                if rows:
                    yield f"line {start}", sentence(rows)
                seen.add(number)
                current, start, rows = number, line, []
            rows.append(values)
        if rows:
            yield f"line {start}", sentence(rows)

    return Records("CSV of a word a line", sentences())


def _webanno(source: Source) -> Records:
    counts: Counter[Counted] = Counter()
    return Records("WebAnno TSV 3", webanno_rows(source, counts), counts=counts)


def rows_seen(source: Source) -> list[Record]:
    """The first rows of a file of texts as objects; none where they cannot be read."""
    text = beginning(source, _MOST_SEEN)
    lines = text.split("\n", _LINES_SEEN)
    if len(text) >= _MOST_SEEN or len(lines) > _LINES_SEEN:
        lines.pop()  # it is not whole
    ending = Path(source.name).suffix.lower()
    if ending == JSONL:
        rows: list[Record] = []
        for line in text.lstrip().split("\n", ROWS_SEEN)[:ROWS_SEEN]:
            try:
                rows.append(json_object(line))
            except ValueError:
                break  # where it is the first line, the reader of texts says what is wrong
        return rows
    split = (
        csv.reader(f"{line}\n" for line in lines) if ending == CSV else (line.split("\t") for line in lines)
    )
    try:
        names, *values = islice(split, ROWS_SEEN)
    except (ValueError, csv.Error):
        return []
    names = [name.strip() for name in names]
    return [dict(zip(names, row, strict=True)) for row in values if len(row) == len(names)]


def read_text_rows(source: Source) -> Records:
    """The rows of a file of texts as objects. Raises CorpusError as `read_records`."""
    names, lines = read_rows(source)
    rows = ((f"line {number}", dict(zip(names, values, strict=True))) for number, values in lines)
    return Records(f"{Path(source.name).suffix[1:].upper()} with lists in its cells", rows)


_READERS: dict[str, Callable[[Source], Records]] = {
    CSV: _csv,
    TSV: _webanno,
    JSON: _json,
    JSONL: _jsonl,
    **dict.fromkeys(ARROW, _arrow),
}
