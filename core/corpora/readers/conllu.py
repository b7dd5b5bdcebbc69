"""The strict reader of CoNLL-U (https://universaldependencies.org/format.html). Errors name the line.

FORM becomes the words; UPOS, XPOS and DEPREL are
tasks, and so is each feature of FEATS (`feats:Number`). Multiword ranges (1-2) and empty nodes (1.1) are not
words and are left out; so are comments. `_` says that a word has no label: a sentence with nothing else in
the column of UPOS, XPOS or DEPREL, and a file with nothing else in FEATS, is not annotated for the tasks of
that column. Elsewhere `_` is a label like the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from core.corpora.readers.lines import BLANKS, Lines, Source, row_problem
from core.corpora.reading import FEATURE as FEATURE
from core.corpora.types import Column, Sentences
from core.errors import CorpusError
from core.plain_text import shortened
from core.tasks.packed import Packed, Packer
from core.wording import plural

CONLLU = ".conllu"


def is_conllu(file_name: str) -> bool:
    """Whether a file of that name is CoNLL-U."""
    return file_name.lower().endswith(CONLLU)


CONLLU_TASKS = {"upos": 3, "xpos": 4, "deprel": 7}
"""The tasks that are a whole column, with its number, counted from 0."""

ONLY_TASKS = (
    f"The tasks of CoNLL-U are {', '.join(CONLLU_TASKS)} and each feature, as {FEATURE}Number. To learn "
    "another column, write the words and it as CoNLL columns (.conll)."
)

CONLLU_WIDTH = 10
_FORM, _FEATS = 1, 5
_NO_LABEL = "_"
NOT_A_WORD = re.compile(r"\d+-\d+|\d+\.\d+")


def comparable_text(text_hash: str, names: Iterable[str], feats_sentences: str | None) -> str:
    """The hash by which the texts of runs are compared, of a run on that corpus and tasks (`names`).

    A run that learned, or dealt sentences to, features before sentences without any counted
    (`RunFacts.feats_sentences` is empty) has `old-` and the hash, which leaves features out.
    """
    is_old = not feats_sentences and any(FEATURE in name for name in names)
    return f"old-{text_hash}" if is_old else text_hash


def read_conllu(source: Source, features: Sequence[str] | None = None) -> tuple[Sentences, tuple[str, ...]]:
    """The sentences of a CoNLL-U file, and notes on the lines that were left out.

    `features` are the tasks to make of FEATS; None: all that the file has. Raises CorpusError with file, line
    and what was expected.
    """
    columns, notes = _conllu_columns(source)
    labels = {}
    for task, index in CONLLU_TASKS.items():
        is_labelled = columns[index].has(columns[index].flags(lambda label: label != _NO_LABEL))
        if len(at := np.flatnonzero(is_labelled)):
            labels[task] = Column(at, columns[index].take(at))
    values = {text: _features(text) for text in columns[_FEATS].names}
    occurring = sorted({task for words in values.values() for task in words})
    for task in (occurring if features is None else features) if occurring else ():
        of_words = {text: words.get(task, _NO_LABEL) for text, words in values.items()}
        column = columns[_FEATS].mapped(of_words.__getitem__)
        labels[task] = Column(np.arange(len(column)), column)
    # In the order in which they first occur.
    in_order = dict(sorted(labels.items(), key=lambda item: int(item[1].at[0])))
    return Sentences.of_columns(columns[_FORM], in_order), notes


def _conllu_columns(source: Source) -> tuple[dict[int, Packed], tuple[str, ...]]:
    """The columns of words and labels by their index, and notes on what was left out."""
    packers = {index: Packer() for index in (_FORM, *CONLLU_TASKS.values(), _FEATS)}
    rows: list[list[str]] = []
    left_out = no_values = 0
    first_without = 0, ""
    for number, line in enumerate(chain(Lines(source), [""]), start=1):
        is_blank = not line.strip(BLANKS)
        if is_blank and rows:
            for index, packer in packers.items():
                packer.add([row[index] for row in rows])
            rows = []
        if is_blank or line.startswith("#"):
            continue
        fields = [field.strip(" ") for field in line.split("\t")]
        is_word = not NOT_A_WORD.fullmatch(fields[0])
        if problem := _conllu_problem(line, fields, len(rows) + 1 if is_word else None):
            raise CorpusError(problem, source, number)
        if not is_word:
            left_out += 1
            continue
        rows.append(fields)
        if unread := [pair for pair in fields[_FEATS].split("|") if "=" not in pair and pair != _NO_LABEL]:
            first_without = first_without if no_values else (number, unread[0])
            no_values += 1
    columns = {index: packer.packed() for index, packer in packers.items()}
    if not len(columns[_FORM]):
        raise CorpusError(f"{source} holds no sentence; it must hold at least one.")
    notes = []
    if left_out:
        rows_left_out = plural(left_out, "row")
        notes.append(f"{source.name}: {rows_left_out} of multiword ranges and empty nodes left out.")
    if no_values:
        number, text = first_without
        notes.append(
            f"{source.name}: the FEATS of {plural(no_values, 'word')} have a feature without a value, "
            f"which is left out (the first on line {number}: '{shortened(text, 40)}'); write Name=Value."
        )
    return columns, tuple(notes)


def _conllu_problem(line: str, fields: Sequence[str], word_number: int | None) -> str | None:
    """What is wrong with a row, None where nothing is. `word_number` is the one expected of a word."""
    if problem := row_problem(line, fields, CONLLU_WIDTH, "of CoNLL-U", "\t"):
        return problem
    if "" in fields:
        return f"column {fields.index('') + 1} is empty."
    if word_number is not None and fields[0] != str(word_number):
        return (
            f"expected word number {word_number} in the first column, but found '{fields[0]}'; "
            "sentences end with an empty line."
        )
    return None


def _features(text: str) -> dict[str, str]:
    """The label of each task that a word's FEATS, `Number=Sing|Person=3`, give it."""
    pairs = [feature.partition("=") for feature in text.split("|") if "=" in feature]
    return {FEATURE + name: value for name, _, value in pairs}
