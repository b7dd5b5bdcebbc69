"""Spans in a row of IOB labels, found as the conlleval script of the CoNLL shared tasks finds them.

They are counted with numpy, all sentences at once: a split is scored after every epoch, and seqeval needs as
long for CoNLL-2003's as a small training does. Property tests hold both to seqeval's figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.tasks.packed import Numbering, Numbers, Packed, offsets


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Words `start` to `end` (exclusive, counted from 0) of one type."""

    start: int
    end: int
    type: str


def spans(labels: Sequence[str]) -> list[Span]:
    """The spans of one sentence, from left to right: as `span_pair` reads them, quicker for single sentences.

    Raises ValueError for a label that is not O, B- or I- and a type.
    """
    complete: list[Span] = []
    start, type_ = 0, ""
    for index, label in enumerate((*labels, "O")):
        prefix, _, next_type = label.partition("-")
        if label != "O" and (prefix not in ("B", "I") or not next_type):
            raise ValueError(f"'{label}' (word {index + 1}) is not O, B- or I- and a type")
        if type_ and (prefix != "I" or next_type != type_):
            complete.append(Span(start, index, type_))
            type_ = ""
        if label != "O" and not type_:
            start, type_ = index, next_type
    return complete


Labels = Sequence[Sequence[str]]
"""Labels of sentences."""
Ints = NDArray[np.int64]


def numbered(gold: Labels, predicted: Labels) -> tuple[Packed, Ints]:
    """Gold labels, and predicted ones, as numbers (N,) of the same names, int64 both.

    Raises ValueError where they have not the same lengths.
    """
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} sentences of gold labels, {len(predicted)} of predicted ones")
    for number, (true, guess) in enumerate(zip(gold, predicted, strict=True), start=1):
        if len(true) != len(guess):
            raise ValueError(f"sentence {number}: {len(true)} gold labels and {len(guess)} predicted ones")
    names = Numbering[str]()
    both = np.fromiter(map(names.__getitem__, chain.from_iterable((*gold, *predicted))), dtype=np.int64)
    borders = offsets(np.fromiter(map(len, gold), dtype=np.int64))
    words = int(borders[-1])
    return Packed(tuple(names), both[:words], borders), both[words:]


def labels_by_sentence(gold: Packed, numbers: Numbers) -> list[list[str]]:
    """The labels with these numbers (N,), sentence by sentence."""
    return list(map(list, replace(gold, numbers=numbers)))


Flags = NDArray[np.bool_]


def f1_of(gold: int, predicted: int, both: float) -> tuple[float, float, float]:
    """Precision, recall and F1 of these counts; 0 where nothing can be counted."""
    precision = both / predicted if predicted else 0.0
    recall = both / gold if gold else 0.0
    # As seqeval divides, so that the two agree to the last digit.
    f1 = 2 * precision * recall / (precision + recall) if both else 0.0
    return precision, recall, f1


class FlatSpans(NamedTuple):
    """Spans of all sentences, from left to right.

    Each has its first word and one past the last, counted over all words, and the number of the type.
    """

    start: Ints
    end: Ints
    type: Ints

    def among(self, others: FlatSpans) -> Flags:
        """(k,) whether each span is among the others too. No two spans of a side end at the same word."""
        if not len(self.end) or not len(others.end):
            return np.zeros(len(self.end), dtype=bool)
        last = max(int(self.end[-1]), int(others.end[-1])) + 1
        start, type_ = np.full(last, -1), np.full(last, -1)
        start[others.end], type_[others.end] = others.start, others.type
        flags: Flags = (start[self.end] == self.start) & (type_[self.end] == self.type)
        return flags


