"""Text that a researcher hands over to have it tagged, with or without gold labels: pasted, or a file.

What a `.txt` file holds is found out; `.conllu` is CoNLL-U; everything else is CoNLL columns, words alone
included. The reader may say otherwise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from core.corpora.layout.column_names import IGNORED, TOKENS
from core.corpora.layout.contents import is_numbering
from core.corpora.readers.char_spans import Counted, span_notes
from core.corpora.readers.conll import Table, left_out_notes, named, read_table
from core.corpora.readers.conll_names import check_names, name_columns
from core.corpora.readers.conllu import CONLLU_WIDTH, is_conllu, read_conllu
from core.corpora.readers.line_marks import is_document_mark, may_be_comment
from core.corpora.readers.lines import GivenFile, marks_inside, read_lines
from core.corpora.readers.splitting import (
    PlacedWord,
    has_unspaced_script,
    joined_words,
    place_words,
    split_words,
)
from core.corpora.readers.webanno import is_webanno, webanno_rows
from core.corpora.types import Column, Sentence, Sentences
from core.errors import CorpusError
from core.tasks import KINDS, tasks_reading
from core.tasks.schemes import OddLabel, read_column

Layout = Literal["text", "split", "words", "columns", "conllu"]
LAYOUTS: Mapping[Layout, str] = {
    "text": "text, a sentence a line",
    "split": "sentences a line, already split into words",
    "words": "a word a line, empty lines between sentences",
    "columns": "columns",
    "conllu": "CoNLL-U",
}
"""How a file is laid out, in words."""
Line = Callable[[int, int], int]
"""The line of a word: the number of its sentence, and its number in that, both from 0."""

_TEXT = ".txt"
_MOST_LINES_SEEN = 5000
_NEARLY_ALL = 0.95
_LABEL = re.compile(r"[A-Z][A-Z0-9$|_.-]*|[A-Z]-\S+|[^\w\s]+|_")
# A column with fewer kinds of values than one in ten rows holds labels, however they are written.
_ROWS_PER_LABEL = 10


@dataclass(frozen=True)
class GivenText:
    """Given sentences with the gold labels of some tasks or of none; labels of span tasks are IOB2.

    `layout` says how they were read, `columns` how the columns were named, from left to right. `lines` are
    the lines of text that were split, one for each sentence; None where the words were given.
    """

    sentences: Sequence[Sentence]
    notes: tuple[str, ...] = ()
    layout: Layout = "text"
    columns: tuple[str, ...] = ()
    lines: tuple[str, ...] | None = None

    @property
    def gold(self) -> tuple[str, ...]:
        """The tasks that some sentence has gold labels of."""
        return tuple(dict.fromkeys(task for sentence in self.sentences for task in sentence.labels))

    def placed_words(self, number: int) -> tuple[str, list[PlacedWord]]:
        """The text of a sentence and its words with their places in it. Words without a text are joined."""
        words = self.sentences[number].tokens
        if self.lines is None:
            return joined_words(words)
        line = self.lines[number]
        return line, place_words(line, [words], has_invisible=self.layout == "split")[0]

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
        unspaced = sum(has_unspaced_script(row[0]) for row in rows)
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
    word_tasks = tuple(tasks_reading(schemes, "words"))
    sentence_tasks = tuple(task for task in schemes if task not in word_tasks)
    if layout is None and columns is None and is_webanno(file):
        return _webanno(file, schemes, word_tasks)
    if layout is None:
        layout = "columns" if columns and not is_conllu(name) else layout_of(file)
    if layout == "conllu":
        sentences, notes = read_conllu(file)
        return GivenText(_in_iob2(sentences, schemes, name), notes, layout)
    if layout in ("text", "split"):
        split = str.split if layout == "split" else split_words
        lines = [(line, words) for line in read_lines(file) if (words := split(line))]
        unlabelled = tuple(Sentence(tuple(words), {}) for _, words in lines)
        return GivenText(unlabelled, (), layout, lines=tuple(line for line, _ in lines))
    if layout == "words":
        columns = (TOKENS,)
    elif columns:
        check_names(columns, word_tasks)
    table = read_table(file, columns)
    names = tuple(columns or _names(table, file, word_tasks))
    sentences = _in_iob2(named(table, names, file, sentence_tasks), schemes, name, table.line)
    notes = (*filter(None, [marks_inside(file)]), *left_out_notes({name: table}, sentence_tasks))
    return GivenText(sentences, notes, layout, names if layout == "columns" else ())


def _webanno(file: GivenFile, schemes: Mapping[str, str], tasks: Sequence[str]) -> GivenText:
    """The sentences of a file of WebAnno, with the gold labels of these tasks."""
    counts: Counter[Counted] = Counter()
    rows = [row for _, row in webanno_rows(file, counts)]
    sentences = Sentences.of(
        Sentence(tuple(row[TOKENS]), {task: tuple(row[task]) for task in tasks if task in row})
        for row in rows
    )
    notes = span_notes({file.name: counts})
    return GivenText(_in_iob2(sentences, schemes, file.name), tuple(notes), "columns")


def _names(table: Table, file: GivenFile, tasks: Sequence[str]) -> tuple[str, ...]:
    """The names of the columns.

    They are words and all tasks in order where there are as many columns; else the header's names, or names
    by content.
    """
    is_plain = table.header is None and not is_numbering(table.column(0))
    if table.width == 1 or (is_plain and table.width == 1 + len(tasks)):
        return (TOKENS, *tasks)[: table.width]
    names = name_columns(table, file)
    return tuple(
        name if name in (TOKENS, *tasks) or name.startswith(IGNORED) else f"{IGNORED}{name}" for name in names
    )


def _in_iob2(
    sentences: Sentences, schemes: Mapping[str, str], name: str, line: Line | None = None
) -> Sentences:
    """Only the labels of these tasks, spans as IOB2 however they were written.

    `line` returns the line of a word. A sentence with a word that has no label of a span
    task is not annotated for it.
    """
    labels = {}
    for task, scheme in schemes.items():
        column = sentences.column(task)
        if KINDS[scheme].has_spans:
            column = _spans(task, column, name, line)
        labels[task] = column
    return replace(sentences, labels=labels)


def _spans(task: str, column: Column, name: str, line: Line | None) -> Column:
    try:
        spans = read_column({"given": column.rows}, needs_spans=True)
    except OddLabel as odd:
        number = int(column.at[odd.sentence])
        where = f"line {line(number, odd.word)}" if line else f"sentence {number + 1}"
        raise CorpusError(
            f"{name}, {where}: '{odd.label}' is no label of spans, which {task} has; {odd.advice}."
        ) from None
    return column if spans is None else Column(column.at[~spans.lacking["given"]], spans.labels["given"])
