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

__all__ = ["FlatSpans", "SpanCounts", "f1_of", "flat_spans", "span_counts"]

Labels = Sequence[Sequence[str]]
Ints = NDArray[np.int64]


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

    def keys(self, words: int, types: int) -> Ints:
        """Each span as one number, so that equal spans are equal numbers."""
        return (self.start * (words + 1) + self.end) * types + self.type


def flat_spans(
    gold: Labels, predicted: Labels, *, strict: bool = False
) -> tuple[list[str], FlatSpans, FlatSpans]:
    """The types' names, the annotated spans and the predicted ones. Both must have the same lengths.

    Where `strict`, only spans that begin with B- count: those that IOB2 allows.
    Raises ValueError for a label that is not O, B- or I- and a type.
    """
    flat = [label for column in (gold, predicted) for labels in column for label in labels]
    place = {label: number for number, label in enumerate(dict.fromkeys(flat))}
    codes = np.fromiter(map(place.__getitem__, flat), dtype=np.int64, count=len(flat))
    types, prefix, kind = _parts(list(place))
    lengths = np.array([len(labels) for labels in gold], dtype=np.int64)
    first = np.zeros(int(lengths.sum()), dtype=bool)
    first[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
    half = len(first)
    true = _spans(prefix[codes[:half]], kind[codes[:half]], first, strict)
    guess = _spans(prefix[codes[half:]], kind[codes[half:]], first, strict)
    return types, true, guess


def span_counts(gold: Labels, predicted: Labels, *, strict: bool = False) -> Mapping[str, SpanCounts]:
    """Counts by type, in the order of the types' names. Arguments and errors as `flat_spans`."""
    types, true, guess = flat_spans(gold, predicted, strict=strict)
    words, count = sum(map(len, gold)), len(types)
    there, found = (spans.keys(words, count) for spans in (true, guess))
    both = np.intersect1d(there, found, assume_unique=True) % max(count, 1)
    numbers = [np.bincount(one, minlength=count) for one in (true.type, guess.type, both)]
    return {type_: SpanCounts(*(int(one[place]) for one in numbers)) for place, type_ in enumerate(types)}


def _parts(names: Sequence[str]) -> tuple[list[str], NDArray[np.str_], Ints]:
    """All types, and for each label its prefix and the number of its type (-1 for O)."""
    split = [name.partition("-") for name in names]
    for name, (prefix, _, type_) in zip(names, split, strict=True):
        if name != "O" and (prefix not in ("B", "I") or not type_):
            raise ValueError(f"'{name}' is not O, B- or I- and a type")
    types = sorted({type_ for _, _, type_ in split} - {""})
    number = {type_: place for place, type_ in enumerate(types)} | {"": -1}
    prefixes = np.array([prefix for prefix, _, _ in split], dtype=str)
    return types, prefixes, np.array([number[type_] for _, _, type_ in split], dtype=np.int64)


def _spans(prefix: NDArray[np.str_], kind: Ints, first: NDArray[np.bool_], strict: bool) -> FlatSpans:
    inside = kind >= 0
    before = np.concatenate([[-1], kind[:-1]])
    # An I- that continues nothing opens a span, and so does a change of type.
    opens = inside & ((prefix == "B") | first | (before != kind))
    starts = np.flatnonzero(opens)
    goes_on = np.append((inside & ~opens)[1:], False)
    ends = np.flatnonzero(inside & ~goes_on) + 1
    kept = prefix[starts] == "B" if strict else np.ones(len(starts), dtype=bool)
    return FlatSpans(starts[kept], ends[kept], kind[starts[kept]])
