"""What made-up evidence teaches: a planted cause is found and used, random evidence is none."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from core.transfer.prediction import HELPS, HURTS, NO_EVIDENCE, lessons, packaged
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
    assert (learned.tasks, learned.pairs) == (12, 132)
    assert learned.speaks
    judgement = learned.model.judgement
    assert judgement.scheme == "tasks left out"
    assert judgement.auc.value - 2 * judgement.auc.sd > 0.5
    expected = learned.predict({("a", "b"): 0.9, ("b", "a"): -0.9, ("a", "c"): 0.0, ("a", "d"): math.nan})
    assert [prediction.verdict for prediction in expected.values()] == [
        HELPS,
        HURTS,
        NO_EVIDENCE,
        NO_EVIDENCE,
    ]
    assert expected["a", "b"].probability > 0.6
    assert expected["b", "a"].probability < 0.4
    assert math.isnan(expected["a", "d"].probability)
    # A cosine that no pair of the study had is marked.
    assert not expected["a", "b"].is_outside
    assert learned.predict({("a", "b"): 1.5})["a", "b"].is_outside


@pytest.mark.parametrize("seed", range(3))
def test_random_evidence_is_none(seed: int) -> None:
    learned = lessons(evidence(lambda cosine, draw: float(draw.normal()), seed=seed))
    assert not learned.speaks
    (prediction,) = learned.predict({("a", "b"): 0.9}).values()
    assert prediction.verdict == NO_EVIDENCE
    assert math.isnan(prediction.probability)


def test_the_packaged_study_speaks() -> None:
    learned = lessons(packaged("scarce-minilm"))
    assert (learned.tasks, learned.pairs) == (12, 132)
    assert learned.speaks
    assert learned.model.judgement.auc.value == pytest.approx(0.78, abs=0.01)
