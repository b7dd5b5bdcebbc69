"""The strict reader of texts and pairs of texts: TSV, CSV and JSONL files with named columns.

`text` is a text; `text1` and `text2` are those of a pair. Every other column is a task, but for those left
out: `id`, `idx`, a name that begins with `_`, a column without a name. `score`, or a name that ends with
`_score`, is a column of numbers; all others hold labels. A task of the column `label` or `score` is named as
the corpus.

The first line of TSV and CSV names the columns; each line of JSONL is an object with the same keys. TSV knows
no quotes; in CSV a quoted field may hold line ends. Errors name the line, of a CSV row the one it begins on.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Any, NoReturn

from core.config.sweep import real_number
from core.corpora.readers import IGNORED, MOST_CHARACTERS, GivenFile, Source, read_lines
from core.corpora.types import Scheme, Sentence
from core.errors import CorpusError
from core.plain_text import shortened
from core.tasks import KINDS
from core.wording import all_of, plural

TEXT, PAIR = ("text",), ("text1", "text2")
"""The columns of a text, and of a pair."""

TSV = ".tsv"
"""The ending of files whose first line tells whether they hold texts or the words of CoNLL columns."""

_LEFT_OUT = ("id", "idx", "")
_LABEL, _SCORE = "label", "score"
# What separates names on the command line and in the form, and control characters.
_NOT_IN_NAMES = re.compile("[,;\x00-\x1f]")
_LONGEST_SHOWN = 80

MOST_SCORE = 1e6
"""The largest score, either side of 0. The squares of its gradients, which optimisers keep, fit float32."""

Row = tuple[int, Sequence[Any]]
"""A row's line and its values."""


@dataclass(frozen=True)
class Columns:
    """What the columns of a file are.

    names     all, from left to right
    texts     TEXT or PAIR
    schemes   the kind of task that each column of labels or numbers is
    """

    names: tuple[str, ...]
    texts: tuple[str, ...]
    schemes: Mapping[str, Scheme]

    @property
    def left_out(self) -> list[str]:
        """The names of the columns that are neither texts nor tasks."""
        return [name for name in self.names if name not in (*self.texts, *self.schemes)]

    def tasks(self, corpus: str) -> dict[str, str]:
        """The task of each column, in a corpus of that name."""
        plain = [column for column in self.schemes if column in (_LABEL, _SCORE)]
        of_corpus = _NOT_IN_NAMES.sub("-", corpus)
        if len(plain) != 1 or not of_corpus or of_corpus in self.schemes:
            return {column: column for column in self.schemes}
        return {column: of_corpus if column in plain else column for column in self.schemes}


def holds_texts(source: Source) -> bool:
    """Whether a file is one of texts: by its ending, or of TSV by the first line."""
    ending = Path(source.name).suffix.lower()
    if ending != TSV:
        return ending in _ROWS
    if isinstance(source, GivenFile):
        first = source.content.split(b"\n", 1)[0]
    else:
        try:
            if not source.is_file():  # opening a pipe might never end
                return False
            with source.open("rb") as file:
                first = file.readline(MOST_CHARACTERS)
        except OSError:
            return False  # the reader says what is wrong
    names = [name.strip() for name in first.decode("utf-8-sig", errors="replace").split("\t")]
    return len(names) > 1 and not {*TEXT, *PAIR}.isdisjoint(names)


def read_texts(
    source: Source, corpus: str, training: Columns | None = None
) -> tuple[tuple[Sentence, ...], Columns]:
    """The texts of a file and its columns, which must have those of `training`, where given.

    `corpus` is what the task of a column `label` or `score` is called. Raises CorpusError with file, line and
    what was expected.
    """
    names, rows = _read(source)
    columns = _columns(source, names, training)
    tasks = columns.tasks(corpus)
    return _sentences(source, rows, columns, tasks), columns


@dataclass(frozen=True)
class AskedTexts:
    """Texts to be answered, with gold labels of some tasks where the file has any, and the names of the
    columns left out.
    """

    texts: tuple[Sentence, ...]
    left_out: tuple[str, ...]

    @property
    def gold(self) -> tuple[str, ...]:
        """The tasks that some text has a gold label of."""
        return tuple(dict.fromkeys(task for text in self.texts for task in text.labels))


