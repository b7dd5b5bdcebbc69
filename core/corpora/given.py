"""Text that a researcher hands over to have it tagged, with or without gold labels: pasted, or a file.

`.txt` holds a sentence a line, or CoNLL columns with labels; `.conllu` is CoNLL-U; everything else is CoNLL
columns, words alone included.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

from core.corpora.columns import IGNORED, TOKENS, Table, read_columns, read_table, usual_rows
from core.corpora.conllu import read_conllu
from core.corpora.detection import name_columns
from core.corpora.files import CONLLU
from core.corpora.lines import read_lines
from core.corpora.schemes import convert, looks_like_spans, notation
from core.corpora.types import Sentence
from core.errors import CorpusError
from core.splitting import split_words

__all__ = ["ENDINGS", "GivenTask", "GivenText", "has_columns", "propose_columns", "read_given"]

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
        _check(chosen, tasks)
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


def _check(columns: Sequence[str], tasks: Sequence[GivenTask]) -> None:
    known = [TOKENS, *(task.name for task in tasks)]
    if TOKENS not in columns:
        raise CorpusError(f"One of the columns must be named '{TOKENS}'; they are {', '.join(columns)}.")
    for name in columns:
        if name.startswith(IGNORED):
            continue
        if name not in known:
            raise CorpusError(
                f"There is no task '{name}' here; name a column {', '.join(known)}, or begin its name with "
                f"'{IGNORED}' to have it read over."
            )
        if columns.count(name) > 1:
            raise CorpusError(f"Two columns are named '{name}'; give each a name of its own.")


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
