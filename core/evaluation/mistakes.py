"""What is wrong in one sentence's labels, in the words that a researcher uses for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.evaluation.spans import Span, spans

__all__ = ["BOUNDARY", "BOUNDARY_AND_LABEL", "INVENTED", "KINDS", "LABEL", "MISSED", "Mistake", "mistakes"]

LABEL = "wrong label"
BOUNDARY = "wrong boundary"
BOUNDARY_AND_LABEL = "wrong boundary and label"
MISSED = "missed"
INVENTED = "invented"
KINDS = (LABEL, BOUNDARY, BOUNDARY_AND_LABEL, MISSED, INVENTED)


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


def mistakes(gold: Sequence[str], predicted: Sequence[str], scheme: str) -> list[Mistake]:
    """Where a sentence's predicted labels are not the gold ones, from left to right.

    Plain labels can only be wrong. A predicted span is right where a gold one has the same words and type, as
    in the span F1; else its kind says why not. A gold span that no predicted one touches was missed: of the
    spans of either side none is told twice.

    Raises ValueError where lengths differ or a label is no IOB label.
    """
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold labels and {len(predicted)} predicted ones")
    if scheme != "iob2":
        pairs = enumerate(zip(gold, predicted, strict=True))
        return [Mistake(LABEL, at, at + 1, guess, true) for at, (true, guess) in pairs if true != guess]
    true_spans, guesses = spans(gold), spans(predicted)
    right = set(true_spans)
    found = [_judged(guess, true_spans) for guess in guesses if guess not in right]
    found += [
        Mistake(MISSED, true.start, true.end, "", true.type)
        for true in true_spans
        if not any(_touch(true, guess) for guess in guesses)
    ]
    return sorted(found, key=lambda mistake: mistake.start)


def _touch(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


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
