"""The sentences on the Relations page that are made from the numbers of the matrix."""

from __future__ import annotations

import numpy as np
import pytest

from core.evaluation.relation_verdicts import relation_verdicts
from core.mrn.relations import effective_rank
from core.registry import feature_parts
from dashboard.relations.sentences import (
    read_alone,
    read_driven,
    read_embeddings,
    read_features,
    read_parts,
    read_rank,
    read_saturation,
    read_scores,
    read_size,
    read_strength,
    read_undecided,
    read_unlearned,
)
from tests.pages.matrices import matrix


def test_dev_scores_beside_relations_warn_of_a_head_that_has_learned_nothing() -> None:
    assert read_scores({"pos": [0.9, 0.92], "ner": [0.0], "srl": []}) == (
        "Dev scores at this step: pos 91.00 ± 1.41 (2), ner 0.00."
    )
    assert read_scores({"pos": []}) == "No dev score up to this step."
    long = {f"{'a task of sixty characters, of twelve that a run has ' * 2}{n}": [0.9] for n in range(12)}
    assert read_scores(long).endswith(" and 11 more.")
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


def test_many_labels_alike_are_explained() -> None:
    possible = np.ones((4, 4), dtype=bool)
    alike = matrix(4, _01=0.9, _02=0.85, _12=0.8)[None]
    assert read_size(alike, possible) == (
        "50% of all pairs are at 0.8 or above, so a high value alone says little: look at the opposed pairs."
    )
    assert not read_size(matrix(4, _01=0.9)[None], possible)
    # What cannot be learned does not count.
    learnable = possible & ~np.isin(np.arange(16).reshape(4, 4), (3, 7, 11))
    assert read_size(alike, learnable).startswith("100%")


def test_the_lambda_that_drove_correlations_to_one_is_named() -> None:
    possible = np.ones((3, 3), dtype=bool)
    default = read_strength({"0.003"}, is_default=True)
    given = read_strength({"0.1"}, is_default=False)
    assert read_saturation(matrix(3, _01=0.99, _12=-1.0)[None], possible, given) == (
        "λ=0.1 drove 67% of the correlations to ±0.98 or beyond: their size says little."
    )
    # Of several runs each matrix counts, not their mean.
    beside = np.stack([matrix(2, _01=0.999), matrix(2, _01=0.97)])
    assert read_saturation(beside[:1], possible[:2, :2], default) == (
        "The default λ=0.003 drove the correlation to ±0.98 or beyond: its size says little."
    )
    assert not read_saturation(beside, possible[:2, :2], read_strength({"0.1", "1"}, is_default=False))
    assert read_driven(["a", "b"], "related", np.array([0.9999, 0.994, 1.0]), default) == (
        "a and b are related; how strongly is not known. The default λ=0.003 drove their "
        "correlation above 0.99 in all 3 seeds."
    )
    opposed = read_driven(["a", "b"], "opposed", np.array([-0.9999, -0.985]), "These λ")
    assert "opposed; how strongly is not known. These λ drove their correlation below −0.98" in opposed


def test_what_the_alignment_is_and_how_many_pairs_it_alone_relates() -> None:
    assert read_alone(2, "cooccurrence") == (
        "Before training, labels that fall on the same words are already linked (alignment); that alone "
        "relates 2 more pairs as far."
    )
    assert read_alone(0, None) == "Before training, some labels are already linked (alignment)."


def test_features_are_read_by_their_effective_rank() -> None:
    assert read_features(4, [1.6]) == (
        "To these heads the features are partly redundant: their variance spreads over 2 of 4 directions."
    )
    several = read_features(4, [4.0, 3.6])
    assert several.endswith("4 of 4 directions (4 to 4 over 2 seeds).")
    assert "nearly independent" in several
    assert "highly redundant" in read_features(4, [0.9])


def test_features_of_an_lstm_are_told_by_their_origin() -> None:
    assert read_parts(feature_parts("bilstm"), 10) == (
        "Features by their origin: 0 to 4 read forwards; 5 to 9 read backwards."
    )
    assert read_parts(feature_parts("sc-lstm"), 8).count(";") == 3
    assert read_parts(feature_parts("minilm"), 384) == ""


@pytest.mark.parametrize(
    ("covariance", "cause"),
    [
        (np.diag([2.83, 0.17, 0.001]), ", from unequal variances."),
        (matrix(3, _01=0.9), ", from correlations."),
        (
            matrix(2, _01=0.6) * np.outer([1, 2], [1, 2]),
            ", mostly from unequal variances.",
        ),
        (np.eye(3), "."),
    ],
)
def test_what_lowers_the_effective_rank_is_told(covariance: np.ndarray, cause: str) -> None:
    rank, size = effective_rank(np.linalg.eigvalsh(covariance)), len(covariance)
    assert read_rank(np.diagonal(covariance), rank) == f"Effective rank {rank:.1f} of {size}{cause}"
    assert not read_rank(np.diagonal(covariance), np.nan)


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
    assert read_embeddings("abcd"[: len(values)], values[None]) == sentence


def test_many_tests_of_few_seeds_say_why_they_decide_little() -> None:
    random = np.random.default_rng(1)
    values = np.stack([matrix(4, _01=0.9)] * 3) + random.normal(scale=0.3, size=(3, 4, 4))
    values = np.clip((values + values.transpose(0, 2, 1)) / 2, -1, 1)
    tested = ~np.eye(4, dtype=bool)
    text = read_undecided(relation_verdicts(values, tested))
    assert text.endswith("of 6 pairs are undecided** after 3 seeds.")
    assert not read_undecided(relation_verdicts(np.stack([matrix(2, _01=0.9)] * 3), tested[:2, :2]))
