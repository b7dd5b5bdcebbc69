"""Seeds until decided, simulated: how often null studies are decided wrongly, and how soon others are.

Each simulated study draws differences over seeds, and looks at them as a plan does. `python -m
tests.properties.test_looks` prints the figures of ADR 44.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import stdtrit

from core.evaluation.comparison import EQUIVALENT, HIGHER, LOWER, UNDECIDED
from core.evaluation.looks import OBRIEN_FLEMING, POCOCK, look_levels
from core.evaluation.repeated import is_skewed, looked

pytestmark = pytest.mark.slow

LOOKS = (5, 8, 12, 20)
LATE = (8, 12, 20)
STUDIES = 60_000
ERROR = 0.0009
"""A standard error of a share of 5% of so many studies."""
VERDICTS = (UNDECIDED, EQUIVALENT, HIGHER, LOWER)

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]

DIFFERENCES: Mapping[str, Draw] = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "t with 3 degrees": lambda random, shape: random.standard_t(3, shape),
    "exponential": lambda random, shape: random.exponential(1.0, shape) - 1,
}
"""Differences with mean 0, by name."""


def decide(
    differences: Floats, levels: Sequence[float], looks: Sequence[int] = LOOKS, matters: float = 0.0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The verdict of each study (S, N) as a place in VERDICTS, and the seeds that it took."""
    verdicts = np.zeros(len(differences), dtype=np.int64)
    seeds = np.full(len(differences), looks[-1])
    for count, level in zip(looks, levels, strict=True):
        first = differences[:, :count]
        half = -stdtrit(count - 1, level / 2) * first.std(axis=1, ddof=1) / np.sqrt(count)
        low, high = first.mean(axis=1) - half, first.mean(axis=1) + half
        now = np.select([(-matters < low) & (high < matters), low > 0, high < 0], [1, 2, 3], 0)
        is_new = (verdicts == 0) & (now > 0)
        verdicts[is_new], seeds[is_new] = now[is_new], count
    return verdicts, seeds


def share(
    draw: Draw,
    levels: Sequence[float],
    looks: Sequence[int] = LOOKS,
    *,
    effect: float = 0.0,
    matters: float = 0.0,
    verdicts: Sequence[str] = (EQUIVALENT, HIGHER, LOWER),
) -> tuple[float, float]:
    """The share of studies with one of these verdicts, and their mean number of seeds."""
    differences = draw(np.random.default_rng(1), (STUDIES, looks[-1])) + effect
    found, seeds = decide(differences, levels, looks, matters)
    return float(np.isin(found, [VERDICTS.index(verdict) for verdict in verdicts]).mean()), float(
        seeds.mean()
    )


def test_the_simulation_decides_as_the_plan_does() -> None:
    random = np.random.default_rng(2)
    levels, matters = look_levels(LOOKS), 0.5
    differences = random.standard_normal((300, LOOKS[-1])) + random.normal(0, 0.7, (300, 1))
    found, seeds = decide(differences, levels, matters=matters)
    for study, verdict, count in zip(differences, found, seeds, strict=True):
        for look, level in zip(LOOKS, levels, strict=True):
            by_seed = dict(enumerate(study[:look].tolist()))
            at = looked(by_seed, dict.fromkeys(by_seed, 0.0), level, matters)
            if at.verdict != UNDECIDED or look == LOOKS[-1]:
                assert (at.verdict, look) == (VERDICTS[verdict], count)
                break
    assert set(found) == {0, 1, 2, 3}


@pytest.mark.parametrize("name", ["normal", "t with 3 degrees"])
@pytest.mark.parametrize(
    ("shape", "looks"), [(OBRIEN_FLEMING, LOOKS), (OBRIEN_FLEMING, LATE), (POCOCK, LATE)]
)
def test_studies_without_a_difference_are_decided_in_at_most_one_of_twenty(
    name: str, shape: str, looks: tuple[int, ...]
) -> None:
    wrong, _ = share(DIFFERENCES[name], look_levels(looks, 0.05, shape), looks)
    assert wrong <= 0.055
    naive, _ = share(DIFFERENCES[name], [0.05] * len(looks), looks)
    assert naive > 1.7 * wrong
    if looks == LOOKS:
        assert naive > 0.11


