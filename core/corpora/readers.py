"""The strict readers of text files: lines, CoNLL columns, CoNLL-U. Errors name the line.

CoNLL columns: a word a line, its labels in columns beside it, a blank line after a sentence. Columns stand
apart by tabs or by spaces; the first line that holds a word decides for the whole file. Comments, document
marks and a line of column names are no words: they are left out and counted.

CoNLL-U (https://universaldependencies.org/format.html): FORM becomes the words; UPOS, XPOS and DEPREL are
tasks, and so is each feature of FEATS (`feats:Number`). Multiword ranges (1-2) and empty nodes (1.1) are not
words and are left out; so are comments. `_` says that a word has no label: a sentence with nothing else in
the column of UPOS, XPOS or DEPREL, and a file with nothing else in FEATS, is not annotated for the tasks of
that column. Elsewhere `_` is a label like the others.
"""

from __future__ import annotations

import codecs
import io
import os
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from sys import intern
from typing import NamedTuple, NoReturn

from core.corpora.types import Sentence
from core.errors import CorpusError
from core.paths import opened
from core.plain_text import shortened
from core.tasks.schemes import notation
from core.wording import plural

MOST_BYTES = 2_000_000_000
MOST_LINES = 20_000_000
MOST_CHARACTERS = 100_000
"""The most bytes of a file and of a line: ten times the largest treebanks.

More would fill the memory of the page or the worker that reads it, and end it without a message.
"""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class GivenFile:
    """A file that is not on this disk (uploaded, pasted): its name, for errors and notes, and its content."""

    name: str
    content: bytes

    def __str__(self) -> str:
        return self.name


