"""The lines of CoNLL columns: which are words, comments or document marks, and what separates their fields.

Most lines tell by themselves. Where a line has all columns and looks like a comment, the other lines decide.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from core.corpora.readers.lines import BLANKS
from core.wording import any_of

_DOCSTART = re.compile(r"[ \t]*(\d+[ \t]+)?-DOCSTART-([ \t]|$)", re.IGNORECASE)
_DOCUMENT = re.compile(r"#\s*(begin|end) document\b")
# A line that may be a comment, one that surely is, and one that also ends a sentence.
_COMMENT = re.compile(r"#+(\s|$)|#\s*[\w.-]+\s*[=:]|#(begin|end)\b")
_METADATA = re.compile(r"#\s+\S+\s*=|#\S+\s+=\s|#+\s+[\w.-]+:\s")
_LABEL = re.compile(r"#+\s*([\w.-]+):\s+(\S.*)")
# A first field that is a comment only by what follows it: `#`, `#Apple:`; and a label of a span.
_MARK = re.compile(r"#+\s*([\w.-]+\s*[=:])?")
_SPAN = re.compile(r"[A-Z]-\S+")
# `###MEDLINE:1` alone in its line; `##ing` with a label is a piece of a word.
_DOCUMENT_NAME = re.compile(r"##+[^#]\S*")
_LINES_SEEN = 1000
# Of so many lines one is of another width: rows are ragged, where there are two at least.
_RAGGED = 10


def is_document_mark(line: str) -> bool:
    """Whether a line says that a document begins or ends: `-DOCSTART- -X- O`, `#begin document (x)`."""
    return _DOCSTART.match(line) is not None or _DOCUMENT.match(line) is not None


def is_document_name(fields: Sequence[str], width: int) -> bool:
    """Whether a line at the start of a sentence is the name of a document: `###MEDLINE:1`."""
    return len(fields) == 1 < width and _DOCUMENT_NAME.fullmatch(fields[0]) is not None


def may_be_comment(line: str) -> bool:
    """Whether a line looks like a comment: `# text = …`, `#id=5`. A word may look so too."""
    return line.startswith("#") and _COMMENT.match(line) is not None


def comment_label(text: str) -> tuple[str, str] | None:
    """The name and the value of a comment, as `intent` and `x` of `# intent: x`."""
    parts = _LABEL.fullmatch(text.strip())
    return None if parts is None else (parts[1], parts[2])


def split_fields(line: str, separator: str) -> tuple[str, ...]:
    """The fields of a line, without spaces around them. Any number of spaces separates, or one tab."""
    fields = line.split(separator)
    return tuple([field.strip(" ") for field in fields] if separator == "\t" else filter(None, fields))


@dataclass(frozen=True)
class LineShape:
    """What the first lines that hold words have in common.

    separator  what stands between columns: a tab, or any number of spaces
    width      how many columns there are
    line       the number of the first line with so many
    widths     how many lines have how many columns
    """

    separator: str
    width: int
    line: int
    widths: Counter[int]

    @classmethod
    def of(cls, lines: Iterable[str]) -> LineShape:
        """The shape of most of the first lines of a file; where none are most, that of the first of them."""
        numbered = _word_lines(lines)
        tabs = ["\t" in line.strip(" ") for _, line in numbered]
        separator = "\t" if _is_most(tabs, tabs[0]) else " "
        sizes = [len(split_fields(line, separator)) for _, line in numbered]
        widths = Counter(sizes)
        ((width, often),) = widths.most_common(1)
        width = width if 2 * often > len(sizes) else sizes[0]
        return cls(separator, width, numbered[sizes.index(width)][0], widths)

    def advice(self, line: int) -> str:
        """What to do with a line of this number that has another number of columns."""
        others = [width for width in self.widths if width != self.width]
        count = sum(self.widths[width] for width in others)
        if count > 1 and count * _RAGGED >= self.widths.total():
            widths = any_of([f"{width:,}" for width in sorted(self.widths)])
            return f" Lines here have {widths} columns; write _ in each column that has nothing for a word."
        if line < self.line:
            return " If it is a title or the like, delete it, or begin it with '# '."
        return ""

    def is_comment(self, line: str, fields: Sequence[str], width: int) -> bool:
        """Whether a line at the start of a sentence is a comment by itself."""
        if _COMMENT.match(line) is None or len(fields) != width:
            return _COMMENT.match(line) is not None
        if self.separator == " ":
            return _METADATA.match(line) is not None
        # What only the tab makes one is a word and its label: `#Apple:\tB-ORG`.
        return any(form.match(fields[0]) for form in (_METADATA, _LABEL))

    def may_be_comment(self, line: str, fields: Sequence[str]) -> bool:
        """Whether a line with all columns may be a comment, by its form: other lines decide."""
        if len(fields) == 1 or not may_be_comment(line):
            return False
        mark, *values = fields
        if not _MARK.fullmatch(mark):
            return True
        if self.separator == "\t":
            return any(" " in value for value in values)
        has_text = any(map(str.isalnum, "".join(values)))
        return has_text and (set(mark) == {"#"} or not any(map(_SPAN.fullmatch, values)))


def _word_lines(lines: Iterable[str]) -> list[tuple[int, str]]:
    """The first lines that hold words, with their numbers; where all begin with `#`, the first that may."""
    numbered = enumerate(lines, start=1)
    rows = ((n, line) for n, line in numbered if line.strip(BLANKS) and not is_document_mark(line))
    first = next(rows, (1, ""))
    words = (row for row in chain([first], rows) if not _is_mark(row[1].strip(" ")))
    return list(islice(words, _LINES_SEEN)) or [first]


def _is_mark(line: str) -> bool:
    return _COMMENT.match(line) is not None or _DOCUMENT_NAME.fullmatch(line) is not None


def _is_most(flags: Sequence[bool], first: bool) -> bool:
    """Whether most are true; where half are, what the first one is."""
    count = 2 * sum(flags)
    return first if count == len(flags) else count > len(flags)
