"""The strict reader of CoNLL columns: a word a line, its labels in columns beside it. Errors name the line.

A blank line ends a sentence. Columns stand apart by tabs or by spaces; the first line that holds a word
decides for the whole file. Comments, document marks and a line of column names are no words: they are left
out and counted.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.corpora.layout.column_names import IGNORED, TOKENS, is_document_number, is_sentence_number
from core.corpora.readers.conllu import CONLLU_WIDTH, NOT_A_WORD
from core.corpora.readers.line_marks import (
    LineShape,
    comment_label,
    is_document_mark,
    is_document_name,
    split_fields,
)
from core.corpora.readers.lines import BLANKS, Lines, Source, row_problem
from core.corpora.readers.unread import check_format
from core.corpora.types import Column, Sentences
from core.errors import CorpusError
from core.plain_text import shortened
from core.tasks.packed import Numbering, Numbers, Packed, offsets, packed, shortest
from core.tasks.schemes import notation

HEADERS = "header lines"
_DOCUMENT_MARKS = "document marks"
_MOST_COLUMNS = 200
_WORD_NAMES = frozenset(["token", "tokens", "word", "words", "form", "forms", "wordform", "text"])
_LABEL_NAMES = re.compile(
    r"_.*|.*(tags?|labels?|pos|ner|iob2?|bio|ids?|lemmas?|chunks?|entity|entities|feats|deprel|head|index)"
    r"|sent.*|doc.*|start|end|offset|gold|slots?|mwe|supersenses?|morph|srl"
)
_SURELY_LABELS = re.compile(r"(.*_)?(tag|label|pos|ner|chunk)s?")
_UNNUMBERED = "rows of multiword ranges and empty nodes"
_NAME_IT = " (end the name of a CoNLL-U file in .conllu)"
_SHORT_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_NEARLY_ALL = 0.9
# In so many rows, values of the first row that never occur again are likely to be names of columns.
_ROWS_FOR_A_HEADER = 20


class Comment(NamedTuple):
    """A comment line before a sentence: the number of the sentence, the line number, and the text."""

    sentence: int
    line: int
    text: str

    @property
    def label(self) -> tuple[str, str] | None:
        """Its name and its value, as `intent` and `x` of `# intent: x`; None where it is of another form."""
        return comment_label(self.text)


@dataclass(frozen=True)
class LeftOut:
    """Lines of a file that are no words: a phrase for them, their count, and the first with its number."""

    what: str
    count: int
    line: int
    example: str

    def counted(self, file: str) -> str:
        """`12 in train.conll (the first on line 3: '# id = 1')`."""
        location = f"line {self.line}" if self.count == 1 else f"the first on line {self.line}"
        shown = f": '{shortened(self.example.strip(), 40)}'" if self.example.strip() else ""
        return f"{self.count:,} in {file} ({location}{shown})"


@dataclass(frozen=True)
class Table:
    """The sentences of a file, each as its columns from left to right, and the rest of the file.

    names      by column, its different values
    values     by column, which of them each different row has
    words      the row of each word
    separator  what stands between columns: a tab, or any number of spaces
    header     the names that the first line gives the columns, that of the words as `tokens`
    comments   the lines that are comments
    left_out   the other lines that are no words
    empty      by column, counted from 0, the line of its first empty field
    """

    names: Sequence[Sequence[str]]
    values: Sequence[Numbers]
    words: _Words
    separator: str
    header: tuple[str, ...] | None
    comments: Sequence[Comment]
    left_out: Sequence[LeftOut]
    empty: Mapping[int, int]

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.names)

    @property
    def starts(self) -> NDArray[np.int64]:
        """(s,) the line of each sentence's first word."""
        return self.words.starts

    def line(self, sentence: int, word: int) -> int:
        """The line of a word of a sentence, both counted from 0."""
        line = int(self.words.starts[sentence]) + word
        for gap in self.words.gaps[np.searchsorted(self.words.gaps, self.words.starts[sentence]) :]:
            if gap > line:
                break
            line += 1
        return line

    def column(self, index: int) -> Packed:
        """One column, sentence by sentence."""
        return Packed(self.names[index], self.values[index][self.words.rows], self.words.offsets)

    def first_sentences(self, count: int) -> list[list[tuple[str, ...]]]:
        """The columns of each of the first sentences."""
        borders = self.words.offsets[: count + 1]
        words = replace(self.words, rows=self.words.rows[: borders[-1]], offsets=borders)
        columns = [replace(self, words=words).column(index) for index in range(self.width)]
        return [list(sentence) for sentence in zip(*columns, strict=True)]


