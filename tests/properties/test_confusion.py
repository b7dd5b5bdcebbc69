"""What is taken for what: confusion matrices and the kinds of mistakes, held to the scorer's counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.evaluation.confusion import (
    BOUNDARY,
    BOUNDARY_AND_LABEL,
    INVENTED,
    LABEL,
    MISSED,
    NOTHING,
    OTHER_WORDS,
    confusion,
    mistakes,
    summed,
)
from core.evaluation.spans import numbered, span_counts, span_pair

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
rows = st.lists(st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), max_size=9), max_size=5)


def columns(pairs: list[list[tuple[str, str]]]) -> tuple[list[list[str]], list[list[str]]]:
    return [[gold for gold, _ in row] for row in pairs], [[guess for _, guess in row] for row in pairs]


@settings(max_examples=40)
@given(rows)
def test_words(pairs: list[list[tuple[str, str]]]) -> None:
    gold, predicted = columns(pairs)
    found = confusion("plain", gold, predicted)
    flat = [pair for row in pairs for pair in row]
    for row, true in enumerate(found.gold):
        for column, guess in enumerate(found.predicted):
            assert found.counts[row, column] == flat.count((true, guess))
    assert found.counts.sum() == len(flat)


@settings(max_examples=40)
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


@settings(max_examples=40)
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


_PAIRS = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), max_size=9)


@pytest.mark.parametrize(
    ("gold", "predicted", "told"),
    [
        ("B-A I-A O", "B-A I-A O", []),
        ("B-A I-A O", "B-B I-B O", [(LABEL, 0, 2, "B", "A")]),
        ("B-A I-A O", "B-A O O", [(BOUNDARY, 0, 1, "A", "A")]),
        ("B-A I-A O", "O B-B O", [(BOUNDARY_AND_LABEL, 1, 2, "B", "A")]),
        ("B-A I-A O", "O O O", [(MISSED, 0, 2, "", "A")]),
        ("O O O", "O O B-A", [(INVENTED, 2, 3, "A", "")]),
        # One long span over two: it is told once, and no gold span besides.
        ("B-A B-B O", "B-A I-A O", [(BOUNDARY, 0, 2, "A", "A")]),
        ("B-A O B-B", "O B-A B-B", [(MISSED, 0, 1, "", "A"), (INVENTED, 1, 2, "A", "")]),
    ],
)
def test_wrong_spans(gold: str, predicted: str, told: list[tuple[str, int, int, str, str]]) -> None:
    found = mistakes(gold.split(), predicted.split(), "iob2")
    assert [(one.kind, one.start, one.end, one.predicted, one.gold) for one in found] == told


def test_plain_labels_are_wrong_word_by_word() -> None:
    (only,) = mistakes(["NN", "VB"], ["NN", "NN"], "plain")
    assert (only.kind, only.start, only.end, only.predicted, only.gold) == (LABEL, 1, 2, "NN", "VB")
    with pytest.raises(ValueError, match="2 gold labels and 1"):
        mistakes(["NN", "VB"], ["NN"], "plain")


@given(_PAIRS)
def test_as_many_as_the_scorer_counts(pairs: list[tuple[str, str]]) -> None:
    """Every predicted span that the F1 counts as wrong is told exactly once; missed ones are untouched."""
    gold, predicted = [one for one, _ in pairs], [two for _, two in pairs]
    counts = span_counts(*span_pair(*numbered([gold], [predicted])))
    wrong = int((counts[:, 1] - counts[:, 2]).sum())
    found = mistakes(gold, predicted, "iob2")
    assert sum(one.kind != MISSED for one in found) == wrong
    for one in found:
        if one.kind == MISSED:
            assert set(predicted[one.start : one.end]) == {"O"}
        assert bool(one.gold) == (one.kind != INVENTED)
