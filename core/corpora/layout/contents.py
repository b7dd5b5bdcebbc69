"""What the values of a column tell, for all formats: spans, tags, numbers, lemmas or nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from itertools import pairwise
from typing import Any

from core.corpora.layout.column_names import (
    IGNORED,
    LABEL_NAMES,
    TOKENS,
    cleaned,
    is_document_number,
    is_left_out,
    is_sentence_number,
    is_text_column,
)
from core.tasks.packed import Packed
from core.tasks.schemes import NOT_ANNOTATED, Notation, notation

_CHUNK_TYPES = frozenset(["NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP"])
# A column with more kinds of values than this, and one for every few words, holds lemmas or the like.
_MOST_LABELS = 200
_WORDS_PER_LABEL = 10
_NOTHING = frozenset([*NOT_ANNOTATED, "-", "*", "-X-"])
# What stands for the words that a column says nothing of: it holds no parts of speech.
_OUTSIDE = frozenset("Oo0-_*")
_TREE = re.compile(r"[^*]*\*\)*")
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"\d+([-:.,]\d+)*")
_ROWS_PER_LABEL = 2
_LONGEST_LABEL = 100


def name_columns(header: Sequence[str] | None, columns: Sequence[Packed]) -> list[str]:
    """A name for each column of words and labels, by its header or its content. One is `tokens`.

    A name that begins with `_` is a column without labels. Raises ValueError where no column has any.
    """
    values = [set(column.counts()) for column in columns]
    notations = [notation(column.counts()) for column in columns]
    names = [guess_name(*column_values) for column_values in zip(columns, values, notations, strict=True)]
    words = _words(header, names, values, notations)
    names[words] = TOKENS
    if header is not None:
        names = [
            name if index == words else _header_name(title, name)
            for index, (title, name) in enumerate(zip(header, names, strict=True))
        ]
    names = [
        name if name not in names[:index] else f"{name}{names[:index].count(name) + 1}"
        for index, name in enumerate(names)
    ]
    if all(name == TOKENS or name.startswith(IGNORED) for name in names):
        raise ValueError(f"no column holds labels ({', '.join(names)}); name the columns from left to right.")
    return names


def _words(
    header: Sequence[str] | None,
    names: Sequence[str],
    values: Sequence[Set[str]],
    notations: Sequence[Notation | None],
) -> int:
    """The place of the column of words: the header's, else the one with the most different values."""
    if header is not None:
        return header.index(TOKENS)
    kinds = [
        len(column_values)
        * (name not in ("_id", "_empty", "_parse") and (spans is None or spans.is_bare))
        * (not all(map(_NUMBER.fullmatch, column_values)))
        for column_values, name, spans in zip(values, names, notations, strict=True)
    ]
    return kinds.index(max(kinds))


def guess_name(column: Packed, values: Set[str], spans: Notation | None) -> str:
    """The name of a column of labels; it begins with `_` where the column holds none."""
    if spans is not None:
        types = {label[2:] for label in spans.canonical(column).counts() if label != "O"}
        return "chunk" if len(types & _CHUNK_TYPES) * 2 >= len(types) else "ner"
    if values == {"O"}:
        return "ner"
    if values <= _NOTHING:
        return "_empty"
    if is_numbering(column):
        return "_id"
    if any(value.startswith("(") for value in values) and all(map(_TREE.fullmatch, values)):
        return "_parse"
    if len(values) > max(_MOST_LABELS, len(column.numbers) / _WORDS_PER_LABEL):
        return "_other"
    is_of_sentences = all(len(set(row)) == 1 for row in column) and any(len(row) > 1 for row in column)
    return "labels" if values & _OUTSIDE or is_of_sentences else "pos"


def is_skipped(column: Packed) -> bool:
    """Whether a column, given sentence by sentence, holds no labels but numbers of words or lemmas."""
    counts = column.counts()
    return guess_name(column, set(counts), notation(counts)).startswith(IGNORED)


def are_flags_or_blank(values: Iterable[Any]) -> bool:
    """Whether values beside words are no labels: nothing but booleans, or nothing but blanks."""
    given = list(values)  # no set: a list among them has no hash
    return bool(given) and (
        all(isinstance(value, bool) for value in given)
        or all(value is None or (isinstance(value, str) and not value.strip()) for value in given)
    )


def is_empty(column: Packed) -> bool:
    """Whether a column holds nothing but marks for nothing, such as `_`."""
    return column.counts().keys() <= _NOTHING


def _header_name(header: str, guess: str) -> str:
    """The name that a header gives a column; it begins with `_` where the column holds no labels."""
    is_number = is_sentence_number(header) or is_document_number(header)
    header = cleaned(header)
    return f"{IGNORED}{header}" if is_number or guess.startswith(IGNORED) else header or guess


def is_numbering(column: Packed) -> bool:
    """Whether the values number words, sentences or characters.

    In each sentence they grow, or in each they stay the same; where every sentence has one word, they are
    different numbers.
    """
    if not (column.lengths > 1).any():
        values = column.counts()
        return 1 < len(values) == len(column.numbers) and all(map(_NUMBER.fullmatch, values))
    grows = stays = True
    for row in column:
        if len(row) < 2:
            continue
        shapes = {_DIGITS.sub("#", value) for value in row}
        if len(shapes) > 1 or "#" not in next(iter(shapes)):
            return False
        numbers = [tuple(map(int, _DIGITS.findall(value))) for value in row]
        grows &= all(before < after for before, after in pairwise(numbers))
        stays &= len(set(numbers)) == 1
    return grows or stays


def are_labels(name: str, kinds: Counter[str]) -> bool:
    """Whether the values that a column of that name has on sentences or texts, as often, are labels."""
    if is_left_out(name) or is_text_column(name) or name.startswith(IGNORED):
        return False
    if not all(kind.isprintable() and len(kind) <= _LONGEST_LABEL for kind in kinds):
        return False
    repeats = 1 < len(kinds) <= kinds.total() / _ROWS_PER_LABEL
    return len(kinds) <= _MOST_LABELS and (name.lower() in LABEL_NAMES or repeats)
