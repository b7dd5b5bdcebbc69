"""Text that a researcher hands over to have it tagged, with or without gold labels: pasted, or a file.

`.txt` holds a sentence a line, or CoNLL columns with labels; `.conllu` is CoNLL-U; everything else is CoNLL
columns, words alone included.
"""

from __future__ import annotations

import re
import tempfile
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TypeVar

from core.corpora.folder import CONLLU, check_names, name_columns
from core.corpora.readers import (
    IGNORED,
    TOKENS,
    Table,
    read_columns,
    read_conllu,
    read_lines,
    read_table,
    usual_rows,
)
from core.corpora.schemes import convert, looks_like_spans, notation
from core.corpora.types import Sentence
from core.errors import CorpusError

# Rules of our own instead of pysbd 0.3.4: that drops characters it uses as marks inside (a property test here
# forbids it), and its time grows with the square of the text: 25 s for 72 kB, where these take 0.05 s.

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


def split_words(text: str) -> list[str]:
    """Words and punctuation marks of one sentence.

    Abbreviations keep their point and numbers their marks; clitics ('s, n't) are words of their own.
    """
    words: list[str] = []
    text = _INVISIBLE.sub("", text).strip()
    place = 0
    for found in _word().finditer(text):
        word = found[0]
        if found.start() < place:
            continue  # the point that an abbreviation before has taken
        place = found.end()
        # A lone letter before the very last point is a word (vitamin C.), before any other an initial.
        last = place + 1 >= len(text)
        if text[place : place + 1] == "." and text[place : place + 2] != ".." and _abbreviates(word, last):
            word, place = word + ".", place + 1
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
    """Lines, those that go on in lower case joined to the one before."""
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
    """Whether a sentence ends with these marks, after what is before and with that word to follow."""
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
    places = [place for place in range(0x300, 0xFE00) if unicodedata.category(chr(place))[0] == "M"]
    letter = rf"[\w{''.join(map(chr, places))}]"
    inner = r"(?:[-'’.&]|(?<=\d)[,:/](?=\d)|\u200c|\u200d)"
    return re.compile(
        rf"{_ADDRESS}|{letter}+(?:{inner}{letter}+)*|{_EMOJI_SEQUENCE}|\.{{2,}}|-{{2,}}|[^\w\s]"
    )


TEXT = ".txt"
ENDINGS = ("txt", "conll", "tsv", "iob", "iob2", "bio", "col", "conllu")
"""The endings of files that can be tagged."""

_T = TypeVar("_T")

_FITS = 0.5  # a column is a task's where at least this share of its words has labels that the task knows


@dataclass(frozen=True)
class GivenTask:
    """A task that the text is to be tagged with: whether its labels are `iob2` or `plain`, and which."""

    name: str
    scheme: str
    labels: Sequence[str]


@dataclass(frozen=True)
class GivenText:
    """The sentences; each has the gold labels of some tasks, those of span tasks as IOB2, or of none."""

    sentences: tuple[Sentence, ...]
    notes: tuple[str, ...] = ()

    @property
    def gold(self) -> tuple[str, ...]:
        """The tasks that some sentence has gold labels of."""
        return tuple(dict.fromkeys(task for sentence in self.sentences for task in sentence.labels))


def propose_columns(content: bytes, name: str, tasks: Sequence[GivenTask]) -> tuple[str, ...]:
    """A name for each column, from left to right: `tokens`, the tasks that the columns hold gold labels of.

    A column whose labels fit none of the tasks gets a name that begins with `_`: it is read over.
    Raises CorpusError naming the line where the content cannot be read.
    """
    return _through_file(content, name, lambda path: _proposed(read_table(path), tasks))


def has_columns(content: bytes, name: str, tasks: Sequence[GivenTask]) -> bool:
    """Whether a file of that name is read as CoNLL columns, whose names can be proposed.

    A .txt file is where nearly all lines have the same number of fields, two or more, and one of the columns
    holds labels of spans or labels that a task knows. Raises CorpusError where it cannot be read.
    """
    ending = Path(name).suffix.lower()
    return ending != CONLLU and (
        ending != TEXT or _through_file(content, name, lambda path: _holds_labels(usual_rows(path), tasks))
    )


