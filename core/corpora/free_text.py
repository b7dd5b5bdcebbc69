"""Text that a researcher hands over to have it tagged, with or without gold labels: pasted, or a file.

What a `.txt` file holds is found out; `.conllu` is CoNLL-U; everything else is CoNLL columns, words alone
included. The reader may say otherwise.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import Literal, NamedTuple

from core.corpora.columns import check_names, is_conllu, is_numbering, name_columns
from core.corpora.readers import CONLLU_WIDTH, IGNORED, TOKENS, GivenFile, read_conllu, read_lines
from core.corpora.tables import (
    Table,
    is_document_mark,
    left_out_notes,
    may_be_comment,
    named,
    read_table,
)
from core.corpora.types import Column, Sentence, Sentences
from core.errors import CorpusError
from core.tasks import KINDS, reading
from core.tasks.schemes import OddLabel, read_column

# Rules of our own instead of pysbd 0.3.4: that drops characters it uses as marks inside (a property test here
# forbids it), and its time grows with the square of the text: 25 s for 72 kB, where these take 0.05 s. Of the
# cases of tests/unit/test_splitting.py sentencex 1.0 splits 8 of 11 as meant, NLTK's tokenizers 6 and 7 of 12
# (addresses, typographic apostrophes, other scripts); importing NLTK takes seconds.

# Abbreviations that a name or a number follows: their point never ends a sentence.
_TITLE_WORDS = """
    adm brig capt cmdr col cpl dr fig gen gov hon jr lt maj mme mr mrs ms mt no nos op pp prof rep rev sen sgt
    st vs jan feb mar apr jun jul aug sep sept oct nov dec e.g i.e cf approx z.b d.h
"""
# Abbreviations that may also end one: it does where a word follows that often begins a sentence.
_OTHER_WORDS = "ave bros calif co corp dept est etc fla inc ltd mass mo sr univ va a.m p.m al"
_BEGINNING_WORDS = """
    a after all an and as at but by during for from he her his however i if in it its last meanwhile more most
    no on one our she since so some that the their there these they this those to under we what when while who
    with yesterday you
