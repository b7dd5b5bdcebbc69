"""How many spans are annotated, predicted, and both, type by type: all sentences at once, with numpy.

Spans are those of `core.evaluation.spans`, which are conlleval's and seqeval's; a property test holds the
three together. A split is scored after every epoch, and seqeval needs as long for CoNLL-2003's as a small
training does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.evaluation.gold import Ints, Labels, numbered

__all__ = ["FlatSpans", "Notation", "SpanCounts", "counts_by_type", "f1_of", "flat_spans", "span_counts"]

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class SpanCounts:
    """Spans of one type: in the gold labels, in the predicted ones, in both (same words, same type)."""

    gold: int
    predicted: int
    both: int

    def __add__(self, other: SpanCounts) -> SpanCounts:
        return SpanCounts(self.gold + other.gold, self.predicted + other.predicted, self.both + other.both)


def f1_of(counts: SpanCounts) -> tuple[float, float, float]:
    """Precision, recall and F1; 0 where nothing can be counted."""
    precision = counts.both / counts.predicted if counts.predicted else 0.0
    recall = counts.both / counts.gold if counts.gold else 0.0
    # As seqeval divides, so that the two agree to the last digit.
    f1 = 2 * precision * recall / (precision + recall) if counts.both else 0.0
    return precision, recall, f1


class FlatSpans(NamedTuple):
    """Spans of all sentences, from left to right: first word and one past the last, counted over all words,
    and the number of the type.
    """

    start: Ints
    end: Ints
    type: Ints

    def only(self, which: Flags) -> FlatSpans:
        """Those of them that are flagged."""
        return FlatSpans(*(part[which] for part in self))

    def among(self, others: FlatSpans) -> Flags:
        """For each span, whether it is one of the others too. No two spans of a side end at the same word."""
        if not len(self.end) or not len(others.end):
            return np.zeros(len(self.end), dtype=bool)
        last = max(int(self.end[-1]), int(others.end[-1])) + 1
        start, type_ = np.full(last, -1), np.full(last, -1)
        start[others.end], type_[others.end] = others.start, others.type
        flags: Flags = (start[self.end] == self.start) & (type_[self.end] == self.type)
        return flags


@dataclass(frozen=True, eq=False)
class Notation:
    """What labels say of spans, each by its number: `begins` (L,) where it is a B-, `kind` (L,) the number of
    its type in `types`, -1 for O.
    """

    types: tuple[str, ...]
    begins: Flags
    kind: Ints

    @classmethod
    def of(cls, names: Sequence[str]) -> Notation:
        """Raises ValueError for a label that is not O, B- or I- and a type."""
        split = [name.partition("-") for name in names]
        for name, (prefix, _, type_) in zip(names, split, strict=True):
            if name != "O" and (prefix not in ("B", "I") or not type_):
                raise ValueError(f"'{name}' is not O, B- or I- and a type")
        types = sorted({type_ for _, _, type_ in split} - {""})
        number = {type_: place for place, type_ in enumerate(types)} | {"": -1}
        return cls(
            tuple(types),
            np.array([prefix == "B" for prefix, _, _ in split], dtype=bool),
            np.array([number[type_] for _, _, type_ in split], dtype=np.int64),
        )

    def spans(self, numbers: Ints, first: Flags, *, strict: bool = False) -> FlatSpans:
        """The spans of words with these labels (N,), `first` (N,) where a sentence begins.

        Where `strict`, only those that begin with B- count: those that IOB2 allows.
        """
        kind, begins = self.kind[numbers], self.begins[numbers]
        inside = kind >= 0
        before = np.concatenate([[-1], kind[:-1]])
        # An I- that continues nothing opens a span, and so does a change of type.
        opens = inside & (begins | first | (before != kind))
        starts = np.flatnonzero(opens)
        goes_on = np.append((inside & ~opens)[1:], False)
        found = FlatSpans(starts, np.flatnonzero(inside & ~goes_on) + 1, kind[starts])
        return found.only(begins[starts]) if strict else found


def counts_by_type(types: Sequence[str], true: FlatSpans, guess: FlatSpans) -> Mapping[str, SpanCounts]:
    """Annotated, predicted and common spans of each of these types."""
    both = guess.type[guess.among(true)]
    numbers = [np.bincount(one, minlength=len(types)).tolist() for one in (true.type, guess.type, both)]
    return {type_: SpanCounts(*own) for type_, *own in zip(types, *numbers, strict=True)}


def flat_spans(
    gold: Labels, predicted: Labels, *, strict: bool = False
) -> tuple[list[str], FlatSpans, FlatSpans]:
    """The types' names, the annotated spans and the predicted ones. Both must have the same lengths.

    Where `strict`, only spans that begin with B- count.
    Raises ValueError for a label that is not O, B- or I- and a type.
    """
    known, guess = numbered(gold, predicted)
    notation = Notation.of(known.names)
    true, found = (notation.spans(numbers, known.first, strict=strict) for numbers in (known.numbers, guess))
    return list(notation.types), true, found


def span_counts(gold: Labels, predicted: Labels, *, strict: bool = False) -> Mapping[str, SpanCounts]:
    """Counts by type, in the order of the types' names. Arguments and errors as `flat_spans`."""
    return counts_by_type(*flat_spans(gold, predicted, strict=strict))
