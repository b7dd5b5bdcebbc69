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
@given(learned(), st.integers(0, 40))
def test_numbers_are_those_of_the_dense_matrices(relations: Relations, top: int) -> None:
    tiny = Relations(
        1e-120 * relations.task,
        1e-120 * relations.label,
        1e-60 * relations.feature_factor,
        1e-120 * relations.feature_diagonal,
    )
    for mode in MODES:
        matrix = dense(relations, mode)
        expected = np.linalg.eigvalsh(matrix)
        statistics = covariance_statistics(relations, mode)
        spectrum = eigenvalues(relations, mode)
        np.testing.assert_allclose(spectrum, expected, rtol=1e-6, atol=1e-9 * expected[-1])
        shares = expected / expected.sum()
        entropy = -np.sum(shares * np.log(shares))
        assert statistics.effective_rank == pytest.approx(math.exp(entropy), rel=1e-6)
        assert 1 <= statistics.effective_rank <= len(matrix) * (1 + 1e-9)
        assert statistics.trace == pytest.approx(np.trace(matrix), rel=1e-6)
        assert statistics.condition == pytest.approx(expected[-1] / expected[0], rel=1e-3)
        off = correlation(matrix)[~np.eye(len(matrix), dtype=bool)]
        assert statistics.strongest == pytest.approx(off[np.argmax(np.abs(off))], abs=1e-6)
        # Correlations do not depend on the scale.
        scaled = tiny.correlation(mode)
        np.testing.assert_allclose(scaled, correlation(matrix), atol=1e-6)
        np.testing.assert_array_equal(np.diagonal(scaled), 1)
        assert np.abs(scaled).max() <= 1

    label = relations.correlation("label")
    pairs = strongest_pairs(label, top, [Block(0, 1, 1, 2)])
    outside = np.abs(label[np.triu_indices(len(label), 1)])[1:]  # the first pair is in the block
    assert [abs(value) for _, _, value in pairs] == pytest.approx(np.sort(outside)[::-1][:top])
    assert all(i < j and float(label[i, j]) == value for i, j, value in pairs)


def test_identity_singular_and_empty_matrices() -> None:
    learned_nothing = Relations(np.eye(3), 2 * np.eye(4), np.zeros((5, 0)), 0.5)
    alike = Relations(np.ones((2, 2)), np.zeros((2, 2)), np.ones((6, 1)), 0.0)
    task = np.array([[1, 0.3, -0.6], [0.3, 1, 0.1], [-0.6, 0.1, 1]])
    signed = Relations(task, np.eye(1), np.zeros((1, 0)), 1.0)
    for relations, mode, rank, trace, condition, strongest in [
        (learned_nothing, "task", 3, 3, 1, 0),
        (learned_nothing, "label", 4, 8, 1, 0),
        (learned_nothing, "feature", 5, 2.5, 1, 0),
        (alike, "task", 1, 2, math.inf, 1),
        (alike, "feature", 1, 6, math.inf, 1),
        (alike, "label", 0, 0, math.inf, 0),
        (signed, "label", 1, 1, 1, None),
    ]:
        statistics = covariance_statistics(relations, mode)
        assert statistics.effective_rank == pytest.approx(rank)
        assert statistics.strongest == (strongest if strongest is None else pytest.approx(strongest))
        assert statistics.trace == pytest.approx(trace)
        assert statistics.condition == condition
    assert covariance_statistics(signed, "task").strongest == pytest.approx(-0.6)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_is_no_finite_number_is_said(wrong: float) -> None:
    factor = np.ones((3, 1))
    factor[1] = wrong
    for mode in MODES:
        matrix = np.full((2, 2), wrong)
        statistics = covariance_statistics(Relations(matrix, matrix, factor, 1.0), mode)
        assert math.isnan(statistics.effective_rank)
        assert math.isnan(statistics.condition)


def test_metrics_of_a_snapshot() -> None:
    relations = Relations(np.ones((2, 2)), np.eye(1), np.zeros((3, 0)), 2.0)
    event = relation_metrics(7, 0.5, 1.25, relations, objective=-3.0)
    assert (event.step, event.epoch, event.seconds) == (7, 0.5, 1.25)
    assert event.values[TOTAL, "task_condition"] == math.inf
    assert event.values[TOTAL, "feature_trace"] == 6.0
    assert event.values[TOTAL, "objective"] == -3.0
    assert (TOTAL, "label_strongest") not in event.values
    assert (TOTAL, "objective") not in relation_metrics(7, 0.5, 1.25, relations).values
