"""Kinds of errors of spans, and F1 by the four schemes of SemEval 2013's task 9.1, as nervaluate counts them.

A predicted span is matched with at most one annotated span that it overlaps, from left to right. Each scheme
matches in its own way (nervaluate 1.2, `strategies.py`); all agree where a span has the same words as an
annotated one, so that only the others are looked at one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from core.tasks.packed import Packed
from core.tasks.spans import Flags, FlatSpans, Ints, f1_of, span_pair

EXACT = "exact"
WRONG_TYPE = "wrong type"
WRONG_BOUNDARY = "wrong boundary"
BOTH_WRONG = "both wrong"
MISSED = "missed"
SPURIOUS = "spurious"
ERROR_KINDS = (EXACT, WRONG_TYPE, WRONG_BOUNDARY, BOTH_WRONG, MISSED, SPURIOUS)
"""The first five sum to the annotated spans; the first four and the last to the predicted ones."""
SCHEMES = ("strict", "exact", "partial", "type")
"""Right by a scheme: words and type; words; words, or half for an overlap; type of an overlapping span."""
_LEAST_OVERLAP = 0.01
"""The share of an annotated span's words that a predicted one must have, nervaluate's default."""


@dataclass(frozen=True)
class SpanErrors:
    """How many spans of a split are of each of ERROR_KINDS, and the F1 in [0, 1] of each of SCHEMES.

    F1 is NaN where no span is annotated.
    """

    counts: dict[str, int]
    f1: dict[str, float]

    @property
    def annotated(self) -> int:
        """The number of annotated spans."""
        return sum(self.counts.values()) - self.counts[SPURIOUS]


def span_errors(gold: Packed, predicted: Ints) -> SpanErrors:
    """The errors of labels predicted for the words of `gold`, (N,) numbers of its names.

    A predicted span that overlaps several annotated ones is matched with one of its type, of these with the
    one whose ends are nearest, else with the first; an annotated span is matched once. Raises ValueError for
    a label that is not O, B- or I- and a type.
    """
    _, true, guess = span_pair(gold, predicted)
    same_words, same_type = _same_words(true, guess)
    exact, wrong_type = int(same_type.sum()), int(len(same_type) - same_type.sum())
    rest = np.ones(len(true.end), dtype=bool)
    rest[same_words[0]] = False
    others = np.ones(len(guess.end), dtype=bool)
    others[same_words[1]] = False
    apart = _overlaps(_taken(true, rest), _taken(guess, others))
    is_right = [right for _, right in _matches(apart, _by_type)]
    halves = sum(1 for _ in _matches(apart, _first))
    counts = {
        EXACT: exact,
        WRONG_TYPE: wrong_type,
        WRONG_BOUNDARY: sum(is_right),
        BOTH_WRONG: len(is_right) - sum(is_right),
        MISSED: int(rest.sum()) - len(is_right),
        SPURIOUS: int(others.sum()) - len(is_right),
    }
    sizes = len(true.end), len(guess.end)
    if not sizes[0]:
        return SpanErrors(counts, dict.fromkeys(SCHEMES, math.nan))
    right = {
        "strict": float(exact),
        "exact": float(exact + wrong_type),
        "partial": exact + wrong_type + 0.5 * halves,
        "type": float(exact + sum(is_right)),
    }
    return SpanErrors(counts, {name: f1_of(*sizes, both)[2] for name, both in right.items()})


def _taken(spans: FlatSpans, kept: Flags) -> FlatSpans:
    return FlatSpans(spans.start[kept], spans.end[kept], spans.type[kept])


def _same_words(true: FlatSpans, guess: FlatSpans) -> tuple[tuple[Ints, Ints], Flags]:
    """The places of the spans with the same words on both sides, and whether these have the same type."""
    words = int(max(true.end.max(initial=0), guess.end.max(initial=0))) + 1
    true_ends, guess_ends = (spans.start * words + spans.end for spans in (true, guess))
    _, at_true, at_guess = np.intersect1d(true_ends, guess_ends, assume_unique=True, return_indices=True)
    return (at_true, at_guess), true.type[at_true] == guess.type[at_guess]


@dataclass(frozen=True)
class _Overlap:
    """An annotated span that a predicted one overlaps: its place, whether of its type, its ends' distance."""

    place: int
    is_type: bool
    apart: int


def _overlaps(true: FlatSpans, guess: FlatSpans) -> list[list[_Overlap]]:
    """The annotated spans that each predicted one overlaps, from left to right."""
    first = np.searchsorted(true.end, guess.start, side="right").tolist()
    last = np.searchsorted(true.start, guess.end, side="left").tolist()
    starts, ends, types = (array.tolist() for array in true)
    errors = []
    for start, end, type_, begin, stop in zip(*(array.tolist() for array in guess), first, last, strict=True):
        errors.append(
            [
                _Overlap(place, types[place] == type_, abs(starts[place] - start) + abs(ends[place] - end))
                for place in range(begin, stop)
                if min(end, ends[place]) - max(start, starts[place])
                >= _LEAST_OVERLAP * (ends[place] - starts[place])
            ]
        )
    return errors


def _by_type(free: list[_Overlap]) -> _Overlap:
    """The nearest one of the same type, else the first."""
    return min((each for each in free if each.is_type), key=lambda each: each.apart, default=free[0])


def _first(free: list[_Overlap]) -> _Overlap:
    return free[0]


def _matches(
    overlaps: list[list[_Overlap]], choose: Callable[[list[_Overlap]], _Overlap]
) -> Iterator[tuple[int, bool]]:
    """The annotated spans that predicted ones are matched with, and whether the types agree."""
    matched: set[int] = set()
    for overlapped in overlaps:
        free = [each for each in overlapped if each.place not in matched]
        if free:
            chosen = choose(free)
            matched.add(chosen.place)
            yield chosen.place, chosen.is_type
