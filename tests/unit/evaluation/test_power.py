"""The number of seeds that decides a difference, against published tables and simulation."""

from __future__ import annotations

import numpy as np
import pytest

from core.evaluation.power import (
    POWER,
    SeedsNeeded,
    power_to_be_equivalent,
    power_to_differ,
    seeds_to_decide,
)
from core.evaluation.statistics import PairedDifference, paired_difference


def difference(mean: float, sd: float, n: int) -> PairedDifference:
    return PairedDifference(mean, sd, n, None, None, None)


@pytest.mark.parametrize(
    ("effect", "seeds"),
    [(0.5, 34), (0.8, 15), (1.0, 10), (1.2, 8)],  # two-sided 0.05, power 0.8: G*Power 3.1, paired t-test
)
def test_the_seeds_are_those_of_published_tables(effect: float, seeds: int) -> None:
    needed = seeds_to_decide(difference(effect / 100, 0.01, 5), matters=0.0)
    assert needed is not None
    assert needed.seeds == seeds


def test_the_power_of_equivalence_bounds_a_simulation_from_below() -> None:
    n, mean, sd, matters = 12, 0.001, 0.004, 0.005
    random = np.random.default_rng(3)
    drawn = random.normal(mean, sd, (4000, n))
    decided = 0
    for row in drawn:
        paired = paired_difference(dict(enumerate(row)), dict.fromkeys(range(n), 0.0))
        assert paired is not None
        p = paired.p_within(matters)
        decided += p is not None and p < 0.05
    (power,) = power_to_be_equivalent([n], mean, sd, matters, 0.05)
    assert power <= decided / len(drawn) + 0.01
    assert power >= decided / len(drawn) - 0.03


def test_seeds_that_were_planned_have_their_power() -> None:
    random = np.random.default_rng(4)
    (power,) = power_to_differ([10], 1.0, 0.05)
    drawn = random.normal(1.0, 1.0, (4000, 10))
    t = drawn.mean(axis=1) / (drawn.std(axis=1, ddof=1) / np.sqrt(10))
    assert power == pytest.approx(np.mean(t > 2.2622), abs=0.025)
    assert power >= POWER


def test_a_small_difference_is_decided_as_equivalent_where_that_is_sooner() -> None:
    needed = seeds_to_decide(difference(0.0005, 0.004, 5), matters=0.005)
    assert needed is not None
    assert needed.seeds is not None
    assert seeds_to_decide(difference(0.0005, 0.004, 5), matters=0.0005) == SeedsNeeded(5, None, None, None)


def test_a_stricter_level_takes_more_seeds() -> None:
    by_level = [
        seeds_to_decide(difference(0.01, 0.01, 5), matters=0.0005, level=level) for level in (0.05, 0.005)
    ]
    alone, of_ten = by_level
    assert alone is not None
    assert of_ten is not None
    assert alone.seeds == 10
    assert of_ten.seeds is not None
    assert of_ten.seeds > 10


@pytest.mark.parametrize(
    "paired", [difference(0.1, 0.0, 3), PairedDifference(0.1, None, 1, None, None, None)]
)
def test_without_a_spread_nothing_is_planned(paired: PairedDifference) -> None:
    assert seeds_to_decide(paired, matters=0.0005) is None


@pytest.mark.parametrize(
    ("needed", "sentence"),
    [
        (SeedsNeeded(5, 14, 8, None), "About 9 more seeds (3 to more than 45)"),
        (SeedsNeeded(5, 6, 3, 9), "About 1 more seed (1 to 4)"),
        (SeedsNeeded(3, None, 12, None),
         "More than 50 seeds (12 at the least spread that these seeds allow)"),
        (SeedsNeeded(3, None, None, None), "More than 50 seeds"),
    ],
)  # fmt: skip
def test_the_sentence_says_how_many_more(needed: SeedsNeeded, sentence: str) -> None:
    assert needed.sentence == sentence


@pytest.mark.parametrize(("mean", "n", "p"), [(0.0001, 2, None), (0.0001, 3, 0.0), (0.0005, 3, None)])
def test_differences_that_are_all_the_same_are_equivalent_from_three_seeds(
    mean: float, n: int, p: float | None
) -> None:
    assert difference(mean, 0.0, n).p_within(0.0005) == p


def test_two_seeds_say_how_many_decide_and_one_does_not() -> None:
    assert seeds_to_decide(difference(0.01, 0.01, 2), matters=0.0) is not None
    assert seeds_to_decide(difference(0.01, 0.01, 1), matters=0.0) is None