def read_asked(source: Source, schemes: Mapping[str, str]) -> AskedTexts:
    """The texts of a file that a run is asked about; `schemes` has its tasks, each with its stored kind.

    A column named as a task of the run holds gold labels of it, empty where a row has none. So does `label`
    or `score`, where the run has one such task. Raises CorpusError as `read_texts`.
    """
    names, rows = _read(source)
    texts = _text_columns(source, names)
    reads = "text" if texts == TEXT else "pair"
    known = {task: KINDS[scheme] for task, scheme in schemes.items() if KINDS[scheme].reads == reads}
    tasks = {name: name for name in names if name in known}
    for name in (_LABEL, _SCORE):
        fitting = [task for task, kind in known.items() if kind.is_number == (name == _SCORE)]
        if name in names and name not in tasks and len(fitting) == 1 and fitting[0] not in tasks:
            tasks[name] = fitting[0]
    given: dict[str, Scheme] = {name: known[task].scheme for name, task in tasks.items()}
    columns = Columns(tuple(names), texts, given)
    _check_names(source, names, (*texts, *given))
    return AskedTexts(
        _sentences(source, rows, columns, tasks, unlabelled=True), tuple(filter(None, columns.left_out))
    )


def _read(source: Source) -> tuple[Sequence[str], Iterator[Row]]:
    """The names of the columns, and the rows."""
    lines = read_lines(source)
    while lines and not lines[-1]:
        lines.pop()
    rows = _ROWS[Path(source.name).suffix.lower()](source, lines)
    return [name.strip() for name in next(rows)[1]], rows


def _sentences(
    source: Source,
    rows: Iterator[Row],
    columns: Columns,
    tasks: Mapping[str, str],
    *,
    unlabelled: bool = False,
) -> tuple[Sentence, ...]:
    """The rows as texts. With `unlabelled` a label may be empty."""
    sentences = tuple(
        _sentence(source, number, values, columns, tasks, unlabelled=unlabelled) for number, values in rows
    )
    if not sentences:
        _refuse(source, 1, "names the columns, and no text follows; expected a text on each further line.")
    return sentences


def _refuse(source: Source, line: int, problem: str) -> NoReturn:
    raise CorpusError(f"{source}, line {line}: {problem}")


def _tsv(source: Source, lines: Sequence[str]) -> Iterator[Row]:
    return _of_one_width(source, enumerate((line.split("\t") for line in lines), start=1), "tabs")


def _csv(source: Source, lines: Sequence[str]) -> Iterator[Row]:
    def rows() -> Iterator[Row]:
        reader = csv.reader((f"{line}\n" for line in lines), strict=True)
        while True:
            number = reader.line_num + 1
            try:
                yield number, next(reader)
            except StopIteration:
                return
            except csv.Error:
                if "\r" in lines[number - 1]:
                    _refuse(source, number, "has a carriage return inside; end lines with a line feed.")
                _refuse(
                    source,
                    number,
                    "a quoted field is not closed, or goes on behind its closing quote; write a quote inside "
                    "a field twice.",
                )

    return _of_one_width(source, rows(), "commas")


def _of_one_width(source: Source, rows: Iterator[Row], separators: str) -> Iterator[Row]:
    names: Sequence[str] = ()
    for number, values in rows:
        names = names or [name.strip() for name in values]
        if not any(values):
            _refuse(source, number, "is empty; delete it, or write a row there.")
        if len(values) != len(names):
            _refuse(
                source,
                number,
                f"expected {plural(len(names), 'column')} ({_shown(names)}) separated by {separators}, but "
                f"found {len(values):,}.",
            )
        yield number, values


def _jsonl(source: Source, lines: Sequence[str]) -> Iterator[Row]:
    names: list[str] = []
    for number, line in enumerate(lines, start=1):
        values = _json_object(source, number, line)
        if number == 1:
            names = list(values)
            yield number, names
        for has, lacks, what in ((names, values, "has no"), (values, names, "has also")):
            for name in has:
                if name not in lacks:
                    _refuse(
                        source, number, f"{what} '{_short(name)}'; every line needs the same keys as line 1."
                    )
        yield number, [values[name] for name in names]


def _json_object(source: Source, number: int, line: str) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            raise ValueError("a key stands twice")
        return values

    def as_written(text: str) -> float | str:
        """The number; the text where no float holds it."""
        return float(text) if math.isfinite(float(text)) else text

    def no_number(text: str) -> NoReturn:
        raise ValueError(f"{text} is no JSON")

    try:
        values = json.loads(line, object_pairs_hook=unique, parse_constant=no_number, parse_float=as_written)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        _refuse(source, number, f"is no JSON ({reason}); expected an object such as {_EXAMPLE}.")
    if not isinstance(values, dict):
        _refuse(source, number, f"is no JSON object; expected one such as {_EXAMPLE}.")
    return values


_EXAMPLE = '{"text": "…", "label": "…"}'

_ROWS = {TSV: _tsv, ".csv": _csv, ".jsonl": _jsonl}

ENDINGS = tuple(_ROWS)
"""The endings of files of texts."""


