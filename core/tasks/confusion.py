"""Confusions: a matrix of counts per task, of words, or of spans where labels make spans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.tasks.spans import Ints, Labels, Span, numbered, span_pair, spans

NOTHING = "(nothing)"
"""The label of no span: as a column a missed one, as a row one that was predicted without annotation."""
OTHER_WORDS = "(other words)"
"""A span was predicted there, but not of the same words: wrong boundaries, of whatever type."""


@dataclass(frozen=True)
class Confusion:
    """`counts[row, column]`: how often the gold label `gold[row]` was predicted as `predicted[column]`.

    Of spans, `gold` ends with NOTHING, `predicted` with OTHER_WORDS and NOTHING.
    """

    gold: tuple[str, ...]
    predicted: tuple[str, ...]
    counts: Ints


def summed(parts: Sequence[Confusion]) -> Confusion:
    """The sum over predictions of the same sentences, by seeds say; labels by how many are annotated."""
    names = list(dict.fromkeys(name for part in parts for name in (*part.gold, *part.predicted)))
    index = {name: number for number, name in enumerate(names)}
    counts = np.zeros((len(names), len(names)), dtype=np.int64)

    def cells(rows: Iterable[str], columns: Iterable[str]) -> tuple[Any, ...]:
        return np.ix_([index[name] for name in rows], [index[name] for name in columns])

    for part in parts:
        counts[cells(part.gold, part.predicted)] += part.counts
    last = {OTHER_WORDS: 1, NOTHING: 2}
    order = sorted(names, key=lambda name: (last.get(name, 0), -counts[index[name]].sum(), name))
    rows = [name for name in order if any(name in part.gold for part in parts)]
    columns = [name for name in order if any(name in part.predicted for part in parts)]
    return Confusion(tuple(rows), tuple(columns), counts[cells(rows, columns)])


def label_confusion(gold: Labels, predicted: Labels) -> Confusion:
    """The matrix of labels; both must have the same lengths. Labels are in the order of their names."""
    packed, guess = numbered(gold, predicted)
    size = len(packed.names)
    counts = np.bincount(packed.numbers * size + guess, minlength=size**2).reshape(size, size)
    order = sorted(range(size), key=packed.names.__getitem__)
    names = tuple(packed.names[number] for number in order)
    return Confusion(names, names, counts[np.ix_(order, order)])


def span_confusion(gold: Labels, predicted: Labels) -> Confusion:
    """The matrix of spans. A span is right where its words and its type are.

    A predicted span that only touches an annotated one counts in the annotated one's row alone, so that a
    row's sum is the number of annotated spans.
    """
    types, true, guess = span_pair(*numbered(gold, predicted))
    size, words = len(types), sum(map(len, gold))
    counts = np.zeros((size + 1, size + 2), dtype=np.int64)
    # A span's first and last word, without its type: is there one of the same words on the other side?
    true_ends, guess_ends = (spans.start * (words + 1) + spans.end for spans in (true, guess))
    _, at_true, at_guess = np.intersect1d(true_ends, guess_ends, assume_unique=True, return_indices=True)
    np.add.at(counts, (true.type[at_true], guess.type[at_guess]), 1)
    rest = np.ones(len(true_ends), dtype=bool)
    rest[at_true] = False
    touched = _covers(guess.start, guess.end, words)
    column = np.where(touched(true.start[rest], true.end[rest]), size, size + 1)
    np.add.at(counts, (true.type[rest], column), 1)
    free = ~_covers(true.start, true.end, words)(guess.start, guess.end)
    np.add.at(counts, (np.full(int(free.sum()), size), guess.type[free]), 1)
    return Confusion((*types, NOTHING), (*types, OTHER_WORDS, NOTHING), counts)


def _covers(start: Ints, end: Ints, words: int) -> Callable[[Ints, Ints], NDArray[np.bool_]]:
    """A function that decides for each of other spans whether one of these touches it."""
    edges = np.zeros(words + 1, dtype=np.int64)
    np.add.at(edges, start, 1)
    np.add.at(edges, end, -1)
    covered = np.concatenate([[0], np.cumsum(np.cumsum(edges)[:words] > 0)])
    return lambda first, last: covered[last] > covered[first]


LABEL = "wrong label"
BOUNDARY = "wrong boundary"
BOUNDARY_AND_LABEL = "wrong boundary and label"
MISSED = "missed"
INVENTED = "invented"
MISTAKE_KINDS = (LABEL, BOUNDARY, BOUNDARY_AND_LABEL, MISSED, INVENTED)


@dataclass(frozen=True, slots=True)
class Mistake:
    """Words `start` to `end` (exclusive) of the predicted span, or of the gold span that was missed.

    `predicted` and `gold` are labels (of spans their types); empty where there is none of them.
    """

    kind: str
    start: int
    end: int
    predicted: str
    gold: str


def label_mistakes(gold: Sequence[str], predicted: Sequence[str]) -> list[Mistake]:
    """The words with a wrong predicted label. Raises ValueError if lengths differ."""
    _check_lengths(gold, predicted)
    pairs = enumerate(zip(gold, predicted, strict=True))
    return [Mistake(LABEL, at, at + 1, guess, true) for at, (true, guess) in pairs if true != guess]


def span_mistakes(gold: Sequence[str], predicted: Sequence[str]) -> list[Mistake]:
    """The spans that are only predicted or only gold, from left to right.

    A predicted span is right where a gold one has the same words and type, as in the span F1; else its kind
    says why not. A gold span that no predicted one touches was missed. No span is listed twice.
    Raises ValueError where lengths differ or a label is no IOB label.
    """
    _check_lengths(gold, predicted)
    true_spans, guesses = spans(gold), spans(predicted)
    right = set(true_spans)
    wrong = [_judged(guess, true_spans) for guess in guesses if guess not in right]
    wrong += [
        Mistake(MISSED, true.start, true.end, "", true.type)
        for true in true_spans
        if not any(_touch(true, guess) for guess in guesses)
    ]
    return sorted(wrong, key=lambda mistake: mistake.start)


def _check_lengths(gold: Sequence[str], predicted: Sequence[str]) -> None:
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold labels and {len(predicted)} predicted ones")


def _touch(first: Span, second: Span) -> bool:
    return first.start < second.end and second.start < first.end


def _judged(guess: Span, true_spans: Sequence[Span]) -> Mistake:
    touched = [true for true in true_spans if _touch(true, guess)]
    same_words = [true for true in touched if (true.start, true.end) == (guess.start, guess.end)]
    same_type = [true for true in touched if true.type == guess.type]
    if not touched:
        kind = INVENTED
    elif same_words:
        kind = LABEL
    else:
        kind = BOUNDARY if same_type else BOUNDARY_AND_LABEL
    gold = (same_words or same_type or touched)[0].type if touched else ""
    return Mistake(kind, guess.start, guess.end, guess.type, gold)