"""
_TITLES, _OTHERS = frozenset(_TITLE_WORDS.split()), frozenset(_OTHER_WORDS.split())
_BEGINNERS = frozenset(_BEGINNING_WORDS.split())

# Not to be seen, and no part of a word: marks of direction or byte order, soft hyphens, zero-width spaces.
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_ADDRESS = r"https?://[^\s<>\"]*[\w/]|www\.[^\s<>\"]*[\w/]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_EMOJI = "[\u2600-\u27bf\U0001f000-\U0001faff]"
_EMOJI_SEQUENCE = (
    "[\U0001f1e6-\U0001f1ff]{2}|"
    f"{_EMOJI}[\ufe0f\U0001f3fb-\U0001f3ff]*(?:\u200d{_EMOJI}[\ufe0f\U0001f3fb-\U0001f3ff]*)*"
)
_CLITIC = re.compile(r"(.+?)(n['’]t|['’](?:s|re|ve|ll|d|m))", re.IGNORECASE)
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")

# Where a sentence may end: points or marks, what closes behind them, then space and the next word.
_END = re.compile(r"([.!?…]+)[\"'”’»)\]]*(?=\s+(\S+))|[。！？।]+[”’」』）]*")
_OPENING = "\"'“‘«([„"
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{3}")


def split_sentences(text: str) -> list[list[str]]:
    """The words of each sentence of a free text, by English rules that do no harm elsewhere.

    Scripts written without spaces (Chinese, Japanese, Thai) are split into sentences, not into words.
    An empty line ends a sentence. So does the end of a line, unless the next goes on in lower case, as lines
    that were wrapped do.
    """
    pieces = [piece for line in _joined_lines(_INVISIBLE.sub("", text)) for piece in _cut(line)]
    return [words for words in map(split_words, pieces) if words]


class PlacedWord(NamedTuple):
    """A word and its place: the characters of the text from `start` up to, not including, `end`."""

    word: str
    start: int
    end: int


def placed_sentences(text: str) -> list[list[PlacedWord]]:
    """The sentences of `split_sentences`, with the place of each word in the text."""
    kept = [position for position, mark in enumerate(text) if not _INVISIBLE.match(mark)]
    seen = _INVISIBLE.sub("", text)
    end = 0

    def placed(word: str) -> PlacedWord:
        nonlocal end
        start = seen.index(word, end)
        end = start + len(word)
        return PlacedWord(word, kept[start], kept[end - 1] + 1)

    return [list(map(placed, words)) for words in split_sentences(text)]


def split_words(text: str) -> list[str]:
    """Words and punctuation marks of one sentence.

    Abbreviations keep their point and numbers their marks; clitics ('s, n't) are words of their own.
    """
    words: list[str] = []
    text = _INVISIBLE.sub("", text).strip()
    position = 0
    for match in _word().finditer(text):
        word = match[0]
        if match.start() < position:
            continue  # the point that an abbreviation before has taken
        position = match.end()
        # A lone letter before the very last point is a word (vitamin C.), before any other an initial.
        last = position + 1 >= len(text)
        is_one_point = text.startswith(".", position) and not text.startswith("..", position)
        if is_one_point and _abbreviates(word, last):
            word, position = word + ".", position + 1
        clitic = None if "@" in word or "/" in word else _CLITIC.fullmatch(word)
        words += clitic.groups() if clitic else (word,)
    return words


def given_sentences(text: str) -> list[list[str]]:
    """The sentences of a text that is already split: words between spaces, a sentence a line.

    Where no line holds more than one, words stand below each other, and an empty line ends a sentence.
    """
    lines = [line.split() for line in text.splitlines()]
    if sum(map(bool, lines)) < 2 or any(len(line) > 1 for line in lines):
        return [line for line in lines if line]
    sentences: list[list[str]] = [[]]
    for line in lines:
        if line:
            sentences[-1] += line
        elif sentences[-1]:
            sentences.append([])
    return [sentence for sentence in sentences if sentence]


def has_unspaced_script(text: str) -> bool:
    """Whether part of the text is in a script that sets no spaces between words."""
    return _UNSPACED.search(text) is not None


def _abbreviates(word: str, last: bool) -> bool:
    if _INITIALS.fullmatch(word):
        return "." in word or (word.isupper() and not last)
    return word.casefold() in _OTHERS or (word.casefold() in _TITLES and not last)


def _joined_lines(text: str) -> Iterator[str]:
    """The lines, with each line that begins in lower case joined to the one before."""
    current = ""
    for line in map(str.strip, text.splitlines()):
        if current and line[:1].islower():
            current += " " + line
            continue
        if current:
            yield current
        current = line
    if current:
        yield current


def _cut(line: str) -> Iterator[str]:
    """The sentences of a line."""
    start = 0
    for end in _END.finditer(line):
        if end[1] is None or _ends(line[start : end.start()], end[1], end[2]):
            yield line[start : end.end()]
            start = end.end()
    if line[start:].strip():
        yield line[start:]


def _ends(before: str, marks: str, following: str) -> bool:
    """Whether a sentence ends with these marks, between the text before and the word that follows."""
    following = following.lstrip(_OPENING)
    if following[:1].islower():
        return False
    if marks != ".":
        return True
    words = before.split()
    word = words[-1].lstrip(_OPENING) if words else ""
    if not words or (len(words) == 1 and word.isdecimal()):
        return False  # the number of a list's entry
    begins = re.split(r"\W", following.casefold(), maxsplit=1)[0] in _BEGINNERS
    if word.casefold() in _TITLES:
        # No is also a word, May and the like too; only before a number or a name are they cut short.
        return word.casefold() == "no" and not following[:1].isdecimal()
    if word.casefold() in _OTHERS or (_INITIALS.fullmatch(word) and "." in word):
        return begins
    return not (_INITIALS.fullmatch(word) and word.isupper() and word != "I") or begins


@cache
def _word() -> re.Pattern[str]:
    """Compiled on first use: the marks that combine with letters (accents, vowel signs) are looked up.

    Python's `\\w` leaves them out, which would cut Hindi words and decomposed accents in pieces.
    """
    marks = [code for code in range(0x300, 0xFE00) if unicodedata.category(chr(code))[0] == "M"]
    letter = rf"[\w{''.join(map(chr, marks))}]"
    inner = r"(?:[-'’.&]|(?<=\d)[,:/](?=\d)|\u200c|\u200d)"
    return re.compile(
        rf"{_ADDRESS}|{letter}+(?:{inner}{letter}+)*|{_EMOJI_SEQUENCE}|\.{{2,}}|-{{2,}}|[^\w\s]"
    )


Layout = Literal["text", "split", "words", "columns", "conllu"]
LAYOUTS: Mapping[Layout, str] = {
    "text": "text, a sentence a line",
    "split": "sentences a line, already split into words",
    "words": "a word a line, empty lines between sentences",
    "columns": "columns",
    "conllu": "CoNLL-U",
}
"""How a file is laid out, in words."""

_TEXT = ".txt"
_MOST_LINES_SEEN = 5000
_NEARLY_ALL = 0.95
_LABEL = re.compile(r"[A-Z][A-Z0-9$|_.-]*|[A-Z]-\S+|[^\w\s]+|_")
# A column with fewer kinds of values than one in ten rows holds labels, however they are written.
_ROWS_PER_LABEL = 10


@dataclass(frozen=True)
class GivenText:
    """Given sentences with the gold labels of some tasks or of none; labels of span tasks are IOB2.

    `layout` says how they were read, `columns` how the columns were named, from left to right.
    """

    sentences: Sequence[Sentence]
    notes: tuple[str, ...] = ()
    layout: Layout = "text"
    columns: tuple[str, ...] = ()

    @property
    def gold(self) -> tuple[str, ...]:
        """The tasks that some sentence has gold labels of."""
        return tuple(dict.fromkeys(task for sentence in self.sentences for task in sentence.labels))

    @property
    def read_as(self) -> str:
        """How it was read: `columns: 1 word, 2 pos, 3 skipped, 4 ner`."""
        meaning = {TOKENS: "word"} | {name: "skipped" for name in self.columns if name.startswith(IGNORED)}
        columns = [f"{number} {meaning.get(name, name)}" for number, name in enumerate(self.columns, start=1)]
        return ": ".join(filter(None, (LAYOUTS[self.layout], ", ".join(columns))))


def layout_of(file: GivenFile) -> Layout:
    """How a file is laid out.

    The ending decides, but for `.txt`: there nearly all lines must have the same number of columns, one of
    them with labels, or hold one word each with empty lines between sentences; else it is text.
    """
    if not file.name.lower().endswith(_TEXT):
        return "conllu" if is_conllu(file.name) else "columns"
    blocks = [
        [_fields(line) for line in block if not (is_document_mark(line) or may_be_comment(line))]
        for is_empty, block in groupby(read_lines(file)[:_MOST_LINES_SEEN], key=lambda line: not line.strip())
        if not is_empty
    ]
    rows = [row for block in blocks for row in block]
    if not rows:
        return "text"
    ((width, often),) = Counter(map(len, rows)).most_common(1)
    if often < _NEARLY_ALL * len(rows):
        return "text"
    if width == 1:
        unspaced = sum(_UNSPACED.search(row[0]) is not None for row in rows)
        return "words" if sum(map(bool, blocks)) > 1 and 2 * unspaced < len(rows) else "text"
    columns = list(zip(*(row for row in rows if len(row) == width), strict=True))
    if width == CONLLU_WIDTH and all(value[:1].isdigit() for value in columns[0]):
        return "conllu"
    return "columns" if any(map(_are_labels, columns)) else "text"


def _fields(line: str) -> list[str]:
    return line.split("\t") if "\t" in line else line.split()


def _are_labels(values: Sequence[str]) -> bool:
    kinds = set(values)
    written_as_labels = sum(_LABEL.fullmatch(value) is not None for value in values)
    if written_as_labels >= _NEARLY_ALL * len(values):
        return len(kinds) > 1 and bool(kinds - {"A", "I", "O"})
    return 1 < len(kinds) <= len(values) / _ROWS_PER_LABEL


def read_given(
    content: bytes,
    name: str,
    schemes: Mapping[str, str],
    *,
    columns: Sequence[str] | None = None,
    layout: Layout | None = None,
) -> GivenText:
    """The content of a file of that name, or of a text that was pasted.

    Without `layout` it is `layout_of`; a file whose `columns` are named holds columns. Columns without names
    are the words and, where there are as many, the tasks in order; else they are named by what is in them.
    `schemes` has the kind of each task on words or sentences; gold labels of other tasks are left out.
    Raises CorpusError: what is wrong, in which line, and what was expected.
    """
    file = GivenFile(name, content)
    word_tasks = tuple(reading(schemes, "words"))
    sentence_tasks = tuple(task for task in schemes if task not in word_tasks)
    if layout is None:
        layout = "columns" if columns and not is_conllu(name) else layout_of(file)
    if layout == "conllu":
        sentences, notes = read_conllu(file)
        return GivenText(_in_iob2(sentences, schemes, name), notes, layout)
    if layout in ("text", "split"):
        words = [line.split() if layout == "split" else split_words(line) for line in read_lines(file)]
        return GivenText(tuple(Sentence(tuple(line), {}) for line in words if line), (), layout)
    if layout == "words":
        columns = (TOKENS,)
    elif columns:
        check_names(columns, word_tasks)
    table = read_table(file, columns)
    names = tuple(columns or _names(table, file, word_tasks))
    sentences = _in_iob2(named(table, names, file, sentence_tasks), schemes, name, table.starts.tolist())
    notes = tuple(left_out_notes({name: table}, sentence_tasks))
    return GivenText(sentences, notes, layout, names if layout == "columns" else ())


def _names(table: Table, file: GivenFile, tasks: Sequence[str]) -> tuple[str, ...]:
    """The names of the columns.

    They are words and all tasks in order where there are as many columns; else the header's names, or names
    by content.
    """
    is_plain = table.header is None and not is_numbering(table.column(0))
    if table.width == 1 or (is_plain and table.width == 1 + len(tasks)):
        return (TOKENS, *tasks)[: table.width]
    found = name_columns(table, file)
    return tuple(
        name if name in (TOKENS, *tasks) or name.startswith(IGNORED) else f"{IGNORED}{name}" for name in found
    )


def _in_iob2(
    sentences: Sentences, schemes: Mapping[str, str], name: str, starts: Sequence[int] = ()
) -> Sentences:
    """Only the labels of these tasks, spans as IOB2 however they were written.

    `starts` has the line of each sentence's first word. A sentence with a word that has no label of a span
    task is not annotated for it.
    """
    labels = {}
    for task, scheme in schemes.items():
        column = sentences.column(task)
        if KINDS[scheme].has_spans:
            column = _spans(task, column, name, starts)
        labels[task] = column
    return replace(sentences, labels=labels)


def _spans(task: str, column: Column, name: str, starts: Sequence[int]) -> Column:
    try:
        spans = read_column({"given": column.rows}, needs_spans=True)
    except OddLabel as odd:
        number = int(column.at[odd.sentence])
        where = f"line {starts[number] + odd.word}" if len(starts) else f"sentence {number + 1}"
        raise CorpusError(
            f"{name}, {where}: '{odd.label}' is no label of spans, which {task} has; {odd.advice}."
        ) from None
    return column if spans is None else Column(column.at[~spans.lacking["given"]], spans.labels["given"])
