"""Covariances of any rank and scale: their numbers against dense ones, and what their snapshots keep."""

from __future__ import annotations

import math
import zlib

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.metrics import TOTAL, relation_metrics
from core.mrn.relations import (
    Block,
    Relations,
    correlation,
    covariance_statistics,
    eigenvalues,
    strongest_pairs,
)
from core.registry import MODES
from core.store.snapshot_codec import decode, encode


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


# Snapshots: no correlation of any mode changes by more than 1e-3, whatever was learned


@st.composite
def covariances(draw: st.DrawFn) -> Relations:
    """Of any rank and scale, rows of one matrix differing by up to 1e12, some of them zero."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    features, rank = draw(st.integers(1, 24)), draw(st.integers(0, 30))
    inner = draw(st.integers(1, 30))
    spectrum = 10.0 ** -np.linspace(0, draw(st.floats(0, 9)), inner)
    factor = random.normal(size=(features, inner)) * spectrum @ random.normal(size=(inner, rank))
    factor *= _row_scales(draw, random, features)
    diagonal = draw(st.sampled_from([0.0, 1e-6, 1.0])) * float(np.square(factor).max(initial=0.0))
    return Relations(
        _dense(draw, random, draw(st.integers(1, 6))),
        _dense(draw, random, draw(st.integers(1, 12))),
        factor.astype(draw(st.sampled_from([np.float32, np.float64]))),
        diagonal,
    )


def _row_scales(draw: st.DrawFn, random: np.random.Generator, size: int) -> np.ndarray:
    spread = draw(st.sampled_from([0.0, 2.0, 6.0]))
    scales = 10.0 ** random.uniform(-spread, spread, size=(size, 1))
    scales[random.random(size) < draw(st.sampled_from([0.0, 0.2, 1.0]))] = 0.0
    return scales * 10.0 ** draw(st.integers(-12, 12))


def _dense(draw: st.DrawFn, random: np.random.Generator, size: int) -> np.ndarray:
    root = random.normal(size=(size, draw(st.integers(1, 12)))) * _row_scales(draw, random, size)
    scale = 10.0 ** draw(st.sampled_from([-200, 0, 200]))
    return np.asarray(scale * (root @ root.T))


def worst_case() -> Relations:
    """Entries halfway between two numbers of float16, at its lowest precision."""
    factor = np.full((6, 2), (1 + 2.0**-11) / 2)
    factor[::2] *= -1
    return Relations(np.eye(1), np.eye(1), factor, 0.5)


@settings(max_examples=80)
@given(covariances())
@example(worst_case())
@example(Relations(np.zeros((2, 2)), np.zeros((3, 3)), np.zeros((5, 2)), 0.0))
@example(Relations(np.eye(2), np.eye(3), np.zeros((5, 0)), 1.0))
def test_correlations_and_variances_are_kept(relations: Relations) -> None:
    stored = decode(encode(relations))
    for mode in MODES:
        kept, original = stored.correlation(mode), relations.correlation(mode)
        assert float(np.max(np.abs(kept - original))) <= 1e-3
        np.testing.assert_array_equal(np.diagonal(kept), np.diagonal(original))
    for mode in ("task", "label"):
        variances = np.diagonal(relations.covariance(mode))
        np.testing.assert_allclose(np.diagonal(stored.covariance(mode)), variances, rtol=1e-6)
    assert stored.feature_diagonal == relations.feature_diagonal
    # A row's length to a thousandth of its standard deviation, which is all that correlations need.
    deviations, _ = relations.unit_rows()
    difference = stored.unit_rows()[0] - deviations
    np.testing.assert_array_less(np.abs(difference), 1e-3 * deviations + 1e-300)


@pytest.mark.parametrize(("tasks", "labels", "features"), [(3, 78, 768), (2, 47, 1536)])
def test_a_tenth_of_dense(tasks: int, labels: int, features: int) -> None:
    """At full rank, the largest there is: as many directions as labels."""
    random = np.random.default_rng(0)
    task, label = random.normal(size=(tasks, tasks)), random.normal(size=(labels, labels))
    relations = Relations(task @ task.T, label @ label.T, random.normal(size=(features, labels)), 0.5)
    row = encode(relations)
    assert row["rank"] == labels
    float32 = 4 * (tasks**2 + labels**2 + features**2)
    assert sum(len(row[name]) for name in ("task", "label", "factor")) <= float32 / 10


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_is_no_covariance_is_kept_as_it_is(wrong: float) -> None:
    label = np.array([[1.0, wrong], [0.5, 2.0]], dtype=np.float32)
    factor = np.ones((4, 2), dtype=np.float32)
    factor[2, 1] = wrong
    lopsided = np.array([[1.0, 0.5], [-0.5, -2.0]], dtype=np.float32)
    stored = decode(encode(Relations(lopsided, label, factor, wrong)))
    np.testing.assert_array_equal(stored.task, lopsided)
    np.testing.assert_array_equal(stored.label, label)
    if math.isinf(wrong):
        np.testing.assert_array_equal(stored.feature_factor, factor)
        assert stored.feature_diagonal == wrong
    else:
        assert np.isnan(stored.correlation("feature")).all()


@pytest.mark.parametrize("kind", ["<f2", "<f4", "with deviations", "compressed", "padded"])
def test_snapshots_of_earlier_versions(kind: str) -> None:
    """A factor of rank 2 alone or after its standard deviations; or bytes in planes, integers folded onto 0,
    1, 2, ..., direction after direction.
    """
    factor = np.array([[3, 0], [-4, 1], [70_000, -1], [0, 0], [5, -300], [-1, 2]])
    deviations, dtype, scale = np.linspace(1, 6, 6), "<f4", 0.25
    folded = np.where(factor >= 0, 2 * factor, -2 * factor - 1).T.astype("<i4")
    planes = [
        np.ascontiguousarray(part).reshape(-1, 1).view(np.uint8).T.tobytes()
        for part in (deviations.astype("<f8"), folded)
    ]
    expected = scale * factor * deviations[:, None]
    match kind:
        case "<f2" | "<f4":
            factor = factor.clip(-300, 300)
            dtype, blob, expected = kind, factor.astype(kind).tobytes(), scale * factor
        case "with deviations":
            blob = deviations.astype("<f8").tobytes() + factor.astype("<f4").tobytes()
            expected = factor * deviations[:, None]
        case _:
            blob = zlib.compress(b"".join(planes)) + (b"\0" if kind == "padded" else b"")
    row = {
        **{"tasks": 2, "labels": 3, "features": 6, "rank": 2, "feature_diagonal": 0.25, "factor": blob},
        **{"task": np.eye(2, dtype="<f4").tobytes(), "label": np.full((3, 3), 0.5, dtype="<f4").tobytes()},
        **{"factor_type": dtype, "factor_scale": scale},
    }
    stored = decode(row)
    np.testing.assert_array_equal(stored.task, np.eye(2))
    np.testing.assert_array_equal(stored.label, np.full((3, 3), 0.5))
    np.testing.assert_allclose(stored.feature_factor, expected, rtol=1e-6)
    assert stored.feature_factor.dtype == np.float32
    assert stored.feature_diagonal == 0.25
