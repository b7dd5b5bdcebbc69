"""The arithmetic of curves beside a naive computation with pandas and scipy."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from core.evaluation.statistics import band, summary
from dashboard.curves.numbers import kept, positions, side_by_side, smooth

NUMBERS = st.floats(-1e3, 1e3)
GAPPY = NUMBERS | st.just(math.nan)
CURVE = arrays(np.float64, st.integers(1, 3000), elements=GAPPY)


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=GAPPY))
def test_band_is_the_summary_of_each_column(values: np.ndarray) -> None:
    result = band(values)
    for place, column in enumerate(values.T):
        known = column[np.isfinite(column)]
        assert result.n[place] == len(known)
        row = [result.mean[place], result.sd[place], result.low[place], result.high[place]]
        if not len(known):
            assert np.isnan(row).all()
            continue
        statistics = summary(known)
        expected = [
            statistics.mean,
            *(np.nan if part is None else part for part in (statistics.sd, statistics.low, statistics.high)),
        ]
        assert row == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)


@st.composite
def seeds(draw: st.DrawFn) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """A few seeds with points at any places of their own."""
    xs, ys = [], []
    for _ in range(draw(st.integers(1, 5))):
        x = draw(st.lists(st.integers(0, 60), min_size=1, max_size=30, unique=True).map(sorted))
        xs.append(np.array(x, dtype=float))
        ys.append(draw(arrays(np.float64, len(x), elements=GAPPY)))
    return xs, ys


@given(seeds())
def test_seeds_side_by_side_are_what_pandas_makes_of_them(
    drawn: tuple[list[np.ndarray], list[np.ndarray]],
) -> None:
    xs, ys = drawn
    x, values, interpolated = side_by_side(xs, ys)
    assert x.tolist() == sorted(set(np.concatenate(xs)))
    for row, seed_x, seed_y in zip(values, xs, ys, strict=True):
        curve = pd.Series(seed_y, index=seed_x)
        naive = curve.reindex(x)
        if interpolated:
            for at in x:
                if at not in curve.index and seed_x[0] < at < seed_x[-1]:
                    before, after = seed_x[seed_x < at][-1], seed_x[seed_x > at][0]
                    share = (at - before) / (after - before)
                    naive[at] = curve[before] + share * (curve[after] - curve[before])
        assert row == pytest.approx(naive.to_numpy(), nan_ok=True, abs=1e-9)


def test_a_live_seed_is_shorter_and_nothing_is_interpolated() -> None:
    x, y = np.arange(40.0), np.linspace(1, 2, 40)
    joint, values, interpolated = side_by_side([x, x[:15]], [y, y[:15]])
    assert not interpolated
    assert np.array_equal(joint, x)
    assert np.isfinite(values[1]).sum() == 15
    assert band(values).n.tolist() == [2] * 15 + [1] * 25


@given(CURVE, st.integers(10, 400))
def test_thinning_keeps_ends_extremes_and_gaps(y: np.ndarray, most: int) -> None:
    x = np.arange(len(y), dtype=float)
    at = kept(x, [y], most)
    assert np.all(np.diff(at) > 0)
    assert (at[0], at[-1]) == (0, len(y) - 1)
    finite = y[np.isfinite(y)]
    if len(finite):
        assert np.nanmin(y[at]) == finite.min()
        assert np.nanmax(y[at]) == finite.max()
    if np.isnan(y).any():
        assert np.isnan(y[at]).any()
    # A lowest, a highest and a gap of each stretch, and the ends.
    assert len(at) <= 1.5 * most + 4 if len(y) > most else len(at) == len(y)


@settings(max_examples=40)
@given(arrays(np.float64, st.integers(1, 60), elements=GAPPY), st.floats(0.01, 0.99))
def test_smoothing_is_a_weighted_mean_of_the_past(values: np.ndarray, weight: float) -> None:
    result = smooth(values, weight)
    for place, value in enumerate(values):
        if np.isnan(value):
            assert np.isnan(result[place])
            continue
        past = values[: place + 1]
        weights = weight ** np.arange(place, -1, -1)
        known = np.isfinite(past)
        assert result[place] == pytest.approx(np.average(past[known], weights=weights[known]), abs=1e-6)


def test_an_infinite_loss_leaves_the_rest_of_a_smoothed_line() -> None:
    result = smooth(np.array([1.0, np.inf, 3.0, np.nan, 5.0]), 0.5)
    assert np.isnan(result[[1, 3]]).all()
    assert np.isfinite(result[[0, 2, 4]]).all()
    values = np.array([1.0, 2.0])
    assert smooth(values, 0.0) is values


def test_a_clock_that_went_back_does_not_turn_the_line() -> None:
    seconds = np.array([60.0, 120.0, 30.0, 180.0])
    step = np.arange(4)
    assert positions("minutes", step, step / 2, seconds).tolist() == [1, 2, 2, 3]
    assert positions("epoch", step, step / 2, seconds).tolist() == [0, 0.5, 1, 1.5]
