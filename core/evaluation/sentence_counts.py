"""A task's score as sums over sentences: what a test needs that takes sentences for its units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.evaluation.span_counts import flat_spans

__all__ = ["Counts", "score_of_counts", "sentence_counts"]

Labels = Sequence[Sequence[str]]
Counts = NDArray[np.int64]


def sentence_counts(score_name: str, gold: Labels, predicted: Labels) -> Counts:
    """Per sentence (row): how many items are annotated, how many predicted, how many both: (sentences, 3).

    Items are spans (`f1_conll`, `seqeval_f1`) or words (`accuracy`, where every word is predicted). The score
    of any set of sentences is `score_of_counts` of their sum. Raises ValueError where lengths differ.
    """
    lengths = np.array([len(labels) for labels in gold], dtype=np.int64)
    if list(lengths) != [len(labels) for labels in predicted]:
        raise ValueError("gold and predicted labels have different lengths")
    if score_name == "accuracy":
        return _words(lengths, gold, predicted)
    if score_name == "seqeval_f1":
        return _seqeval(gold, predicted)
    types, true, guess = flat_spans(gold, predicted)
    words = int(lengths.sum())
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    there, found = (spans.keys(words, len(types)) for spans in (true, guess))
    right = true.start[np.isin(there, found, assume_unique=True)]
    starts = (true.start, guess.start, right)
    return np.stack([np.bincount(sentence[one], minlength=len(lengths)) for one in starts], axis=1)


def score_of_counts(counts: NDArray[Any]) -> NDArray[np.float64]:
    """F1 (of words: accuracy) of summed counts (..., 3); 0 where there is nothing to count."""
    items = np.asarray(counts[..., 0] + counts[..., 1])
    score = np.zeros(items.shape)
    np.divide(2.0 * counts[..., 2], items, out=score, where=items > 0)
    return score


def _words(lengths: Counts, gold: Labels, predicted: Labels) -> Counts:
    right = [
        sum(map(str.__eq__, true, guess)) for true, guess in zip(gold, predicted, strict=True)
    ]  # every word is annotated and predicted
    return np.stack([lengths, lengths, np.array(right, dtype=np.int64)], axis=1)


def _seqeval(gold: Labels, predicted: Labels) -> Counts:
    """What seqeval takes for spans in labels that are none (see `core.evaluation.scores`)."""
    import warnings

    from seqeval.metrics.sequence_labeling import get_entities

    rows = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* seems not to be NE tag", category=UserWarning)
        for true, guess in zip(gold, predicted, strict=True):
            there, found = set(get_entities(list(true))), set(get_entities(list(guess)))
            rows.append((len(there), len(found), len(there & found)))
    return np.array(rows, dtype=np.int64).reshape(-1, 3)
