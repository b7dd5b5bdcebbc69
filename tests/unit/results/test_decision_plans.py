"""Plans of seeds until decided as pure values: looks, verdicts, what is refused, what is stored."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from scipy import stats

from core.config import RunConfig
from core.errors import MRNLabError
from core.evaluation.comparison import EQUIVALENT, HIGHER, LOWER, UNDECIDED
from core.evaluation.looks import POCOCK, look_levels
from core.results.plan import (
    Plan,
    looks_within,
    plan_seeds,
    plan_state,
)
from core.results.table import MEAN_OF_TASKS
from tests.making import config

SEEDS = tuple(range(1, 21))
SPREAD = (0.01, -0.012, 0.004, 0.008, -0.01)
"""Differences around their mean, again and again."""


def plan(**values: Any) -> Plan:
    """MRN against MTL on two tasks."""
    defaults: dict[str, Any] = {
        "row": (config(),),
        "baseline": (config(paradigm="mtl"),),
        "names": ("MRN", "MTL"),
        "tasks": ("pos", "ner"),
        "seeds": SEEDS,
    }
    return Plan(**(defaults | values))


def scores(seeds: int, **means: float | None) -> dict[str, dict[int, float | None]]:
    """The scores of a configuration by task on the first seeds."""
    return {
        task: {seed: None if mean is None else 0.5 + mean + SPREAD[seed % 5] for seed in SEEDS[:seeds]}
        for task, mean in means.items()
    }


def base(seeds: int) -> dict[str, dict[int, float | None]]:
    return {task: dict.fromkeys(SEEDS[:seeds], 0.5) for task in ("pos", "ner")}


def test_a_look_counts_exactly_its_first_seeds() -> None:
    state = plan_state(plan(), scores(11, pos=0.0, ner=0.0), base(20))
    assert state.taken == 2
    assert state.next_seeds == SEEDS[:12]
    assert {looked.seeds for looked in state.looks.values()} == {8}
    # What has finished beyond the look changes nothing.
    later = scores(11, pos=0.0, ner=0.0)
    for seed in (9, 10, 11):
        later["ner"][seed] = 0.99
    assert plan_state(plan(), later, base(20)).looks == state.looks


def test_the_interval_is_the_repeated_one_at_the_level_of_the_look() -> None:
    state = plan_state(plan(), scores(8, pos=0.0, ner=0.02), base(8))
    at, level = state.looks["ner"], look_levels((5, 8, 12, 20), 0.05 / 2)[1]
    differences = [0.02 + SPREAD[seed % 5] for seed in SEEDS[:8]]
    mean, error = sum(differences) / 8, stats.sem(differences)
    half = stats.t.ppf(1 - level / 2, 7) * error
    assert at.level == level
    assert at.interval == pytest.approx((mean - half, mean + half))


def test_what_is_decided_stays_so_and_leaves_the_next_looks() -> None:
    first = plan_state(plan(), scores(12, pos=0.0, ner=0.04), base(12))
    assert first.decided_at == {"ner": 2}
    assert (first.open, first.open_tasks) == (("pos",), ("pos",))
    assert first.looks["ner"].seeds == 8
    # Later looks need the open task alone: STL of the other is not trained any more.
    later = scores(12, pos=0.0, ner=0.04) | scores(20, pos=0.0)
    last = plan_state(plan(), later, base(20))
    assert (last.taken, last.has_ended, last.looks["ner"]) == (4, True, first.looks["ner"])
    assert last.sentence("ner").startswith("second of four looks: higher, +")
    assert last.sentence("pos").startswith("ended undecided after 20 seeds, ")


@pytest.mark.parametrize(
    ("mean", "matters", "verdict"),
    [(0.05, 0.0005, HIGHER), (-0.05, 0.0005, LOWER), (0.0, 0.02, EQUIVALENT), (0.002, 0.0005, UNDECIDED)],
)
def test_verdicts(mean: float, matters: float, verdict: str) -> None:
    one = plan(tasks=("ner",), matters=matters)
    state = plan_state(one, scores(20, ner=mean), base(20))
    assert state.looks["ner"].verdict == verdict
    assert state.has_ended


def test_the_same_difference_with_every_seed() -> None:
    equal = plan_state(plan(tasks=("ner",)), base(5), base(5))
    assert equal.looks["ner"].verdict == EQUIVALENT
    assert (
        equal.sentence("ner") == "first of four looks: equivalent within 0.05, 0.00, the same with every seed"
    )
    apart = {"ner": dict.fromkeys(SEEDS, 0.6)}
    assert plan_state(plan(tasks=("ner",)), apart, base(20)).looks["ner"].verdict == UNDECIDED


def test_the_mean_over_tasks_is_one_difference() -> None:
    of_mean = plan(of_mean=True)
    state = plan_state(of_mean, scores(12, pos=0.02, ner=0.04), base(12))
    assert of_mean.levels == look_levels((5, 8, 12, 20), 0.05)
    assert of_mean.targets == (MEAN_OF_TASKS,)
    paired = state.looks[MEAN_OF_TASKS].paired
    assert paired is not None
    assert paired.mean == pytest.approx(0.03 + sum(SPREAD[seed % 5] for seed in SEEDS[:8]) / 8)
    # One task that is not finished holds the look up.
    partly = scores(12, pos=0.02) | scores(4, ner=0.04)
    assert plan_state(of_mean, partly, base(12)).taken == 0


def test_undefined_scores_count_in_no_difference() -> None:
    some = scores(8, pos=0.0, ner=0.02)
    some["ner"][3] = None
    state = plan_state(plan(), some, base(8))
    assert state.taken == 2
    assert state.looks["ner"].seeds == 7
    none = plan_state(plan(tasks=("ner",)), scores(5, ner=None), base(5))
    assert none.sentence("ner") == "first of four looks: undecided, no seed with both scores"


def test_before_the_first_look() -> None:
    state = plan_state(plan(), {}, {})
    assert (state.taken, state.next_seeds, state.open) == (0, SEEDS[:5], ("pos", "ner"))
    assert state.sentence("ner") == "before the first of four looks: 5 seeds"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"looks": (8, 5), "seeds": SEEDS[:5]}, "each look needs more seeds than the one before it"),
        ({"matters": -0.001}, "matters: -0.1 is no difference of scores"),
        ({"matters": math.nan}, "matters: nan is no difference"),
        ({"shape": "flat"}, "shape: 'flat' is not one of obrien-fleming, pocock"),
        ({"shape": POCOCK}, "the first look needs at least 8 seeds"),
        ({"alpha": 1.0}, "alpha: 1 is no probability"),
        ({"baseline": (config(seed=7),)}, "MRN is the baseline itself"),
    ],
)
def test_what_is_no_plan_is_refused(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(MRNLabError) as refused:
        plan(**values)
    assert sentence in str(refused.value)


def test_a_plan_is_read_as_it_was_stored() -> None:
    stl = tuple(config(paradigm="stl", tasks=(task,)) for task in ("pos", "ner"))
    made = plan(baseline=stl, names=("MRN", "STL ä"), text="abc", seeds_before=3, matters=0.005)
    read = Plan.from_json(made.to_json())
    assert read == made
    assert read.key == made.key
    assert all(isinstance(each, RunConfig) for side in read.sides() for each in side)
    with pytest.raises(MRNLabError, match="another version made it"):
        Plan.from_json('{"looks": [5]}')


def test_plans_of_the_same_difference_overlap() -> None:
    one = plan()
    assert one.has_overlap(replace(one, tasks=("ner",)))
    assert one.has_overlap(replace(one, row=one.baseline, baseline=one.row))
    assert not one.has_overlap(replace(one, text="other"))
    assert not one.has_overlap(replace(one, row=(config(**{"lambda": 0.5}),)))
    assert not replace(one, tasks=("pos",)).has_overlap(replace(one, tasks=("ner",)))
    assert one.same_design(replace(one, names=("a", "b"), seeds_before=4))
    assert not one.same_design(replace(one, matters=0.01))


def test_seeds_that_both_have_come_first() -> None:
    assert plan_seeds([3, 1, 7], [7, 3, 2], 6) == (3, 7, 1, 2, 4, 5)
    assert plan_seeds([], [], 3) == (1, 2, 3)
    assert plan_seeds([0, 1, 2], [0, 1, 2], 2) == (0, 1)


@pytest.mark.parametrize(
    ("most", "looks"),
    [(None, (5, 8, 12, 20)), (30, (5, 8, 12, 20)), (12, (5, 8, 12)), (10, (5, 8, 10)), (4, (4,))],
)
def test_the_most_seeds_are_the_last_look(most: int | None, looks: tuple[int, ...]) -> None:
    assert looks_within((5, 8, 12, 20), most) == looks
