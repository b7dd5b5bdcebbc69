"""What seqeval takes for spans in labels that are none, as POS tags: all sentences at once.

These are the rules of seqeval 1.2.2 in default mode, oddities included. A label's first character is its
prefix, what follows the first hyphen behind that its type (`NNP`: prefix N, type NP; `.` and `N`: type `_`).
The dissertation's POS tables hold the F1 of such spans. seqeval itself warns of every word, and needs as long
for CoNLL-2003's as heads need to train on it; a property test demands its numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.evaluation.gold import Gold, Ints
from core.evaluation.span_counts import FlatSpans

__all__ = ["seqeval_spans"]


def seqeval_spans(gold: Gold, numbers: Ints) -> FlatSpans:
    """The spans that seqeval finds in labels (N,) of the gold labels' names and sentences.

    `start` and `end` are counted over sentences with an O more at their ends, where seqeval puts one.
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
    place = {type_: number for number, type_ in enumerate(dict.fromkeys(one or "_" for one in types))}
    return np.array([place[one or "_"] for one in types], dtype=np.int64)
