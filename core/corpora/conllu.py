"""CoNLL-U: the format of Universal Dependencies. FORM becomes the words, UPOS and XPOS the tasks.

https://universaldependencies.org/format.html. Multiword ranges (1-2) and empty nodes (1.1) are not words and
are left out; so are comments. `_` says that a word has no label: a sentence of nothing else is not annotated
for the task, and in a sentence with other labels `_` is a label like them.
"""

from __future__ import annotations

import re
from pathlib import Path
from sys import intern

from core.corpora.lines import read_lines
from core.corpora.types import Sentence
from core.corpora.wording import counted
from core.errors import CorpusError

__all__ = ["CONLLU_TASKS", "ONLY_TASKS", "OTHER_COLUMNS", "read_conllu"]

CONLLU_TASKS = {"upos": 3, "xpos": 4}
"""The tasks by name, with the number of their column, counted from 0."""

OTHER_COLUMNS = ("lemma", "feats", "head", "deprel", "deps", "misc")
"""The columns that are no tasks yet."""

ONLY_TASKS = (
    f"CoNLL-U offers the tasks {' and '.join(CONLLU_TASKS)} alone, not yet {', '.join(OTHER_COLUMNS)}. "
    "To learn such a column, write the words and it as CoNLL columns (.conll)."
)

_WIDTH = 10
_NO_LABEL = "_"
_NOT_A_WORD = re.compile(r"\d+-\d+|\d+\.\d+")


def read_conllu(path: Path) -> tuple[tuple[Sentence, ...], tuple[str, ...]]:
    """The sentences of a CoNLL-U file, and notes on what was left out.

    Raises CorpusError with file, line and what was expected.
    """
    sentences: list[Sentence] = []
    rows: list[list[str]] = []
    left_out = 0
    for number, line in enumerate([*read_lines(path), ""], start=1):
        if not line:
            if rows:
                sentences.append(_sentence(rows))
                rows = []
            continue
        if line.startswith("#"):
            continue
        fields = _checked(path, number, line)
        if _NOT_A_WORD.fullmatch(fields[0]):
            left_out += 1
            continue
        if fields[0] != str(len(rows) + 1):
            raise CorpusError(
                f"{path}, line {number}: expected word number {len(rows) + 1} in the first column, but found "
                f"'{fields[0]}'; sentences end with an empty line."
            )
        rows.append(fields)
    if not sentences:
        raise CorpusError(f"{path} holds no sentence; it must hold at least one.")
    return tuple(sentences), _notes(path, sentences, left_out)


def _checked(path: Path, number: int, line: str) -> list[str]:
    if not line.strip():
        raise CorpusError(
            f"{path}, line {number}: holds nothing but spaces or tabs; empty the line to end the sentence "
            "there, or delete it."
        )
    fields = line.split("\t")
    if len(fields) != _WIDTH:
        raise CorpusError(
            f"{path}, line {number}: expected the 10 columns of CoNLL-U set apart by tabs, but found "
            f"{len(fields)}."
        )
    if not all(field.strip() for field in fields):
        place = next(place for place, field in enumerate(fields, start=1) if not field.strip())
        raise CorpusError(f"{path}, line {number}: column {place} is empty; CoNLL-U writes '_' for no value.")
    return fields


def _sentence(rows: list[list[str]]) -> Sentence:
    labels = {task: tuple(intern(row[place]) for row in rows) for task, place in CONLLU_TASKS.items()}
    return Sentence(
        tuple(row[1] for row in rows),
        {task: column for task, column in labels.items() if set(column) != {_NO_LABEL}},
    )


def _notes(path: Path, sentences: list[Sentence], left_out: int) -> tuple[str, ...]:
    notes = []
    if left_out:
        notes.append(f"{path.name}: {counted(left_out, 'row')} of multiword ranges and empty nodes left out.")
    for task in CONLLU_TASKS:
        annotated = [sentence.labels[task] for sentence in sentences if task in sentence.labels]
        if not annotated:
            continue
        if len(annotated) < len(sentences):
            notes.append(
                f"{path.name}: {counted(len(sentences) - len(annotated), 'sentence')} without any {task}."
            )
        unlabelled = sum(column.count(_NO_LABEL) for column in annotated)
        if unlabelled:
            notes.append(
                f"{path.name}: {counted(unlabelled, 'word')} without {task} in sentences that have it; "
                f"'{_NO_LABEL}' is kept as their label."
            )
    return tuple(notes)
