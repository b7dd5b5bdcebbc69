"""Levels of repeated looks against published boundaries, and plans that are none."""

from __future__ import annotations

import pytest
from scipy.special import ndtri

from core.evaluation.looks import OBRIEN_FLEMING, POCOCK, SHAPES, LooksError, look_levels


@pytest.mark.parametrize(
    ("shape", "published"),
    [
        # Five equally spaced looks, two-sided 0.05 (Jennison and Turnbull, Group Sequential Methods, 2000).
        (OBRIEN_FLEMING, (4.8769, 3.3569, 2.6803, 2.2898, 2.0310)),
        (POCOCK, (2.4380, 2.4268, 2.4101, 2.3966, 2.3859)),
    ],
)
def test_levels_are_the_published_boundaries(shape: str, published: tuple[float, ...]) -> None:
    levels = look_levels((4, 8, 12, 16, 20), 0.05, shape)
    assert [-ndtri(level / 2) for level in levels] == pytest.approx(published, abs=2e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_one_look_has_the_whole_level(shape: str) -> None:
    assert look_levels((7,), 0.05, shape) == pytest.approx((0.05,), abs=1e-12)


@pytest.mark.parametrize("looks", [(), (1, 5), (5, 5), (8, 5), (0,)])
def test_looks_that_are_no_plan_are_refused(looks: tuple[int, ...]) -> None:
    with pytest.raises(LooksError) as refused:
        look_levels(looks)
    assert refused.value.looks == looks
