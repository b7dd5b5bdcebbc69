"""The numbers of a covariance, against dense eigenvalues; the strongest pairs, against sorting them all."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.mrn.relations import (
    MODES,
    Block,
    Relations,
    correlation,
    covariance_statistics,
    eigenvalues,
    strongest_pairs,
)
from core.records import TOTAL, relation_metrics


@st.composite
def learned(draw: st.DrawFn) -> Relations:
    """Covariances of up to five tasks, eight labels and twelve features, of any rank and scale."""
    tasks, labels, features = draw(st.integers(2, 5)), draw(st.integers(2, 8)), draw(st.integers(2, 12))
    rank = draw(st.integers(0, 15))
    scale = 10.0 ** draw(st.integers(-12, 12))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    task, label = random.normal(size=(tasks, tasks + 1)), random.normal(size=(labels, labels + 1))
    return Relations(
        scale * task @ task.T,
        scale * label @ label.T,
        np.sqrt(scale) * random.normal(size=(features, rank)),
        scale * draw(st.sampled_from([1.0, 0.01])),
    )


def dense(relations: Relations, mode: str) -> np.ndarray:
    if mode != "feature":
        return relations.covariance(mode)
    factor = relations.feature_factor
    return factor @ factor.T + relations.feature_diagonal * np.eye(len(factor))


@settings(max_examples=60)
@given(learned(), st.sampled_from(MODES))
def test_numbers_are_those_of_the_dense_matrix(relations: Relations, mode: str) -> None:
    matrix = dense(relations, mode)
    expected = np.linalg.eigvalsh(matrix)
    found = covariance_statistics(relations, mode)
    np.testing.assert_allclose(eigenvalues(relations, mode), expected, rtol=1e-6, atol=1e-9 * expected[-1])
    shares = expected / expected.sum()
    assert found.effective_rank == pytest.approx(math.exp(-np.sum(shares * np.log(shares))), rel=1e-6)
    assert 1 <= found.effective_rank <= len(matrix) * (1 + 1e-9)
    assert found.trace == pytest.approx(np.trace(matrix), rel=1e-6)
    assert found.condition == pytest.approx(expected[-1] / expected[0], rel=1e-3)
    off = correlation(matrix)[~np.eye(len(matrix), dtype=bool)]
    assert found.strongest == pytest.approx(off[np.argmax(np.abs(off))], abs=1e-6)


@settings(max_examples=40)
@given(learned(), st.sampled_from(MODES))
def test_correlations_do_not_depend_on_the_scale(relations: Relations, mode: str) -> None:
    tiny = Relations(
        1e-120 * relations.task,
        1e-120 * relations.label,
        1e-60 * relations.feature_factor,
        1e-120 * relations.feature_diagonal,
    )
    shown = tiny.correlation(mode)
    np.testing.assert_allclose(shown, correlation(dense(relations, mode)), atol=1e-6)
    np.testing.assert_array_equal(np.diagonal(shown), 1)
    assert np.abs(shown).max() <= 1


def test_identity_has_all_directions() -> None:
    learned_nothing = Relations(np.eye(3), 2 * np.eye(4), np.zeros((5, 0)), 0.5)
    for mode, size, trace in (("task", 3, 3), ("label", 4, 8), ("feature", 5, 2.5)):
        found = covariance_statistics(learned_nothing, mode)
        assert found.effective_rank == pytest.approx(size)
        assert (found.trace, found.condition, found.strongest) == (trace, 1.0, 0.0)


def test_singular_and_empty_matrices() -> None:
    alike = Relations(np.ones((2, 2)), np.zeros((2, 2)), np.ones((6, 1)), 0.0)
    for mode in ("task", "feature"):
        found = covariance_statistics(alike, mode)
        assert found.effective_rank == pytest.approx(1)
        assert found.condition == math.inf
        assert found.strongest == pytest.approx(1)
    nothing = covariance_statistics(alike, "label")
    assert (nothing.effective_rank, nothing.trace, nothing.condition) == (0.0, 0.0, math.inf)
    assert nothing.strongest == 0
    assert (
        covariance_statistics(Relations(np.eye(1), np.eye(1), np.zeros((1, 0)), 1.0), "task").strongest
        is None
    )


def test_the_sign_of_the_strongest_is_kept() -> None:
    task = np.array([[1, 0.3, -0.6], [0.3, 1, 0.1], [-0.6, 0.1, 1]])
    assert covariance_statistics(
        Relations(task, np.eye(1), np.zeros((1, 0)), 1.0), "task"
    ).strongest == pytest.approx(-0.6)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_is_no_finite_number_is_said(wrong: float) -> None:
    factor = np.ones((3, 1))
    factor[1] = wrong
    for mode in MODES:
        found = covariance_statistics(
            Relations(np.full((2, 2), wrong), np.full((2, 2), wrong), factor, 1.0), mode
        )
        assert math.isnan(found.effective_rank)
        assert math.isnan(found.condition)


@settings(max_examples=40)
@given(learned(), st.integers(0, 40))
def test_strongest_pairs_are_the_first_of_all_sorted(relations: Relations, top: int) -> None:
    matrix = relations.correlation("label")
    size = len(matrix)
    block = Block(0, 1, 1, 2)
    pairs = strongest_pairs(matrix, top, [block])
    everything = sorted(
        (abs(float(matrix[i, j])) for i in range(size) for j in range(i + 1, size) if (i, j) != (0, 1)),
        reverse=True,
    )
    assert [abs(value) for _, _, value in pairs] == pytest.approx(everything[:top])
    assert all(i < j and float(matrix[i, j]) == value for i, j, value in pairs)


def test_metrics_of_a_snapshot() -> None:
    relations = Relations(np.ones((2, 2)), np.eye(1), np.zeros((3, 0)), 2.0)
    event = relation_metrics(7, 0.5, 1.25, relations, objective=-3.0)
    assert (event.step, event.epoch, event.seconds) == (7, 0.5, 1.25)
    assert event.values[TOTAL, "task_condition"] == math.inf
    assert event.values[TOTAL, "feature_trace"] == 6.0
    assert event.values[TOTAL, "objective"] == -3.0
    assert (TOTAL, "label_strongest") not in event.values
    assert (TOTAL, "objective") not in relation_metrics(7, 0.5, 1.25, relations).values
