"""What made-up evidence teaches: a planted cause is found and used, random evidence is none."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from core.transfer.prediction import EVEN, HELPS, HURTS, NO_EVIDENCE, lessons, packaged, verdict
from core.transfer.predictors import COSINE

TASKS = tuple(f"t{number}" for number in range(12))


def evidence(gain: Callable[[float, Any], float], seed: int = 0) -> dict[str, Any]:
    """A study of twelve tasks with random cosines; `gain` is made of a pair's cosine and random numbers."""
    draw = np.random.default_rng(seed)
    cosine = {frozenset(pair): float(draw.uniform(-1, 1)) for pair in permutations(TASKS, 2)}
    rows = [
        {"main": main, "aux": aux, "gain": gain(cosine[frozenset((main, aux))], draw)}
        | {COSINE: cosine[frozenset((main, aux))]}
        for main, aux in permutations(TASKS, 2)
    ]
    return {"features": {}, "pairs": rows}


def planted(cosine: float, draw: Any) -> float:
    return cosine + float(draw.normal(0, 0.05))


def test_a_planted_cause_decides() -> None:
    learned = lessons(evidence(planted))
    judgement = learned.judgement
    assert (learned.tasks, judgement.pairs, judgement.scheme) == (12, 132, "tasks left out")
    assert judgement.auc.value - 2 * judgement.auc.sd > 0.5
    probability = learned.probabilities(
        {("a", "b"): 0.9, ("b", "a"): -0.9, ("a", "c"): 0.0, ("a", "d"): math.nan}
    )
    assert list(map(verdict, probability.values())) == [HELPS, HURTS, EVEN, NO_EVIDENCE]
    assert probability["a", "b"] > 0.6
    assert probability["b", "a"] < 0.4
    assert math.isnan(probability["a", "d"])
    assert [verdict(shown) for shown in (0.396, 0.394, 0.604, 0.606)] == [EVEN, HURTS, EVEN, HELPS]
    low, high = learned.range
    assert -1 < low < -0.9
    assert 0.9 < high < 1


@pytest.mark.parametrize("seed", range(3))
def test_random_evidence_is_none(seed: int) -> None:
    learned = lessons(evidence(lambda cosine, draw: float(draw.normal()), seed=seed))
    assert not learned.speaks
    (probability,) = learned.probabilities({("a", "b"): 0.9}).values()
    assert math.isnan(probability)


def test_the_packaged_study_speaks() -> None:
    learned = packaged("scarce-minilm")
    assert (learned.tasks, learned.judgement.pairs) == (12, 132)
    assert learned.speaks
    assert learned.judgement.auc.value == pytest.approx(0.78, abs=0.01)
