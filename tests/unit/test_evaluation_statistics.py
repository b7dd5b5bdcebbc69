"""Statistics over seeds against hand calculation and scipy.stats."""

from __future__ import annotations

import pytest

from core.evaluation.statistics import MeanSD, PairedDifference, paired_difference, summary

stats = pytest.importorskip("scipy.stats")


class TestSummary:
    def test_as_scipy(self) -> None:
        values = [0.812, 0.834, 0.799, 0.821, 0.818]
        found = summary(values)
        low, high = stats.t.interval(0.95, 4, loc=found.mean, scale=stats.sem(values))
        assert (found.low, found.high) == pytest.approx((low, high))

    def test_one_value_has_no_spread(self) -> None:
        assert summary([0.5]) == MeanSD(0.5, None, 1, None, None)

    def test_equal_values_have_none_to_speak_of(self) -> None:
        found = summary([0.1, 0.1, 0.1])
        assert (found.sd, found.n) == (0.0, 3)
        assert (found.mean, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))

    @pytest.mark.parametrize("values", [[], [0.5, float("nan")], [float("inf")]])
    def test_refuses_what_has_no_mean(self, values: list[float]) -> None:
        with pytest.raises(ValueError, match=r"mean of no values|not a finite score"):
            summary(values)


class TestPairedDifference:
    def test_as_scipy(self) -> None:
        a, b = [0.81, 0.84, 0.79, 0.82, 0.85], [0.80, 0.82, 0.80, 0.79, 0.83]
        found = paired_difference(dict(enumerate(a)), dict(enumerate(b)))
        expected = stats.ttest_rel(a, b)
        interval = expected.confidence_interval(0.95)
        assert found is not None
        assert found.p == pytest.approx(expected.pvalue)
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high))

    def test_only_common_seeds_count(self) -> None:
        both = paired_difference({1: 0.5, 2: 0.7}, {1: 0.4, 2: 0.5})
        more = paired_difference({1: 0.5, 2: 0.7, 3: 0.9}, {1: 0.4, 2: 0.5, 4: 0.0})
        assert both == more
        assert both is not None
        assert both.n == 2
        assert paired_difference({1: 0.5}, {2: 0.5}) is None

    def test_one_common_seed_proves_nothing(self) -> None:
        found = paired_difference({1: 0.75}, {1: 0.5})
        assert found == PairedDifference(0.25, None, 1, None, None, None)

    @pytest.mark.parametrize("offset", [0.0, 0.1])
    def test_equal_differences_have_no_p(self, offset: float) -> None:
        b = {1: 0.4, 2: 0.5, 3: 0.7}
        found = paired_difference({seed: value + offset for seed, value in b.items()}, b)
        assert found is not None
        assert (found.sd, found.p) == (0.0, None)
        assert found.mean == pytest.approx(offset)