Source = Path | GivenFile


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a file.

    Raises CorpusError where it is missing, larger than `most`, or one that `opened` refuses.
    """
    try:
        with opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                holds = f"holds {size / 1e6:,.0f} MB and the most is {most / 1e6:,.0f} MB"
                raise CorpusError(f"{path} {holds}; take a part of it.")
            return file.read()
    except FileNotFoundError:
        raise CorpusError(f"There is no file {path}; check the name.") from None
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}.") from error


class Lines:
    """The lines of a file without their ends (LF, CRLF or CR) and without a byte order mark.

    They can be gone through more than once, and are never all in memory at once. With `carriage_returns` a
    line may have one inside, as a quoted field of CSV has. Making it raises CorpusError as `read_bytes` does,
    and where the file is empty or has too many lines; both raise it where a line is too long or no UTF-8.
    """

    def __init__(self, source: Source, *, carriage_returns: bool = False) -> None:
        data = source.content if isinstance(source, GivenFile) else read_bytes(source)
        if data.startswith(_UTF16):
            raise CorpusError(f"{source}, line 1: is UTF-16, not UTF-8; save the file as UTF-8.")
        self._source, self._carriage_returns = source, carriage_returns
        self._data = data.removeprefix(codecs.BOM_UTF8)
        self._end = "\n" if b"\n" in self._data else "\r"
        if not any(map(str.strip, self)):
            raise CorpusError(f"{source} is empty; it must hold at least one line of text.")
        count = self._data.count(self._end.encode()) + (not self._data.endswith(self._end.encode()))
        if count > MOST_LINES:
            raise CorpusError(f"{source} has {count:,} lines and the most is {MOST_LINES:,}.")

    def __iter__(self) -> Iterator[str]:
        # Not str.splitlines: it also splits at characters that may stand inside a token (U+2028, U+0085).
        stream = io.TextIOWrapper(io.BytesIO(self._data), "utf-8", newline=self._end)
        try:
            for number, line in enumerate(stream, start=1):
                line = line.removesuffix(self._end).rstrip("\r")
                if len(line) > MOST_CHARACTERS:
                    self._refuse(
                        number,
                        f"has {len(line):,} characters and the most is {MOST_CHARACTERS:,}; is it the text "
                        "that you mean?",
                    )
                if "\r" in line and not self._carriage_returns:
                    self._refuse(number, "has a carriage return inside; end lines with a line feed.")
                yield line
        except UnicodeDecodeError:
            self._refuse_encoding()

    def _refuse(self, number: int, problem: str) -> NoReturn:
        raise CorpusError(f"{self._source}, line {number}: {problem}")

    def _refuse_encoding(self) -> NoReturn:
        """Says which byte is no UTF-8; the stream knows its place among a few bytes alone."""
        try:
            self._data.decode("utf-8")
        except UnicodeDecodeError as error:
            end = self._end.encode()
            line = self._data.count(end, 0, error.start) + 1
            column = error.start - self._data.rfind(end, 0, error.start)
            byte = self._data[error.start]
            problem = f"byte 0x{byte:02x} at position {column} is not UTF-8; save the file as UTF-8."
            raise CorpusError(f"{self._source}, line {line}: {problem}") from None
        raise AssertionError("the data is UTF-8 after all")


def read_lines(source: Source, *, carriage_returns: bool = False) -> list[str]:
    """All of `Lines` at once."""
    return list(Lines(source, carriage_returns=carriage_returns))


TOKENS = "tokens"
"""The name of the column of words."""
IGNORED = "_"
"""Columns whose name begins with this are skipped."""

HEADERS = "header lines"
_DOCSTART = re.compile(r"[ \t]*(\d+[ \t]+)?-DOCSTART-([ \t]|$)", re.IGNORECASE)
_MOST_COLUMNS = 200
_BLANKS = " \t"
# A line that may be a comment, one that surely is, and one that also ends a sentence.
_COMMENT = re.compile(r"#+(\s|$)|#\s*[\w.-]+\s*[=:]|#(begin|end)\b")
_METADATA = re.compile(r"#\s+\S+\s*=|#\S+\s+=\s|#+\s*[\w.-]+:\s")
_LABEL = re.compile(r"#+\s*([\w.-]+):\s+(\S.*)")
_DOCUMENT = re.compile(r"#\s*(begin|end) document\b")
_WORD_NAMES = frozenset(["token", "tokens", "word", "words", "form", "forms", "wordform", "text"])
_LABEL_NAMES = re.compile(
    r"_.*|.*(tags?|labels?|pos|ner|iob2?|bio|ids?|lemmas?|chunks?|entity|entities|feats|deprel|head|index)"
    r"|sent.*|doc.*|start|end|offset|gold|slots?|mwe|supersenses?|morph|srl"
)
_SURELY_LABELS = re.compile(r"(.*_)?(tag|label|pos|ner|chunk)s?")
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
        parts = _LABEL.fullmatch(self.text.strip())
        return None if parts is None else (parts[1], parts[2])


@dataclass(frozen=True)
class LeftOut:
    """Lines of a file that are no words: a phrase for them, their count, and the first with its number."""

    what: str
    count: int
    line: int
    example: str

    def counted(self, file: str) -> str:
        """`12 in train.conll (the first on line 3: '# id = 1')`."""
        place = f"line {self.line}" if self.count == 1 else f"the first on line {self.line}"
        shown = f": '{shortened(self.example.strip(), 40)}'" if self.example.strip() else ""
        return f"{self.count:,} in {file} ({place}{shown})"


@dataclass(frozen=True)
class Table:
    """The sentences of a file, each as its columns from left to right, and the rest of the file.

    starts     the line of each sentence's first word
    separator  what stands between columns: a tab, or any number of spaces
    header     the names that the first line gives the columns, that of the words as `tokens`
    comments   the lines that are comments
    left_out   the other lines that are no words
    empty      by column, counted from 0, the line of its first empty field
    """

    sentences: Sequence[Sequence[tuple[str, ...]]]
    starts: Sequence[int]
    separator: str
    header: tuple[str, ...] | None
    comments: Sequence[Comment]
    left_out: Sequence[LeftOut]
    empty: Mapping[int, int]

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.sentences[0])

    def column(self, place: int) -> list[tuple[str, ...]]:
        """One column, sentence by sentence."""
        return [columns[place] for columns in self.sentences]


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
    table: Table, columns: Sequence[str], source: Source, of_sentences: Sequence[str] = ()
) -> tuple[Sentence, ...]:
    """The sentences of a table whose columns have these names.

    Comments of the names `of_sentences` label them as a whole.

    Raises CorpusError where a word is empty, where a column holds texts, and where two comments of one name
    stand before a sentence.
    """
    tokens = columns.index(TOKENS)
    if tokens in table.empty:
        raise CorpusError(f"{source}, line {table.empty[tokens]}: column {tokens + 1} is empty.")
    for name, values in zip(columns, table.sentences[0], strict=True):
        texts = [value for value in values if " " in value]
        if len(table.sentences) == 1 and not name.startswith(IGNORED) and 2 * len(texts) > len(values):
            raise CorpusError(
                f"{source}, line {table.starts[0] + values.index(texts[0])}: '{shortened(texts[0], 40)}' is "
                "a text and no word, and no blank line ends a sentence. A file of words has a word a line; "
                "the first line of a file of texts names its columns, such as text and label."
            )
    tasks = [
        (name, place)
        for place, name in enumerate(columns)
        if place != tokens and not name.startswith(IGNORED)
    ]
    labels = _labels_of_comments(table, source, of_sentences)
    return tuple(
        Sentence(
            sentence[tokens],
            {name: sentence[place] for name, place in tasks} | labels.get(number, {}),
            text_tasks=tuple(of_sentences),
        )
        for number, sentence in enumerate(table.sentences)
    )


def _labels_of_comments(
    table: Table, source: Source, tasks: Sequence[str]
) -> dict[int, dict[str, tuple[str, ...]]]:
    """By sentence, the labels that the comments before it have for these tasks."""
    labels: dict[int, dict[str, tuple[str, ...]]] = {}
    for comment in table.comments if tasks else ():
        name, value = comment.label or ("", "")
        if name not in tasks:
            continue
        of_sentence = labels.setdefault(comment.sentence, {})
        if name in of_sentence:
            raise CorpusError(
                f"{source}, line {comment.line}: this is the second comment '{name}' before one sentence; "
                "keep one of them."
            )
        of_sentence[name] = (intern(value),)
    return labels


def read_table(source: Source, columns: Sequence[str] | None = None) -> Table:
    """The columns of a file, without names. `columns`, where given, says how many fields each row must have.

    Blank lines, `-DOCSTART-` lines and `#begin document` end a sentence. Comments before a sentence and a
    first line that names the columns are left out. A sentence may begin with the word `#`.

    Raises CorpusError with file, line and what was expected.
    """
    lines = Lines(source)
    first, line = _first_word_line(lines)
    separator = "\t" if "\t" in line.strip(" ") else " "
    width, expectation = len(_fields(line, separator)), f"as on line {first}"
    if columns:
        width, expectation = len(columns), f"({', '.join(columns)})"
    elif width > _MOST_COLUMNS:
        raise CorpusError(f"{source}, line {first}: has {width:,} columns and the most is {_MOST_COLUMNS}.")
    sentences: list[tuple[tuple[str, ...], ...]] = []
    starts: list[int] = []
    rows: list[tuple[str, ...]] = []
    comments: list[Comment] = []
    left_out: dict[str, LeftOut] = {}
    empty: dict[int, int] = {}
    suspects: dict[int, str] = {}  # by sentence, a first row that may be a comment

    def leave_out(what: str, number: int, line: str) -> None:
        seen = left_out.get(what)
        left_out[what] = replace(seen, count=seen.count + 1) if seen else LeftOut(what, 1, number, line)

    # Lines come again and again: each is taken apart and checked once.
    known: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(chain(lines, [""]), start=1):
        fields = known.get(line)
        if fields is None:
            line = line if separator == "\t" else line.strip(" ")
            if not line.strip(_BLANKS) or is_document_mark(line):
                if rows:
                    sentences.append(tuple(zip(*rows, strict=True)))
                    rows = []
                if line:
                    leave_out(_kind_of_mark(line), number, line)
                continue
            fields = _fields(line, separator)
            if not rows and _COMMENT.match(line) and (len(fields) != width or _METADATA.match(line)):
                comments.append(Comment(len(sentences), number, line))
                continue
            if problem := _problem(line, fields, width, expectation, separator):
                raise CorpusError(f"{source}, line {number}: {problem}")
            known[line] = fields
        if "" in fields:
            for place, field in enumerate(fields):
                if not field:
                    empty.setdefault(place, number)
        if not rows:
            if width > 1 and line.startswith("#") and _COMMENT.match(line):
                suspects[len(sentences)] = line
            starts.append(number)
        rows.append(fields)
    if suspects:
        surely_words = known.keys() - set(suspects.values())
        seen = _values(known[line] for line in surely_words)
        for place, suspect in sorted(suspects.items(), reverse=True):
            if all(map(_is_new, known[suspect][1:], seen[1:] or repeat(()))):
                comments.append(Comment(place, starts[place], suspect))
                _drop_first_row(sentences, starts, comments, place)
    header = None
    if sentences:
        first_row: tuple[str, ...] = tuple(column[0] for column in sentences[0])
        words = _header(first_row, [fields for fields in known.values() if fields != first_row])
        if words is not None:
            header = tuple(TOKENS if place == words else name for place, name in enumerate(first_row))
            leave_out(HEADERS, starts[0], separator.join(first_row))
            _drop_first_row(sentences, starts, comments, 0)
    if not sentences:
        raise CorpusError(f"{source} holds no sentence; it must hold at least one.")
    return Table(sentences, starts, separator, header, sorted(comments), tuple(left_out.values()), empty)


def is_document_mark(line: str) -> bool:
    """Whether a line says that a document begins or ends: `-DOCSTART- -X- O`, `#begin document (x)`."""
    return _DOCSTART.match(line) is not None or _DOCUMENT.match(line) is not None


def _kind_of_mark(line: str) -> str:
    return "document marks" if line.strip(_BLANKS) else "lines of spaces or tabs"


def may_be_comment(line: str) -> bool:
    """Whether a line looks like a comment: `# text = …`, `#id=5`. A word may look so too."""
    return line.startswith("#") and _COMMENT.match(line) is not None


def _first_word_line(lines: Iterable[str]) -> tuple[int, str]:
    """The first line that holds a word, and its number; where all begin with `#`, the first that may."""
    numbered = enumerate(lines, start=1)
    rows = ((n, line) for n, line in numbered if line.strip(_BLANKS) and not is_document_mark(line))
    first = next(rows, (1, ""))
    return next((row for row in chain([first], rows) if not _COMMENT.match(row[1].strip(" "))), first)


def _fields(line: str, separator: str) -> tuple[str, ...]:
    fields = (intern(field.strip(" ")) for field in line.split(separator))
    return tuple(fields) if separator == "\t" else tuple(filter(None, fields))


def _values(rows: Iterable[Sequence[str]]) -> list[set[str]]:
    """The different values of each column."""
    return list(map(set, zip(*rows, strict=True)))


def _is_new(value: str, seen: Container[str]) -> bool:
    return value not in seen


def _drop_first_row(
    sentences: list[tuple[tuple[str, ...], ...]], starts: list[int], comments: list[Comment], place: int
) -> None:
    """Drops the first word of a sentence, and the sentence where no other is left."""
    sentences[place] = tuple(column[1:] for column in sentences[place])
    starts[place] += 1
    if not sentences[place][0]:
        del sentences[place], starts[place]
        comments[:] = [each._replace(sentence=each.sentence - (each.sentence > place)) for each in comments]


def _header(first: Sequence[str], others: Collection[Sequence[str]]) -> int | None:
    """The place of the column of words, where the first row of a file names its columns; else None.

    `others` are the different rows. A name occurs nowhere else in its column. One is a known name of words,
    or all but one are known names of labels; in few rows, of spans.
    """
    names = [field.lower() for field in first]
    words = [place for place, name in enumerate(names) if name in _WORD_NAMES]
    has_many = len(others) >= _ROWS_FOR_A_HEADER
    seen = _values(others) or [set()] * len(first)
    if not words:
        words = [place for place, name in enumerate(names) if not _SURELY_LABELS.fullmatch(name)]
        if len(words) != 1 or not (has_many or any(notation([list(values)]) for values in seen)):
            return None
    labels = [place for place in range(len(first)) if place != words[0]]
    is_known = has_many or any(_LABEL_NAMES.fullmatch(names[place]) for place in labels)
    is_header = bool(labels) and is_known and all(first[place] not in seen[place] for place in labels)
    return words[0] if is_header else None


def _problem(line: str, fields: Sequence[str], width: int, expectation: str, separator: str) -> str | None:
    """The problem of a line that holds a word; None where there is none."""
    if "\0" in line:
        return "holds a zero byte; save the file as UTF-8 text."
    if separator == " " and "\t" in line:
        return "holds a tab, and the columns of this file are separated by spaces; use one of the two."
    if len(fields) != width:
        name = "tabs" if separator == "\t" else "spaces"
        hint = " A comment begins with '# '." if line.startswith("#") else ""
        return f"expected {width} columns {expectation} separated by {name}, but found {len(fields)}.{hint}"
    return None


CONLLU_TASKS = {"upos": 3, "xpos": 4, "deprel": 7}
"""The tasks that are a whole column, with its number, counted from 0."""

FEATURE = "feats:"
"""The prefix of the names of tasks that are a feature of FEATS."""

OTHER_COLUMNS = ("lemma", "feats", "head", "deps", "misc")
"""The columns that are no tasks themselves."""

ONLY_TASKS = (
    f"The tasks of CoNLL-U are {', '.join(CONLLU_TASKS)} and each feature, as {FEATURE}Number. To learn "
    "another column, write the words and it as CoNLL columns (.conll)."
)

CONLLU_WIDTH = 10
_FEATS = 5
_NO_LABEL = "_"
_NOT_A_WORD = re.compile(r"\d+-\d+|\d+\.\d+")


def read_conllu(
    source: Source, features: Sequence[str] | None = None
) -> tuple[tuple[Sentence, ...], tuple[str, ...]]:
    """The sentences of a CoNLL-U file, and notes on the lines that were left out.

    `features` are the tasks to make of FEATS; None: all that the file has. Raises CorpusError with file, line
    and what was expected.
    """
    sentences: list[list[list[str]]] = []
    rows: list[list[str]] = []
    left_out = 0
    no_values: list[tuple[int, str]] = []
    for number, line in enumerate(chain(Lines(source), [""]), start=1):
        is_blank = not line.strip(_BLANKS)
        if is_blank and rows:
            sentences.append(rows)
            rows = []
        if is_blank or line.startswith("#"):
            continue
        fields = [field.strip(" ") for field in line.split("\t")]
        problem = _problem(line, fields, CONLLU_WIDTH, "of CoNLL-U", "\t")
        if problem is None and "" in fields:
            problem = f"column {fields.index('') + 1} is empty."
        is_word = not _NOT_A_WORD.fullmatch(fields[0])
        if problem is None and is_word and fields[0] != str(len(rows) + 1):
            problem = (
                f"expected word number {len(rows) + 1} in the first column, but found '{fields[0]}'; "
                "sentences end with an empty line."
            )
        if problem is not None:
            raise CorpusError(f"{source}, line {number}: {problem}")
        if is_word:
            rows.append(fields)
            if unread := [
                pair for pair in fields[_FEATS].split("|") if "=" not in pair and pair != _NO_LABEL
            ]:
                no_values.append((number, unread[0]))
        left_out += not is_word
    if not sentences:
        raise CorpusError(f"{source} holds no sentence; it must hold at least one.")
    notes = []
    if left_out:
        rows_left_out = plural(left_out, "row")
        notes.append(f"{source.name}: {rows_left_out} of multiword ranges and empty nodes left out.")
    if no_values:
        number, text = no_values[0]
        notes.append(
            f"{source.name}: the FEATS of {plural(len(no_values), 'word')} have a feature without a value, "
            f"which is left out (the first on line {number}: '{shortened(text, 40)}'); write Name=Value."
        )
    values = {row[_FEATS]: _features(row[_FEATS]) for rows in sentences for row in rows}
    occurring = sorted({task for labels in values.values() for task in labels})
    features = (occurring if features is None else features) if occurring else ()
    return tuple(_sentence(rows, values, features) for rows in sentences), tuple(notes)


def _features(text: str) -> dict[str, str]:
    """The label of each task that a word's FEATS, `Number=Sing|Person=3`, give it."""
    pairs = [feature.partition("=") for feature in text.split("|") if "=" in feature]
    return {intern(FEATURE + name): intern(value) for name, _, value in pairs}


def _sentence(
    rows: Sequence[Sequence[str]], values: Mapping[str, Mapping[str, str]], features: Sequence[str]
) -> Sentence:
    columns = {task: tuple(intern(row[place]) for row in rows) for task, place in CONLLU_TASKS.items()}
    labels = {task: column for task, column in columns.items() if set(column) != {_NO_LABEL}}
    of_words = [values[row[_FEATS]] for row in rows]
    without = _unlabelled(len(rows))
    has = set().union(*of_words)
    labels |= {
        task: tuple(word.get(task, _NO_LABEL) for word in of_words) if task in has else without
        for task in features
    }
    return Sentence(tuple(row[1] for row in rows), labels)


@cache
def _unlabelled(words: int) -> tuple[str, ...]:
    """The column of a feature that no word of a sentence has: one for all sentences of that length."""
    return (_NO_LABEL,) * words