def _notation(names: Sequence[str]) -> tuple[tuple[str, ...], Flags, Ints]:
    """The span types of these L labels; where a label is a B- (L,); the number of its type (L,), -1 for O.

    Raises ValueError for a label that is not O, B- or I- and a type.
    """
    split = [name.partition("-") for name in names]
    for name, (prefix, _, type_) in zip(names, split, strict=True):
        if name != "O" and (prefix not in ("B", "I") or not type_):
            raise ValueError(f"'{name}' is not O, B- or I- and a type")
    types = sorted({type_ for _, _, type_ in split} - {""})
    number = {type_: index for index, type_ in enumerate(types)} | {"": -1}
    begins = np.array([prefix == "B" for prefix, _, _ in split], dtype=bool)
    return tuple(types), begins, np.array([number[type_] for _, _, type_ in split], dtype=np.int64)


def span_pair(
    gold: Packed, predicted: Ints, *, strict: bool = False
) -> tuple[tuple[str, ...], FlatSpans, FlatSpans]:
    """The types' names, the annotated spans and the predicted ones.

    As conlleval reads them: an I- that continues nothing opens a span, and so does a change of type. Where
    `strict`, only those that begin with B- count: those that IOB2 allows. Raises ValueError for a label that
    is not O, B- or I- and a type.
    """
    types, is_begin, type_of = _notation(gold.names)

    def find(numbers: Numbers) -> FlatSpans:
        kind, begins = type_of[numbers], is_begin[numbers]
        inside = kind >= 0
        opens = inside & (begins | (gold.before(kind, -1) != kind))
        starts = np.flatnonzero(opens)
        goes_on = np.append((inside & ~opens)[1:], False)
        ends = np.flatnonzero(inside & ~goes_on) + 1
        kept = begins[starts] if strict else slice(None)
        return FlatSpans(starts[kept], ends[kept], kind[starts][kept])

    return types, find(gold.numbers), find(predicted)


def span_counts(types: Sequence[str], true: FlatSpans, guess: FlatSpans) -> Ints:
    """(types, 3): annotated, predicted and common spans (same words, same type) of each of these types."""
    kinds = (true.type, guess.type, guess.type[guess.among(true)])
    return np.stack([np.bincount(numbers, minlength=len(types)) for numbers in kinds], axis=1)


def seqeval_spans(gold: Packed, numbers: Numbers) -> FlatSpans:
    """The spans that seqeval 1.2.2 in default mode finds in labels that are no IOB labels, as POS tags.

    `numbers` (N,) are of the gold labels' names and sentences. A label's first character is its prefix, what
    follows the first hyphen behind that its type (`NNP`: prefix N, type NP; `.` and `N`: type `_`). `start`
    and `end` are counted over sentences with an O more at their ends, where seqeval puts one. The
    dissertation's POS tables hold the F1 of such spans.
    """
    names = (*gold.names, "O")
    labels = np.full(len(numbers) + len(gold.lengths), len(gold.names))
    labels[np.arange(len(numbers)) + np.repeat(np.arange(len(gold.lengths)), gold.lengths)] = numbers
    kinds = _types(names)[labels]
    before, kinds_before = np.roll(labels, 1), np.roll(kinds, 1)  # before the first word is an O,
    kinds_before[:1] = -1  # but one of no type
    prefixes = np.array([name[:1] for name in names])

    def among(labels: Ints, letters: str) -> NDArray[np.bool_]:
        return np.asarray(np.isin(prefixes, list(letters))[labels])

    changes = kinds != kinds_before
    ends = among(before, "ES") | (among(before, "BI") & among(labels, "BSO"))
    ends |= ~among(before, "O.") & changes
    starts = among(labels, "BS") | (among(before, "ESO") & among(labels, "EI"))
    starts |= ~among(labels, "O.") & changes
    end = np.flatnonzero(ends)
    # A span may end that never began: seqeval then takes the last beginning there was.
    last = np.maximum.accumulate(np.where(starts, np.arange(len(labels)), 0))
    return FlatSpans(last[end - 1], end, kinds_before[end])


def _types(names: Sequence[str]) -> Ints:
    types = [name[1:].partition("-")[2] if "-" in name[1:] else name[1:] for name in names]
    index = {type_: number for number, type_ in enumerate(dict.fromkeys(type_ or "_" for type_ in types))}
    return np.array([index[type_ or "_"] for type_ in types], dtype=np.int64)
