"""Confusion matrices: their margins are what is annotated and predicted, their diagonal what is right."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.evaluation.confusion import NOTHING, OTHER_WORDS, confusion, summed
from core.evaluation.spans import numbered, span_counts, span_pair

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
rows = st.lists(st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), max_size=9), max_size=5)


def columns(pairs: list[list[tuple[str, str]]]) -> tuple[list[list[str]], list[list[str]]]:
    return [[gold for gold, _ in row] for row in pairs], [[guess for _, guess in row] for row in pairs]


@given(rows)
def test_words(pairs: list[list[tuple[str, str]]]) -> None:
    gold, predicted = columns(pairs)
    found = confusion("plain", gold, predicted)
    flat = [pair for row in pairs for pair in row]
    for row, true in enumerate(found.gold):
        for column, guess in enumerate(found.predicted):
            assert found.counts[row, column] == flat.count((true, guess))
    assert found.counts.sum() == len(flat)


@given(rows)
def test_spans(pairs: list[list[tuple[str, str]]]) -> None:
    gold, predicted = columns(pairs)
    found = confusion("iob2", gold, predicted)
    assert (found.gold[-1], found.predicted[-2:]) == (NOTHING, (OTHER_WORDS, NOTHING))
    types, *spans = span_pair(*numbered(gold, predicted))
    assert found.gold[:-1] == types
    for row, (annotated, guessed, both) in enumerate(span_counts(types, *spans)):
        assert found.counts[row].sum() == annotated
        assert found.counts[row, row] == both
        assert found.counts[:, row].sum() <= guessed
    assert found.counts[-1, -2:].sum() == 0


def test_each_way_to_be_wrong_has_its_place() -> None:
    gold = [["B-PER", "I-PER", "O", "B-LOC", "O", "B-LOC", "O", "B-PER"]]
    guess = [["B-PER", "O", "O", "B-PER", "O", "O", "B-LOC", "B-PER"]]
    found = confusion("iob2", gold, guess)
    assert found.gold == ("LOC", "PER", NOTHING)
    assert found.predicted == ("LOC", "PER", OTHER_WORDS, NOTHING)
    assert found.counts.tolist() == [[0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0]]


@given(rows, rows)
def test_sums_keep_every_count(one: list[list[tuple[str, str]]], other: list[list[tuple[str, str]]]) -> None:
    for scheme in ("plain", "iob2"):
        parts = [confusion(scheme, *columns(pairs)) for pairs in (one, other)]
        whole = summed(parts)
        assert whole.counts.sum() == sum(part.counts.sum() for part in parts)
        for true in whole.gold:
            for guess in whole.predicted:
                expected = sum(
                    part.counts[part.gold.index(true), part.predicted.index(guess)]
                    for part in parts
                    if true in part.gold and guess in part.predicted
                )
                assert whole.counts[whole.gold.index(true), whole.predicted.index(guess)] == expected
        annotated = whole.counts.sum(axis=1)[: len(whole.gold) - (scheme == "iob2")]
        assert np.all(np.diff(annotated) <= 0)