def left_out_notes(tables: Mapping[str, Table], tasks: Collection[str] = ()) -> list[str]:
    """A sentence for each kind of line that was left out.

    `tables` has them by the names of their files, and comments label the sentences for these tasks.
    """
    counted: dict[str, list[str]] = {}
    for file, table in tables.items():
        left_out = list(table.left_out)
        if others := [each for each in table.comments if each.label is None or each.label[0] not in tasks]:
            left_out.append(LeftOut("comments", len(others), others[0].line, others[0].text))
        for lines in sorted(left_out, key=lambda lines: (lines.what == HEADERS, lines.line)):
            counted.setdefault(lines.what, []).append(lines.counted(file))
    return [f"Left out, {what}: {', '.join(files)}." for what, files in counted.items()]


def named(
    table: Table, columns: Sequence[str], source: Source, sentence_comments: Sequence[str] = ()
) -> Sentences:
    """The sentences of a table, with a name for each of its columns.

    Comments of the names `sentence_comments` label them as a whole.

    Raises CorpusError where a word is empty, where a column holds texts, and where two comments of one name
    stand before a sentence.
    """
    tokens = columns.index(TOKENS)
    if tokens in table.empty:
        raise CorpusError(f"column {tokens + 1} is empty.", source, table.empty[tokens])
    first = table.first_sentences(1)[0] if len(table.starts) == 1 else [()] * table.width
    for name, values in zip(columns, first, strict=True):
        texts = [value for value in values if " " in value]
        if not name.startswith(IGNORED) and 2 * len(texts) > len(values):
            check_format(source)
            raise CorpusError(
                f"'{shortened(texts[0], 40)}' is a text and no word, and no blank line ends a sentence. A "
                "file of words has a word a line; the first line of a file of texts names its columns, such "
                "as text and label.",
                source,
                table.line(0, values.index(texts[0])),
            )
    every = np.arange(len(table.starts))
    labels = {
        name: Column(every, table.column(index))
        for index, name in enumerate(columns)
        if index != tokens and not name.startswith(IGNORED)
    }
    labels |= _labels_of_comments(table, source, sentence_comments)
    return Sentences.of_columns(table.column(tokens), labels, tuple(sentence_comments))


def _labels_of_comments(table: Table, source: Source, tasks: Sequence[str]) -> dict[str, Column]:
    """The labels that comments have for these tasks."""
    labels: dict[str, dict[int, str]] = {}
    for comment in table.comments if tasks else ():
        name, value = comment.label or ("", "")
        if name not in tasks:
            continue
        task_labels = labels.setdefault(name, {})
        if comment.sentence in task_labels:
            raise CorpusError(
                f"{source}, line {comment.line}: this is the second comment '{name}' before one sentence; "
                "keep one of them."
            )
        task_labels[comment.sentence] = value
    for task_labels in labels.values():
        task_labels.pop(len(table.starts), None)  # behind the last sentence
    return {
        task: Column(np.array(list(by_sentence)), packed((label,) for label in by_sentence.values()))
        for task, by_sentence in labels.items()
        if by_sentence
    }


def read_table(source: Source, columns: Sequence[str] | None = None) -> Table:
    """The columns of a file, without names. `columns`, where given, says how many fields each row must have.

    Blank lines, `-DOCSTART-` lines and `#begin document` end a sentence, and so does the next number in a
    column whose name says that it numbers the sentences. Comments before a sentence and a
    first line that names the columns are left out. A sentence may begin with the word `#`.

    Raises CorpusError with file, line and what was expected.
    """
    lines = Lines(source)
    shape = LineShape.of(lines)
    if shape.width > _MOST_COLUMNS and not columns:
        raise CorpusError(
            f"{source}, line {shape.line}: has {shape.width:,} columns and the most is {_MOST_COLUMNS}."
        )
    reader = _LineReader(source, shape, columns)
    words, rows = reader.read(lines), reader.rows
    del lines
    comments = reader.comments
    if comment_sentences := reader.begun_by_comments(words):
        comments += [
            (int(words.starts[n]), reader.maybe_comments[words.first_row(n)]) for n in comment_sentences
        ]
        words = words.without(words.offsets[comment_sentences])
    header = None
    if len(words.starts):
        first_row = rows.fields(words.first_row(0))
        if (index := _header(first_row, rows)) is not None:
            header = tuple(TOKENS if place == index else name for place, name in enumerate(first_row))
            reader.leave_out(HEADERS, int(words.starts[0]), shape.separator.join(first_row))
            words = words.without(words.offsets[:1])
    words = rows.cut(words, [header or (), columns or ()])
    if len(unnumbered := rows.unnumbered(words)):
        what = _UNNUMBERED + _NAME_IT * (rows.width == CONLLU_WIDTH)
        example = shape.separator.join(rows.fields(words.rows[unnumbered[0]]))
        first_of_them = int(words.lines(unnumbered[:1])[0])
        reader.left_out[what] = LeftOut(what, len(unnumbered), first_of_them, example)
        words = words.without(unnumbered)
    if not len(words.starts):
        raise CorpusError(f"{source} holds no sentence; it must hold at least one.")
    numbered = [
        Comment(int(np.searchsorted(words.starts, number)), number, text) for number, text in comments
    ]
    return Table(
        rows.texts,
        [shortest(np.array(codes), len(texts)) for codes, texts in zip(rows.codes, rows.texts, strict=True)],
        words, shape.separator, header, sorted(numbered), tuple(reader.left_out.values()), reader.empty,
    )  # fmt: skip