def _columns(source: Source, given: Sequence[str], training: Columns | None) -> Columns:
    names = tuple(given)
    texts = _text_columns(source, names)
    tasks = [name for name in names if name not in (*texts, *_LEFT_OUT) and not name.startswith(IGNORED)]
    _check_names(source, names, (*texts, *tasks))
    if unfit := [name for name in tasks if _NOT_IN_NAMES.search(name)]:
        _refuse(source, 1, f"the name '{_short(unfit[0])}' of a column has a comma or the like; change it.")
    if not tasks:
        _refuse(
            source,
            1,
            f"expected a column of labels beside {all_of(texts)}, such as label; found none.",
        )
    numbers = [name for name in tasks if name == _SCORE or name.endswith(f"_{_SCORE}")]
    if numbers and texts == TEXT:
        _refuse(
            source,
            1,
            f"the column {numbers[0]} would hold numbers of pairs, and there is one text; expected text1 and "
            "text2, or a name that does not end with score.",
        )
    labels: Scheme = "text" if texts == TEXT else "pair"
    schemes: dict[str, Scheme] = {name: "score" if name in numbers else labels for name in tasks}
    columns = Columns(names, texts, schemes)
    if training is not None:
        _check_like(source, columns, training)
    return columns


def _text_columns(source: Source, names: Sequence[str]) -> tuple[str, ...]:
    """TEXT or PAIR."""
    texts = tuple(name for name in (*TEXT, *PAIR) if name in names)
    if texts not in (TEXT, PAIR):
        _refuse(
            source, 1, f"expected a column text, or text1 and text2, but the columns are {_shown(names)}."
        )
    return texts


def _check_names(source: Source, names: Sequence[str], read: Sequence[str]) -> None:
    """Raises CorpusError where two columns that are read have one name."""
    if twice := [name for name in read if names.count(name) > 1]:
        _refuse(source, 1, f"two columns are named '{_short(twice[0])}'; give each a name of its own.")


def _check_like(source: Source, columns: Columns, training: Columns) -> None:
    """Raises CorpusError unless both have the same texts and tasks."""
    here, there = (dict.fromkeys((*found.texts, *found.schemes)) for found in (columns, training))
    for name in there:
        if name not in here:
            _refuse(source, 1, f"has no column {_short(name)}, which the training file has.")
    for name in here:
        if name not in there:
            _refuse(
                source,
                1,
                f"has a column {_short(name)}, which the training file has not; begin its name with "
                f"{IGNORED} to skip it.",
            )


def _sentence(
    source: Source,
    number: int,
    values: Sequence[Any],
    columns: Columns,
    tasks: Mapping[str, str],
    *,
    unlabelled: bool,
) -> Sentence:
    row = dict(zip(columns.names, values, strict=True))
    first, *second = (_words(source, number, name, row[name]) for name in columns.texts)
    labels = {
        tasks[name]: (_label(source, number, name, row[name], scheme),)
        for name, scheme in columns.schemes.items()
        if not (unlabelled and _is_empty(row[name]))
    }
    return Sentence(first, labels, whole=True, second=second[0] if second else None)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _words(source: Source, number: int, name: str, value: Any) -> tuple[str, ...]:
    """What stands between spaces in a text."""
    if not isinstance(value, str):
        _refuse(source, number, f"{name} is not a text.")
    if len(value) > MOST_CHARACTERS:
        _refuse(source, number, f"{name} has {len(value):,} characters and the most is {MOST_CHARACTERS:,}.")
    _check_characters(source, number, name, value)
    words = tuple(map(intern, value.split()))
    if not words:
        _refuse(source, number, f"{name} is empty; write a text, or delete the row.")
    return words


def _label(source: Source, number: int, name: str, value: Any, scheme: Scheme) -> str:
    """A label, or a number, as it is written."""
    if isinstance(value, (bool, int, float)):
        value = json.dumps(value)
    if not isinstance(value, str):
        _refuse(source, number, f"{name} must be a text or a number.")
    label = value.strip()
    if not label:
        _refuse(source, number, f"{name} is empty; write a label, or delete the row.")
    _check_characters(source, number, name, label)
    if any(character < " " for character in label):
        _refuse(source, number, f"{name} holds a line end or another control character.")
    if KINDS[scheme].is_number:
        if (score := real_number(label)) is None:
            _refuse(source, number, f"{name} must be a number, not '{_short(label)}'.")
        if abs(score) > MOST_SCORE:
            limits = f"{-MOST_SCORE:,.0f} and {MOST_SCORE:,.0f}"
            _refuse(source, number, f"{name} must lie between {limits}, not '{_short(label)}'; rescale it.")
    return intern(label)


def _check_characters(source: Source, number: int, name: str, text: str) -> None:
    """Refuses what no tokenizer takes."""
    if "\0" in text:
        _refuse(source, number, f"{name} holds a zero byte; save the file as UTF-8 text.")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        _refuse(source, number, f"{name} holds half a surrogate pair; write the whole character.")


def _shown(names: Sequence[str]) -> str:
    return _short(", ".join(names))


def _short(text: str) -> str:
    return shortened(text, _LONGEST_SHOWN)
