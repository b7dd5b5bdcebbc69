"""The alignments, by hand. Mappings have tests of their own."""

from __future__ import annotations

import numpy as np
import pytest

from core.corpora.types import Overlap
from core.mrn.alignments import LabelCounts, align, choose

# Five words; the last is annotated for the first task alone.
WORDS = np.array([[0, 0], [0, 1], [1, 1], [1, 1], [1, -1]])
COUNTS = LabelCounts.from_words(["pos", "ner"], [["N", "V"], ["O", "B"]], WORDS)


def test_counts_are_of_words_with_both_labels() -> None:
    np.testing.assert_array_equal(COUNTS.together, [[2, 0, 1, 1], [0, 3, 0, 2], [1, 0, 1, 0], [1, 2, 0, 3]])
    assert COUNTS.shared.tolist() == [[False, True], [True, False]]


def test_counts_refuse_a_wrong_number_of_columns() -> None:
    with pytest.raises(ValueError, match=r"\(N, 2\).*\(5, 3\)"):
        LabelCounts.from_words(["a", "b"], [["x"], ["y"]], np.zeros((5, 3), dtype=int))


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        # Words annotated for both tasks, labelled words under names of both: one pair of tasks after another.
        ([(1.0, 0.0)], "cooccurrence"),
        ([(1.0, 0.001)], "cooccurrence"),
        ([(1.0, 0.4)], "cooccurrence"),
        ([(1.0, 0.6)], "exact"),
        ([(0.0, 0.99)], "exact"),
        ([(0.0, 0.3)], "exact"),
        ([(0.02, 0.3)], "exact"),
        ([(0.0, 0.001)], "disjoint"),
        ([(0.001, 0.0)], "disjoint"),
        ([(1.0, 0.0), (0.0, 0.99), (0.0, 0.0)], "cooccurrence"),
        ([(0.0, 0.99), (0.0, 0.0), (0.0, 0.0)], "exact"),
    ],
)
def test_auto_chooses_by_evidence(pairs: list[tuple[float, float]], expected: str) -> None:
    name, _ = choose([Overlap((f"a{i}", f"b{i}"), *pair) for i, pair in enumerate(pairs)])
    assert name == expected


def test_the_evidence_names_the_pair_or_ranges() -> None:
    pairs = [Overlap(("a", "b"), 1.0, 0.0004), Overlap(("a", "c"), 0.0, 0.125)]
    shared = "of their words and, by label name,"
    assert f"a and b share 100% {shared} under 0.1% of their labels" in choose(pairs[:1])[1]
    assert f"the 2 pairs of tasks share 0% to 100% {shared} under 0.1% to 12.5% of" in choose(pairs)[1]


def test_indicator_correlation_is_that_of_the_one_hot_columns() -> None:
    shared = WORDS[WORDS[:, 1] >= 0]
    one_hot = np.concatenate([np.eye(2)[shared[:, 0]], np.eye(2)[shared[:, 1]]], axis=1)
    expected = np.corrcoef(one_hot.T)
    np.testing.assert_allclose(COUNTS.indicator_correlation()[:2, 2:], expected[:2, 2:])


# Two corpora: the first annotates pos-a and chunk, the second pos-b and ner. No word has labels of both.
TWO_CORPORA = LabelCounts.from_words(
    ["pos-a", "chunk", "pos-b", "ner"],
    [["N", "V"], ["O", "B-NP"], ["N", "J"], ["O", "B-PER"]],
    np.array([[0, 0, -1, -1], [1, 1, -1, -1], [-1, -1, 0, 0], [-1, -1, 1, 1]]),
)


def test_which_tasks_meet_is_read_from_the_rows() -> None:
    # chunk meets pos-b in the rows that both know pos-a from, N; ner meets chunk nowhere but through pos.
    assert align("cooccurrence", TWO_CORPORA).meet.tolist() == [
        [True, True, True, True],
        [True, True, True, False],
        [True, True, True, True],
        [True, False, True, True],
    ]
    assert align("exact", TWO_CORPORA).meet.tolist() == [
        [True, False, True, False],
        [False, True, False, True],
        [True, False, True, False],
        [False, True, False, True],
    ]
    assert align("exact", TWO_CORPORA).impossible == ()
    assert (align("disjoint", TWO_CORPORA).meet == np.eye(4, dtype=bool)).all()


@pytest.mark.parametrize("name", ["disjoint", "cooccurrence"])
def test_rows_of_their_own_can_be_compared_with_counts(name: str) -> None:
    assert align(name, COUNTS).keeps_rows(COUNTS)
    assert not align("exact", TWO_CORPORA).keeps_rows(TWO_CORPORA)
    # Without common names, `exact` keeps every label apart too.
    assert align("exact", COUNTS).keeps_rows(COUNTS)