@dataclass(frozen=True)
class _Words:
    """The words of a file: the different row (N,) of each, and where sentences begin, as in `Packed`.

    starts (s,)  the line of each sentence's first word
    gaps (g,)    lines that are left out, some between the words of a sentence, in order
    """

    rows: Numbers
    offsets: NDArray[np.int64]
    starts: NDArray[np.int64]
    gaps: NDArray[np.int64]

    def first_row(self, sentence: int) -> int:
        """The row of the first word of a sentence."""
        return int(self.rows[self.offsets[sentence]])

    def lines(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The lines of the words at these places, where there is no gap in their sentences."""
        sentences = self._sentences(places)
        return self.starts[sentences] + places - self.offsets[sentences]

    def without(self, places: NDArray[np.int64]) -> _Words:
        """The words without those at these places; empty sentences go. Earlier gaps are before sentences."""
        kept = np.ones(len(self.rows), dtype=bool)
        kept[places] = False
        lengths = np.diff(self.offsets) - np.bincount(self._sentences(places), minlength=len(self.starts))
        borders = offsets(lengths[lengths > 0])
        starts = self.lines(np.flatnonzero(kept)[borders[:-1]])
        gaps = np.sort(np.concatenate([self.gaps, self.lines(places)]))
        return _Words(self.rows[kept], borders, starts, gaps)

    def cut(self, changes: NDArray[np.bool_]) -> _Words:
        """The words with a further sentence wherever something changes; there is no gap between words."""
        borders = np.union1d(self.offsets, np.flatnonzero(changes))
        return replace(self, offsets=borders, starts=self.lines(borders[:-1]))

    def _sentences(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(self.offsets, places, side="right") - 1


class _Rows:
    """The different rows of a file.

    names, codes   by column, its different texts, and which of them each row has
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.names = [Numbering[str]() for _ in range(width)]
        self.codes = [array("i") for _ in range(width)]
        self._columns = [(codes.append, names) for codes, names in zip(self.codes, self.names, strict=True)]

    def add(self, fields: Sequence[str]) -> int:
        """The number of a further row with these fields."""
        for (append, names), field in zip(self._columns, fields, strict=True):
            append(names[field])
        return len(self.codes[0]) - 1

    def names_words(self, row: int) -> bool:
        """Whether a row has a name of the column of words, as a header has; also while lines are read."""
        pairs = zip(self.names, self.codes, strict=True)
        return any(list(names)[values[row]].lower() in _WORD_NAMES for names, values in pairs)

    @cached_property
    def texts(self) -> list[tuple[str, ...]]:
        """The different texts of each column, when all lines are read."""
        return list(map(tuple, self.names))

    def fields(self, row: int) -> tuple[str, ...]:
        """The fields of a row."""
        return tuple(texts[values[row]] for texts, values in zip(self.texts, self.codes, strict=True))

    def others(self, rows: Collection[int]) -> tuple[int, list[set[str]]]:
        """How many rows there are beside these, and the different values of each column in them."""
        left = np.ones(len(self.codes[0]), dtype=bool)
        left[list(rows)] = False
        seen = [
            {texts[index] for index in np.unique(np.array(values)[left]).tolist()}
            for texts, values in zip(self.texts, self.codes, strict=True)
        ]
        return int(left.sum()), seen

    def equal_to(self, fields: Sequence[str]) -> list[int]:
        """The rows with these fields."""
        equal = np.ones(len(self.codes[0]), dtype=bool)
        for names, values, field in zip(self.names, self.codes, fields, strict=True):
            equal &= np.array(values) == names[field]
        return np.flatnonzero(equal).tolist()

    def cut(self, words: _Words, names: Sequence[Sequence[str]]) -> _Words:
        """The sentences as the columns number them that either has a name for; an empty field goes on."""
        named = [(place, name.lstrip(IGNORED)) for each in names for place, name in enumerate(each)]
        if not any(is_sentence_number(name) for _, name in named):
            return words
        changes = np.zeros(len(words.rows), dtype=bool)
        for place in {place for place, name in named if is_sentence_number(name) or is_document_number(name)}:
            values = np.array(self.codes[place])[words.rows]
            given = values != self.names[place].get("", -1)
            values = values[np.maximum.accumulate(np.where(given, np.arange(len(values)), 0))]
            changes[1:] |= values[1:] != values[:-1]
        return words.cut(changes)

    def unnumbered(self, words: _Words) -> NDArray[np.int64]:
        """The places of ranges and empty nodes (1-2, 1.1) among words that their first column numbers."""
        texts = self.texts[0] if self.width > 1 else ()
        is_range = [NOT_A_WORD.fullmatch(text) is not None for text in texts]
        if not any(is_range):
            return np.zeros(0, np.int64)
        numbers = [
            0 if ranges else int(text) if _SHORT_NUMBER.fullmatch(text) else -1
            for text, ranges in zip(texts, is_range, strict=True)
        ]
        of_words = np.array(numbers)[np.array(self.codes[0])][words.rows]
        numbered = of_words[of_words != 0]
        goes_on = (numbered == 1) | (numbered == np.concatenate([[0], numbered[:-1]]) + 1)
        is_numbering = len(numbered) > 0 and numbered.min() > 0 and goes_on.mean() >= _NEARLY_ALL
        return np.flatnonzero(of_words == 0) if is_numbering else np.zeros(0, np.int64)


_ENDS, _DEPENDS = -1, -2
"""In place of a row: the line is blank; the place of the line decides what it is."""
_MOST_KNOWN = 1 << 16
"""Lines whose row is remembered; a corpus has many that never come again."""


class _LineReader(dict[bytes, int]):
    """The row of each line that was met, by the line: lines come again and again.

    rows            the different rows of the file
    comments        the lines that are comments, with their numbers
    left_out        the other lines that are no words
    empty           by column, the line of its first empty field
    maybe_comments  by row, its line, where that may be a comment
    """

    def __init__(self, source: Source, shape: LineShape, columns: Sequence[str] | None) -> None:
        super().__init__()
        self._source, self._shape = source, shape
        self._width = len(columns) if columns else shape.width
        self._expectation = f"({', '.join(columns)})" if columns else f"as on line {shape.line}"
        self.rows = _Rows(self._width)
        self.comments: list[tuple[int, str]] = []
        self.left_out: dict[str, LeftOut] = {}
        self.empty: dict[int, int] = {}
        self.maybe_comments: dict[int, str] = {}
        self._decided: dict[str, int] = {}
        """The row of each line that was a word though its place decides."""

    def read(self, lines: Lines) -> _Words:
        """The words of these lines. Raises CorpusError for the first that is wrong."""
        self._lines = lines
        numbers, first_words, starts = array("i"), array("q"), array("q")
        line, before = 0, _ENDS
        for block in lines.blocks():
            line_rows = np.fromiter(map(self.__getitem__, block), np.intc, len(block))
            for place in np.flatnonzero(line_rows == _DEPENDS).tolist():
                earlier = line_rows[:place]
                is_start = (earlier[-1] if place else before) < 0
                if not (is_start or numbers) and np.count_nonzero(earlier >= 0) == 1:
                    is_start = self.rows.names_words(int(earlier.max()))
                line_rows[place] = self._decide(block[place], line + place + 1, is_start=bool(is_start))
            is_word = line_rows >= 0
            begins = is_word & (np.concatenate([[before], line_rows[:-1]]) < 0)
            first_words.extend((len(numbers) + np.cumsum(is_word)[begins] - 1).tolist())
            starts.extend((np.flatnonzero(begins) + line + 1).tolist())
            numbers.frombytes(line_rows[is_word].tobytes())
            line, before = line + len(block), int(line_rows[-1])
        del self._lines
        self.clear()
        first_words.append(len(numbers))
        rows = np.frombuffer(numbers, dtype=np.intc) if numbers else np.zeros(0, np.intc)
        borders, first_lines = np.array(first_words, dtype=np.int64), np.array(starts, dtype=np.int64)
        return _Words(rows, borders, first_lines, np.zeros(0, np.int64))

    def __missing__(self, raw: bytes) -> int:
        """The row of a line that was not met before, or one of _ENDS and _DEPENDS."""
        try:
            line = self._lines.text(raw, 0)
        except CorpusError:
            return _DEPENDS  # raised again, with its number
        separator = self._shape.separator
        if separator == " ":
            line = line.strip(" ")
        if not line:
            row = _ENDS
        else:
            fields = split_fields(line, separator)
            if "" in fields or row_problem(line, fields, self._width, self._expectation, separator):
                return _DEPENDS
            if (line[0] == "#" or "docstart" in line.casefold()) and (
                is_document_mark(line) or self._shape.is_comment(line, fields, self._width)
            ):
                return _DEPENDS
            row = self._add(line, fields)
        if len(self) >= _MOST_KNOWN:
            self.clear()
        self[raw] = row
        return row

    def _decide(self, raw: bytes, number: int, *, is_start: bool) -> int:
        """The row of a line that is a word or not by its place; _ENDS where it is none."""
        text = self._lines.text(raw, number)
        line = text.strip(" ") if self._shape.separator == " " else text
        if not line.strip(BLANKS) or is_document_mark(line):
            what = _DOCUMENT_MARKS if line.strip(BLANKS) else "lines of spaces or tabs"
            self.leave_out(what, number, line)
            return _ENDS
        fields = split_fields(line, self._shape.separator)
        if is_start and is_document_name(fields, self._width):
            self.leave_out(_DOCUMENT_MARKS, number, line)
            return _ENDS
        row = self._decided.get(text)
        if row is None and is_start and self._shape.is_comment(line, fields, self._width):
            self.comments.append((number, line))
            return _ENDS
        if problem := row_problem(line, fields, self._width, self._expectation, self._shape.separator):
            if len(fields) != self._width:
                check_format(self._source)
                problem += self._shape.advice(number)
            raise CorpusError(problem, self._source, number)
        for index, field in enumerate(fields):
            if not field:
                self.empty.setdefault(index, number)
        if row is None:
            row = self._decided[line] = self._add(line, fields)
        return row

    def _add(self, line: str, fields: Sequence[str]) -> int:
        row = self.rows.add(fields)
        if line[0] == "#" and self._shape.may_be_comment(line, fields):
            self.maybe_comments[row] = line
        return row

    def leave_out(self, what: str, number: int, line: str) -> None:
        """Count a line that is left out."""
        seen = self.left_out.get(what)
        self.left_out[what] = replace(seen, count=seen.count + 1) if seen else LeftOut(what, 1, number, line)

    def begun_by_comments(self, words: _Words) -> list[int]:
        """The sentences that begin with a comment. Its further fields occur in no other row."""
        if not self.maybe_comments:
            return []
        firsts = {
            sentence: row
            for sentence, row in enumerate(words.rows[words.offsets[:-1]].tolist())
            if row in self.maybe_comments
        }
        lines = {self.maybe_comments[row] for row in firsts.values()}
        _, seen = self.rows.others([row for row, line in self.maybe_comments.items() if line in lines])
        return [
            sentence
            for sentence, row in firsts.items()
            if all(
                value not in others for value, others in zip(self.rows.fields(row)[1:], seen[1:], strict=True)
            )
        ]


def _header(first: Sequence[str], rows: _Rows) -> int | None:
    """The place of the column of words, where the first row of a file names its columns; else None.

    A name occurs nowhere else in its column. One is a known name of words, or all but one are known names of
    labels; in few rows, of spans.
    """
    names = [field.lower() for field in first]
    known_words = [index for index, name in enumerate(names) if name in _WORD_NAMES]
    words = known_words or [index for index, name in enumerate(names) if not _SURELY_LABELS.fullmatch(name)]
    if not known_words and len(words) != 1:
        return None
    count, seen = rows.others(rows.equal_to(first))
    has_many = count >= _ROWS_FOR_A_HEADER
    if not (known_words or has_many or any(notation(Counter(values)) for values in seen)):
        return None
    labels = [index for index in range(len(first)) if index != words[0]]
    is_known = has_many or any(_LABEL_NAMES.fullmatch(names[index]) for index in labels)
    is_header = bool(labels) and is_known and all(first[index] not in seen[index] for index in labels)
    return words[0] if is_header else None