@pytest.mark.parametrize("related", [0.0, 0.9])
def test_a_plan_of_three_tasks_errs_in_any_in_at_most_one_of_twenty(related: float) -> None:
    random = np.random.default_rng(3)
    shared = random.standard_normal((STUDIES, LOOKS[-1]))
    wrong = np.zeros(STUDIES, dtype=bool)
    for _ in range(3):
        mixed = np.sqrt(related) * shared + np.sqrt(1 - related) * random.standard_normal(shared.shape)
        wrong |= decide(mixed, look_levels(LOOKS, 0.05 / 3))[0] > 0
    assert wrong.mean() <= 0.055


@pytest.mark.parametrize("name", ["normal", "t with 3 degrees"])
def test_what_differs_by_as_much_as_matters_is_seldom_called_equivalent(name: str) -> None:
    """Either end of the interval errs half as often as both."""
    draw = DIFFERENCES[name]
    for matters in (0.3, 0.8):
        wrong, _ = share(
            draw, look_levels(LOOKS), effect=matters, matters=matters, verdicts=(EQUIVALENT, LOWER)
        )
        assert wrong <= 0.0275 + ERROR


def test_an_effect_of_one_standard_deviation_is_decided_with_fewer_seeds_than_all() -> None:
    decided, seeds = share(DIFFERENCES["normal"], look_levels(LOOKS), effect=1.0)
    assert decided > 0.98
    assert seeds < 15.5
    late, seeds_late = share(DIFFERENCES["normal"], look_levels(LATE, 0.05, POCOCK), LATE, effect=1.0)
    assert late > 0.97
    assert seeds_late < seeds
    wrong_side, _ = share(DIFFERENCES["normal"], look_levels(LOOKS), effect=1.0, verdicts=(LOWER,))
    assert wrong_side < 0.0005


def test_skewed_differences_err_more_often_and_more_so_with_the_other_shape() -> None:
    draw = DIFFERENCES["exponential"]
    strict, _ = share(draw, look_levels(LOOKS))
    other, _ = share(draw, look_levels(LOOKS, 0.05, POCOCK))
    assert 0.09 < strict < 0.115
    assert other > 1.3 * strict


def test_skewed_differences_are_called_so_as_often_as_is_said() -> None:
    random = np.random.default_rng(4)
    said = {5: (0.05, 0.15), 8: (0.05, 0.28), 12: (0.05, 0.44), 20: (0.05, 0.70)}
    for count, shares in said.items():
        for name, expected in zip(("normal", "exponential"), shares, strict=True):
            samples = DIFFERENCES[name](random, (4_000, count)).tolist()
            assert sum(map(is_skewed, samples)) / 4_000 == pytest.approx(expected, abs=0.02), (name, count)


def main() -> None:
    """Prints the table of ADR 44."""
    plans: dict[str, tuple[Sequence[float], tuple[int, ...]]] = {
        f"{shape}, {', '.join(map(str, looks))}": (look_levels(looks, 0.05, shape), looks)
        for shape in (OBRIEN_FLEMING, POCOCK)
        for looks in (LOOKS, LATE)
    }
    plans |= {"naive": ([0.05] * 4, LOOKS), "20 seeds at once": ([0.05], (20,))}
    names: list[Any] = [*DIFFERENCES, "decided at 1 SD", "seeds", "decided at 0.7 SD", "seeds"]
    print("| plan |", " | ".join(names), "|")
    for title, (levels, looks) in plans.items():
        row = [f"{100 * share(draw, levels, looks)[0]:.1f}%" for draw in DIFFERENCES.values()]
        for effect in (1.0, 0.7):
            decided, seeds = share(DIFFERENCES["normal"], levels, looks, effect=effect)
            row += [f"{100 * decided:.1f}%", f"{seeds:.1f}"]
        print(f"| {title} |", " | ".join(row), "|")


if __name__ == "__main__":
    main()
