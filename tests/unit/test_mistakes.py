"""The kinds of mistakes in a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evaluation.confusion import BOUNDARY, BOUNDARY_AND_LABEL, INVENTED, LABEL, MISSED, mistakes
from core.evaluation.spans import numbered, span_counts, span_pair

_LABELS = st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"])
_PAIRS = st.lists(st.tuples(_LABELS, _LABELS), max_size=9)


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
def test_spans(gold: str, predicted: str, told: list[tuple[str, int, int, str, str]]) -> None:
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
