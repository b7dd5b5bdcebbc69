"""What is taken for what: confusion matrices and the kinds of mistakes, held to the scorer's counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.tasks.confusion import (
    BOUNDARY,
    BOUNDARY_AND_LABEL,
    INVENTED,
    LABEL,
    MISSED,
    NOTHING,
    OTHER_WORDS,
    Confusion,
    Mistake,
    label_confusion,
    label_mistakes,
    span_confusion,
    span_mistakes,
    summed,
)
from core.tasks.spans import numbered, span_counts, span_pair

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
rows = st.lists(st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), max_size=9), max_size=5)


def columns(pairs: list[list[tuple[str, str]]]) -> tuple[list[list[str]], list[list[str]]]:
    return [[gold for gold, _ in row] for row in pairs], [[guess for _, guess in row] for row in pairs]


def cells(matrix: Confusion) -> dict[tuple[str, str], int]:
    return {
        (true, guess): int(matrix.counts[row, column])
        for row, true in enumerate(matrix.gold)
        for column, guess in enumerate(matrix.predicted)
    }


@settings(max_examples=60)
@given(rows, rows)
def test_counts_are_those_of_words_and_of_the_scorer_s_spans(
    pairs: list[list[tuple[str, str]]], more: list[list[tuple[str, str]]]
) -> None:
    gold, predicted = columns(pairs)
    words = label_confusion(gold, predicted)
    flat = [pair for row in pairs for pair in row]
    for row, true in enumerate(words.gold):
        for column, guess in enumerate(words.predicted):
            assert words.counts[row, column] == flat.count((true, guess))
    assert words.counts.sum() == len(flat)

    by_span = span_confusion(gold, predicted)
    assert (by_span.gold[-1], by_span.predicted[-2:]) == (NOTHING, (OTHER_WORDS, NOTHING))
    types, *spans = span_pair(*numbered(gold, predicted))
    assert by_span.gold[:-1] == types
    counts = span_counts(types, *spans)
    for row, (annotated, guessed, both) in enumerate(counts):
        assert by_span.counts[row].sum() == annotated
        assert by_span.counts[row, row] == both
        assert by_span.counts[:, row].sum() <= guessed
    assert by_span.counts[-1, -2:].sum() == 0

    # Every predicted span that the F1 counts as wrong is told exactly once; missed ones are untouched.
    wrong = 0
    for true_labels, guesses in zip(gold, predicted, strict=True):
        for mistake in span_mistakes(true_labels, guesses):
            wrong += mistake.kind != MISSED
            if mistake.kind == MISSED:
                assert set(guesses[mistake.start : mistake.end]) == {"O"}
            assert bool(mistake.gold) == (mistake.kind != INVENTED)
    assert wrong == (counts[:, 1] - counts[:, 2]).sum()

    for part in (words, by_span):
        other = (label_confusion if part is words else span_confusion)(*columns(more))
        whole = summed([part, other])
        expected = Counter(cells(part)) + Counter(cells(other))
        assert Counter(cells(whole)) == expected
        annotated_words = whole.counts.sum(axis=1)[: len(whole.gold) - (part is by_span)]
        assert np.all(np.diff(annotated_words) <= 0)


def test_each_way_to_be_wrong_has_its_place() -> None:
    gold = [["B-PER", "I-PER", "O", "B-LOC", "O", "B-LOC", "O", "B-PER"]]
    guess = [["B-PER", "O", "O", "B-PER", "O", "O", "B-LOC", "B-PER"]]
    matrix = span_confusion(gold, guess)
    assert matrix.gold == ("LOC", "PER", NOTHING)
    assert matrix.predicted == ("LOC", "PER", OTHER_WORDS, NOTHING)
    assert matrix.counts.tolist() == [[0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0]]


def as_tuple(mistake: Mistake) -> tuple[str, int, int, str, str]:
    return mistake.kind, mistake.start, mistake.end, mistake.predicted, mistake.gold


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"),
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
def test_wrong_spans(gold: str, predicted: str, expected: list[tuple[str, int, int, str, str]]) -> None:
    assert [as_tuple(span) for span in span_mistakes(gold.split(), predicted.split())] == expected


def test_plain_labels_are_wrong_word_by_word() -> None:
    (mistake,) = label_mistakes(["NN", "VB"], ["NN", "NN"])
    assert as_tuple(mistake) == (LABEL, 1, 2, "NN", "VB")
    with pytest.raises(ValueError, match="2 gold labels and 1"):
        label_mistakes(["NN", "VB"], ["NN"])
