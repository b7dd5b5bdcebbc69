"""The expected best of several candidates, held to all draws one by one."""

from __future__ import annotations

import itertools
import math

import pytest

from core.results.choice import expected_best
from core.results.figures import expected_best_chart


@pytest.mark.parametrize("scores", [[0.7], [0.8, 0.6], [0.81, 0.79, 0.86, 0.86, 0.2], [0.5] * 4])
def test_the_expected_best_is_the_mean_over_all_draws(scores: list[float]) -> None:
    expected = [
        math.fsum(map(max, itertools.product(scores, repeat=tried))) / len(scores) ** tried
        for tried in range(1, len(scores) + 1)
    ]
    assert expected_best(scores) == pytest.approx(expected)
    (drawn,) = expected_best_chart(scores).data
    assert list(drawn["x"]) == list(range(1, len(scores) + 1))
    assert list(drawn["y"]) == pytest.approx([100 * value for value in expected])


def test_no_candidates_have_no_best() -> None:
    assert expected_best([]) == []
