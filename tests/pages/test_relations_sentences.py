"""The sentences on the Relations page that are made from the numbers of the matrix."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mrn.relations import effective_rank
from core.registry import feature_parts
from dashboard.relations.sentences import (
    read_difference,
    read_embeddings,
    read_features,
    read_labels,
    read_parts,
    read_rank,
    read_scores,
    read_seeds,
    read_size,
    read_tasks,
    read_unknown_majority,
    read_unlearned,
)
from tests.pages.matrices import matrix

TASKS = ("pos", "chunk", "ner", "srl")


def tasks(*runs: np.ndarray, possible: np.ndarray | None = None) -> str:
    values = np.stack(runs)
    everywhere = np.ones(values.shape[1:], dtype=bool)
    text = read_tasks(TASKS[: values.shape[1]], values, everywhere if possible is None else possible)
    return text.replace("**", "")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (matrix(3, _01=0.15, _02=0.04), "pos and chunk are weakly related (0.15). ner is unrelated to the "
         "rest."),
        (matrix(3, _01=-0.3, _12=0.95), "chunk and ner are almost fully related (0.95) and pos and chunk are "
         "moderately opposed (−0.30)."),
        (matrix(3, _01=0.296), "pos and chunk are moderately related (0.30). ner is unrelated to the rest."),
        (matrix(3, _12=-0.004), "No two tasks are related: chunk and ner come nearest (0.00)."),
        (matrix(4, _12=0.5), "chunk and ner are strongly related (0.50). pos and srl are unrelated to the "
         "rest."),
        (matrix(4, _12=0.5, _01=0.2), "chunk and ner are strongly related (0.50) and pos and chunk are "
         "weakly related (0.20). srl is unrelated to the rest."),
        (matrix(4, _12=0.5, _01=0.4, _02=0.3, _23=0.2), "chunk and ner are strongly related (0.50), pos and "
         "chunk are moderately related (0.40) and pos and ner are moderately related (0.30). 1 more pair is "
         "weaker."),
    ],
)  # fmt: skip
def test_tasks_are_read_by_strength(values: np.ndarray, sentence: str) -> None:
    assert tasks(values) == sentence


def test_tasks_of_several_seeds_are_read_as_means_and_signs() -> None:
    related = matrix(3, _01=0.3), matrix(3, _01=0.5)
    assert tasks(*related) == (
        "pos and chunk are moderately related (0.40). ner is unrelated to the rest. The sign holds in "
        "each of the 2 seeds."
    )
    changing = matrix(3, _01=-0.1), matrix(3, _01=0.5)
    assert tasks(*changing).endswith(" The sign of pos and chunk changes between the 2 seeds.")
    assert "come nearest (0.05)" in tasks(matrix(3, _01=0.1), matrix(3))


def test_a_mean_says_of_how_many_seeds_it_is() -> None:
    assert read_seeds(7, 1, 1) == "Run 7 is the only one of its configuration. Launch it with more seeds."
    assert read_seeds(7, 80, 50) == "Mean over 50 of 80 seeds of run 7's configuration."


def test_dev_scores_beside_relations_warn_of_a_head_that_has_learned_nothing() -> None:
    assert read_scores({"pos": [0.9, 0.92], "ner": [0.0], "srl": []}) == (
        "Dev scores at this step: pos 91.00 ± 1.41 (2), ner 0.00."
    )
    assert read_scores({"pos": []}) == "No dev score up to this step."
    assert read_unlearned({"pos": [0.1], "ner": []}, {}) == ""
    assert read_unlearned({"pos": [0.9], "ner": [0.0]}, {}) == (
        "At this step the head of ner (dev score 0.00, below 10.00) has learned next to nothing: its "
        "relations have no meaning."
    )
    assert "pos (dev score 5.00, below 10.00) and ner (dev score 0.00" in read_unlearned(
        {"pos": [0.1, 0.0], "ner": [0.0]}, {}
    )


@pytest.mark.parametrize(
    ("majority", "scores", "is_warned"),
    [
        (0.5, [0.505], True),
        (0.5, [0.49, 0.5], True),
        (0.5, [0.54, 0.52], False),
        (0.99, [0.995], False),
        (1.0, [1.0], True),
    ],
)
def test_a_score_of_the_most_frequent_label_alone_is_warned_of(
    majority: float, scores: list[float], is_warned: bool
) -> None:
    text = read_unlearned({"sst": scores, "ner": [0.9]}, {"sst": majority, "ner": 0.2})
    assert bool(text) == is_warned
    assert (f"; its most frequent label alone gives {100 * majority:.2f})" in text) == is_warned
    assert "the labels of sst are stored (they come when a run ends)" in read_unknown_majority(["sst"])
    assert not read_unknown_majority([])


def test_what_cannot_be_learned_is_not_read() -> None:
    assert (
        tasks(matrix(3), possible=np.eye(3, dtype=bool))
        == "No relation between these tasks could be learned."
    )
    possible = ~np.isin(np.arange(9).reshape(3, 3), (1, 3))
    assert tasks(matrix(3, _01=0.9, _12=0.2), possible=possible).startswith("chunk and ner are weakly")


def test_labels_are_read_across_tasks_each_once() -> None:
    names = ("a:x", "a:y", "b:x", "b:y")
    owned = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]], dtype=bool)
    possible = np.ones((4, 4), dtype=bool)
    values = matrix(4, _02=0.9, _03=0.8, _13=0.5, _12=-0.6, _01=0.95)[None]
    assert read_labels(names, values, possible, owned) == (
        "Across tasks, the strongest pairs are **a:x** and **b:x** (0.90) and **a:y** and **b:y** (0.50); "
        "most opposed are **a:y** and **b:x** (−0.60)."
    )
    within = read_labels(names, values, owned, owned)
    assert within == "Within tasks, the strongest pairs are **a:x** and **a:y** (0.95)."
    assert read_labels(names, matrix(4)[None], possible, owned) == "No two labels are related."


def test_many_labels_alike_are_explained() -> None:
    possible = np.ones((4, 4), dtype=bool)
    alike = matrix(4, _01=0.9, _02=0.85, _12=0.8)[None]
    words = read_size("label", alike, possible, "cooccurrence")
    assert words.startswith("50% of the pairs are at 0.8 or above")
    assert "counted, not learned" in words
    assert "counted" not in read_size("label", alike, possible, "exact")
    assert not read_size("task", alike, possible, "cooccurrence")
    assert not read_size("label", matrix(4, _01=0.9)[None], possible, "cooccurrence")
    # What cannot be learned does not count.
    assert (
        read_size("label", alike, possible & ~np.isin(np.arange(16).reshape(4, 4), (3, 7, 11)), None)[:4]
        == "100%"
    )
    assert "depends on λ" in read_size("task", matrix(3, _01=0.99, _12=-1.0)[None], possible[:3, :3], None)
    # Of several runs each matrix counts, not their mean.
    beside = np.stack([matrix(2, _01=0.999), matrix(2, _01=0.97)])
    alone = read_size("task", beside[:1], possible[:2, :2], None)
    assert alone.startswith("100% of the learned correlations are at ±0.98 or beyond")
    assert "100%" not in read_size("task", beside, possible[:2, :2], None)


def test_features_are_read_by_their_effective_rank() -> None:
    names = [f"feature {number}" for number in range(4)]
    values = matrix(4, _13=-0.6)
    assert read_features(names, values[None], [1.6]) == (
        "To these heads the features are partly redundant: their variance spreads over **2 of 4 directions** "
        "(effective rank). The strongest pair, **feature 1** and **feature 3**, is strongly opposed (−0.60)."
    )
    several = read_features(names, np.stack([np.eye(4), np.eye(4)]), [4.0, 3.6])
    assert several.endswith("**4 of 4 directions** (effective rank, 4 to 4 over 2 seeds).")
    assert "nearly independent" in several
    assert "highly redundant" in read_features(names, values[None], [0.9])


def test_features_of_an_lstm_are_told_by_their_origin() -> None:
    assert read_parts(feature_parts("bilstm"), 10) == (
        "Features by their origin: 0 to 4 read forwards; 5 to 9 read backwards."
    )
    assert read_parts(feature_parts("sc-lstm"), 8).count(";") == 3
    assert read_parts(feature_parts("minilm"), 384) == ""


def test_runs_side_by_side_are_read_by_their_largest_difference() -> None:
    fixed = np.zeros((2, 3, 3), dtype=bool)
    two = np.stack([matrix(3, _01=0.4, _02=0.1), matrix(3, _01=0.2, _02=-0.3)])
    assert read_difference(TASKS, two, fixed, [7, 9]) == (
        "They differ most in **pos** and **ner**: 0.10 in run 7 and −0.30 in run 9."
    )


@given(data=st.data(), size=st.integers(2, 4), count=st.integers(2, 4))
def test_runs_are_called_the_same_only_where_no_pair_differs(
    data: st.DataObject, size: int, count: int
) -> None:
    """Of generated runs with pairs that some cannot learn, where the correlation is 0."""
    runs, fixed = [], []
    correlation_values = st.one_of(st.sampled_from([0.0, 0.5, 0.504]), st.floats(-1, 1))
    for _ in range(count):
        drawn = {
            f"_{i}{j}": (data.draw(correlation_values), data.draw(st.booleans()))
            for i in range(size)
            for j in range(i + 1, size)
        }
        runs.append(matrix(size, **{pair: 0.0 if is_fixed else r for pair, (r, is_fixed) in drawn.items()}))
        fixed.append(matrix(size, **{pair: float(is_fixed) for pair, (_, is_fixed) in drawn.items()}) > 0)
    values = np.stack(runs)
    text = read_difference(TASKS[:size], values, np.stack(fixed), range(1, count + 1))
    largest = np.ptp(values, axis=0).max()
    assert ("same" in text) <= (largest < 0.005)
    assert ("differ" in text) == (largest >= 0.005)
    if largest >= 0.005:
        named = re.findall(r"\*\*(\w+)\*\*", text)
        i, j = (TASKS.index(name) for name in named)
        assert np.ptp(values[:, i, j]) == largest
        assert text.count("by construction") == sum(mask[i, j] for mask in fixed)


@pytest.mark.parametrize(
    ("covariance", "cause"),
    [
        (np.diag([2.83, 0.17, 0.001]), "; unequal variances explain the whole reduction."),
        (matrix(3, _01=0.9), "; correlations explain the whole reduction."),
        (
            matrix(2, _01=0.6) * np.outer([1, 2], [1, 2]),
            "; unequal variances explain 0.35 and correlations explain 0.22 of the reduction.",
        ),
        (np.eye(3), "."),
    ],
)
def test_what_lowers_the_effective_rank_is_told(covariance: np.ndarray, cause: str) -> None:
    rank, size = effective_rank(np.linalg.eigvalsh(covariance)), len(covariance)
    assert read_rank(np.diagonal(covariance), rank, has_bars=False) == (
        f"Effective rank {rank:.2f} of {size}{cause}"
    )
    words = read_rank(np.diagonal(covariance), np.nan, has_bars=True)
    assert words == "Bars: prior variance of each row, relative to the mean."


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (matrix(2, _01=0.03), "a and b embeddings are nearly orthogonal (0.03)."),
        (matrix(2, _01=-0.6), "Task embeddings: a and b strongly opposed (−0.60)."),
        (
            matrix(3, _01=0.02, _12=-0.05),
            "All task embeddings are nearly orthogonal: b and c come nearest to each other (−0.05).",
        ),
        (
            matrix(3, _01=0.4, _12=-0.15),
            "Task embeddings: a and b moderately alike (0.40) and b and c weakly opposed (−0.15). All others "
            "are nearly orthogonal.",
        ),
        (
            matrix(4, _01=0.9, _02=0.8, _03=0.7, _12=0.2, _13=0.3),
            "Task embeddings: a and b almost fully alike (0.90), a and c strongly alike (0.80) and a and d "
            "strongly alike (0.70). 2 more pairs are weaker.",
        ),
    ],
)
def test_what_the_cosines_say(values: np.ndarray, sentence: str) -> None:
    assert read_embeddings("abcd"[: len(values)], values[None]).replace("**", "") == sentence
