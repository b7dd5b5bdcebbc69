"""Tag schemes: which a column of labels follows, and the one conversion to IOB2 at load.

| scheme | a span of two words, one of one | adjacent spans of one type |
|--------|---------------------------------|----------------------------|
| IOB2   | B-X I-X, B-X                    | B-X B-X                    |
| IOB1   | I-X I-X, I-X                    | I-X B-X                    |
| IOBES  | B-X E-X, S-X                    | S-X S-X                    |
| BILOU  | B-X L-X, U-X                    | U-X U-X                    |

IO, with I-X I-X for both, cannot be converted: it does not tell where one of two adjacent spans ends. A
corpus is only made to train on it (`core.corpora.derived.simulated`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Literal

Scheme = Literal["iob2", "plain", "text", "pair", "score"]
"""The stored name of a kind of task."""

Column = Sequence[Sequence[str]]
"""The labels of one task: a sequence per sentence."""

_IOB = re.compile(r"O|[BI]-.+")
_IOBES = re.compile(r"O|[BIES]-.+")
_BILOU = re.compile(r"O|[BILU]-.+")
_TO_IOB2 = {"S-": "B-", "E-": "I-", "U-": "B-", "L-": "I-"}

# In IOB1 a B- that follows no span of its type is a mistake. One in a hundred openings is forgiven, since
# reading it as IOB1 changes nothing for that label.
_FORGIVEN = 100


def looks_like_spans(labels: Iterable[str]) -> bool:
    """Whether all of these labels are O or B-/I- and a type, with at least one span among them."""
    kinds = set(labels)
    return kinds != {"O"} and bool(kinds) and all(map(_IOB.fullmatch, kinds))


def scheme_of(labels: Iterable[str]) -> Scheme:
    """`iob2` for labels of spans (after conversion), `plain` for all others, POS tags among them."""
    return "iob2" if looks_like_spans(labels) else "plain"


def notation(column: Column) -> str:
    """How spans are written in this column: `IOB1`, `IOB2`, `IOBES`, `BILOU`, or `plain` for no spans."""
    kinds = set(chain.from_iterable(column))
    if looks_like_spans(kinds):
        return "IOB1" if _is_iob1(column) else "IOB2"
    prefixes = {kind[0] for kind in kinds if kind != "O"}
    if prefixes & {"E", "S"} and all(map(_IOBES.fullmatch, kinds)):
        return "IOBES"
    if prefixes & {"L", "U"} and all(map(_BILOU.fullmatch, kinds)):
        return "BILOU"
    return "plain"


def convert(column: Column, written: str) -> list[tuple[str, ...]]:
    """The column in IOB2. `written` is what `notation` says of it."""
    if written == "IOB1":
        return [_from_iob1(labels) for labels in column]
    if written in ("IOBES", "BILOU"):
        return [
            tuple(_TO_IOB2.get(label[:2], label[:2]) + label[2:] for label in labels) for labels in column
        ]
    return [tuple(labels) for labels in column]


def violations(column: Column) -> int:
    """How many I- continue nothing: IOB2 allows I-X only after B-X or I-X."""
    return sum(
        times
        for (before, label), times in _neighbours(column).items()
        if label.startswith("I-") and not _continues(before, label)
    )


def span_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Each label once: `O` first, then by span type and prefix."""
    return tuple(sorted(set(labels), key=lambda label: (label != "O", label[2:], label[:2])))


def inside(label: str) -> str:
    """The label in the IO scheme, which does not tell where a span begins: I-X for B-X."""
    return "I-" + label[2:] if label.startswith("B-") else label


def _neighbours(column: Column) -> Counter[tuple[str, str]]:
    """How often each label stands after each other one; before a sentence, and after it, stands O."""
    flat = [*chain.from_iterable(("O", *labels) for labels in column), "O"]
    return Counter(pairwise(flat))


def _continues(before: str, label: str) -> bool:
    return before[:2] in ("B-", "I-") and before[2:] == label[2:]


def _is_iob1(column: Column) -> bool:
    opened = Counter[str]()
    for (before, label), times in _neighbours(column).items():
        if not _continues(before, label):
            opened[label[:2]] += times
    return opened["I-"] > 0 and opened["B-"] * _FORGIVEN <= opened["I-"]


def _from_iob1(labels: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        "B-" + label[2:] if label.startswith("I-") and not _continues(before, label) else label
        for before, label in zip(("O", *labels), labels, strict=False)
    )
