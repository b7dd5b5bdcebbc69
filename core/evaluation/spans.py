"""Spans in a row of IOB labels, found as the conlleval script of the CoNLL shared tasks finds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Span", "spans"]


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Words `start` to `end` (exclusive, counted from 0) of one type."""

    start: int
    end: int
    type: str


def spans(labels: Sequence[str]) -> list[Span]:
    """The spans of one sentence, from left to right.

    As conlleval reads them: an I- that continues nothing opens a span, and so does a change of type.
    Raises ValueError for a label that is not O, B- or I- and a type.
    """
    found: list[Span] = []
    start, type_ = 0, ""
    for place, label in enumerate((*labels, "O")):
        prefix, _, next_type = label.partition("-")
        if label != "O" and (prefix not in ("B", "I") or not next_type):
            raise ValueError(f"'{label}' (word {place + 1}) is not O, B- or I- and a type")
        if type_ and (prefix != "I" or next_type != type_):
            found.append(Span(start, place, type_))
            type_ = ""
        if label != "O" and not type_:
            start, type_ = place, next_type
    return found