def read_given(
    content: bytes,
    name: str,
    tasks: Sequence[GivenTask],
    *,
    columns: Sequence[str] | None = None,
    split: bool = False,
) -> GivenText:
    """What is in a file of that name; a text that was pasted is read as CoNLL columns unless named .txt.

    `columns` names CoNLL columns where the proposed names are not right; `split` says that a .txt file holds
    lines that are already split into words. Gold labels of other tasks than these are left out.
    Raises CorpusError: what is wrong, in which line, and what was expected.
    """
    ending = Path(name).suffix.lower()
    if ending == CONLLU:
        given = _through_file(content, name, lambda path: GivenText(*read_conllu(path)))
    elif ending == TEXT and not columns and (split or not has_columns(content, name, tasks)):
        return _through_file(content, name, lambda path: _lines(path, split))
    else:
        chosen = tuple(columns) if columns else propose_columns(content, name, tasks)
        check_names(chosen, [task.name for task in tasks])
        given = _through_file(content, name, lambda path: GivenText(*read_columns(path, chosen)))
    return GivenText(_in_iob2(given.sentences, tasks, name), given.notes)


def _through_file(content: bytes, name: str, read: Callable[[Path], _T]) -> _T:
    """The strict readers take files; their errors then speak of the name that the researcher knows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "given"
        path.write_bytes(content)
        try:
            return read(path)
        except CorpusError as error:
            raise CorpusError(str(error).replace(str(path), name)) from error


def _lines(path: Path, split: bool) -> GivenText:
    words = (line.split() if split else split_words(line) for line in read_lines(path))
    return GivenText(tuple(Sentence(tuple(one), {}) for one in words if one))


def _holds_labels(table: Table | None, tasks: Sequence[GivenTask]) -> bool:
    """Whether some column holds labels. Punctuation marks alone do not count: they are words as well."""
    if table is None:
        return False
    columns = [table.column(place) for place in range(len(table.columns))]
    return any(
        notation(column) != "plain" or _fitting("", column, tasks) is not None
        for column in columns
        if any(map(str.isalpha, chain.from_iterable(set(column[0]) - {"O"})))
    )


def _proposed(table: Table, tasks: Sequence[GivenTask]) -> tuple[str, ...]:
    if len(table.columns) == 1:
        return (TOKENS,)
    named = name_columns(table)
    free = list(tasks)
    names = []
    for place, name in enumerate(named):
        column = table.column(place)
        best = None if name == TOKENS else _fitting(name, column, free)
        if best is not None:
            free.remove(best)
        names.append(name if name == TOKENS else best.name if best else f"{IGNORED}{place + 1}")
    return tuple(names)


def _fitting(name: str, column: Sequence[Sequence[str]], tasks: Sequence[GivenTask]) -> GivenTask | None:
    """The task that knows most of the column's labels, O left aside; of several, the one of that name."""
    written = notation(column)
    labels = [label for sentence in convert(column, written) for label in sentence]
    inside = [label for label in labels if label != "O"] or labels
    fits: dict[int, float] = {}
    for number, task in enumerate(tasks):
        is_spans = written != "plain" or set(labels) == {"O"}
        if is_spans == (task.scheme == "iob2"):
            kept = _type if is_spans else str
            known = set(map(kept, task.labels))
            fits[number] = sum(kept(label) in known for label in inside) / len(inside)
    best = max(fits, key=lambda number: (fits[number], tasks[number].name == name), default=None)
    return tasks[best] if best is not None and fits[best] >= _FITS else None


def _type(label: str) -> str:
    """The type of a span's label: a run may know B-PER only, and I-PER is gold for it none the less."""
    return label.partition("-")[2] or label


def _in_iob2(sentences: Sequence[Sentence], tasks: Sequence[GivenTask], name: str) -> tuple[Sentence, ...]:
    """Only the labels of these tasks, spans as IOB2 however they were written."""
    kept: list[dict[str, tuple[str, ...]]] = [{} for _ in sentences]
    for task in tasks:
        places = [place for place, one in enumerate(sentences) if task.name in one.labels]
        column = [sentences[place].labels[task.name] for place in places]
        if task.scheme == "iob2":
            column = _spans(column, task.name, name)
        for place, labels in zip(places, column, strict=True):
            kept[place][task.name] = labels
    return tuple(Sentence(one.tokens, labels) for one, labels in zip(sentences, kept, strict=True))


def _spans(column: Sequence[tuple[str, ...]], task: str, name: str) -> list[tuple[str, ...]]:
    converted = convert(column, notation(column))
    for number, labels in enumerate(converted, start=1):
        odd = next((label for label in labels if label != "O" and not looks_like_spans([label])), None)
        if odd is not None:
            raise CorpusError(
                f"{name}, sentence {number}: '{odd}' is no label of spans, which {task} has; expected O, or "
                "B- or I- and a type."
            )
    return converted
