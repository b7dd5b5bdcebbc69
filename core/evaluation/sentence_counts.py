"""A task's score as sums over sentences: what a test needs that takes sentences for its units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.evaluation.gold import Ints, Labels, numbered
from core.evaluation.seqeval_spans import seqeval_spans
from core.evaluation.span_counts import FlatSpans, Notation

__all__ = ["Counts", "score_of_counts", "sentence_counts"]

Counts = NDArray[np.int64]


def sentence_counts(score_name: str, gold: Labels, predicted: Labels) -> Counts:
    """Per sentence (row): how many items are annotated, how many predicted, how many both: (sentences, 3).

    Items are spans (`f1_conll`, `seqeval_f1`) or words (`accuracy`, where every word is predicted). The score
    of any set of sentences is `score_of_counts` of their sum. Raises ValueError where lengths differ.
    """
    if [len(labels) for labels in gold] != [len(labels) for labels in predicted]:
        raise ValueError("gold and predicted labels have different lengths")
    known, guess = numbered(gold, predicted)
    if score_name == "accuracy":
        right = np.bincount(_sentences(known.lengths)[known.numbers == guess], minlength=len(known.lengths))
        return np.stack([known.lengths, known.lengths, right], axis=1)
    if score_name == "seqeval_f1":
        return _by_sentence(
            seqeval_spans(known, known.numbers), seqeval_spans(known, guess), known.lengths + 1
        )
    notation = Notation.of(known.names)
    true, found = (notation.spans(numbers, known.first) for numbers in (known.numbers, guess))
    return _by_sentence(true, found, known.lengths)


def _sentences(lengths: Ints) -> Ints:
    """(N,): the sentence of each word."""
    return np.repeat(np.arange(len(lengths)), lengths)


def _by_sentence(true: FlatSpans, found: FlatSpans, lengths: Ints) -> Counts:
    """Annotated, predicted and common spans of each sentence: the one that a span ends in."""
    sentence = _sentences(lengths)
    ends = (true.end, found.end, found.end[found.among(true)])
    return np.stack([np.bincount(sentence[one - 1], minlength=len(lengths)) for one in ends], axis=1)


def score_of_counts(counts: NDArray[Any]) -> NDArray[np.float64]:
    """F1 (of words: accuracy) of summed counts (..., 3); 0 where there is nothing to count."""
    items = np.asarray(counts[..., 0] + counts[..., 1])
    score = np.zeros(items.shape)
    np.divide(2.0 * counts[..., 2], items, out=score, where=items > 0)
    return score
