"""What made-up evidence teaches: a planted cause is found and used, random evidence is none."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from core.transfer.features import FEATURES, TaskFeatures
from core.transfer.prediction import AMI, CORRELATION, HELPS, HURTS, NO_EVIDENCE, Lessons, lessons

TASKS = tuple(f"t{number}" for number in range(12))


def evidence(gain: Any, numbers: Any = None, seed: int = 0) -> dict[str, Any]:
    """A study of twelve tasks with random features; `gain` and `numbers` are made of two tasks' features."""
    draw = np.random.default_rng(seed)
    features = {task: {name: float(draw.random()) for name in FEATURES} for task in TASKS}
    rows = []
    for main, aux in permutations(TASKS, 2):
        known = {} if numbers is None else numbers(features[main], features[aux])
        rows.append({"main": main, "aux": aux, "gain": gain(features[main], features[aux], draw), **known})
    return {"features": features, "pairs": rows}


def expected_of(learned: Lessons, main: dict[str, float], aux: dict[str, float], **numbers: float) -> Any:
    values = {"a": dict.fromkeys(FEATURES, 0.5) | main, "b": dict.fromkeys(FEATURES, 0.5) | aux}
    features = {task: TaskFeatures(task, known) for task, known in values.items()}
    names = {"ami": AMI, "correlation": CORRELATION}
    known = {names[name]: {("a", "b"): value} for name, value in numbers.items()}
    return learned.predict([("a", "b")], features, known)["a", "b"]


def test_a_planted_feature_decides() -> None:
    learned = lessons(evidence(lambda main, aux, draw: main["jsd"] - aux["jsd"] + draw.normal(0, 0.05)))
    assert (learned.tasks, learned.pairs) == (12, 132)
    assert {model.predictor.name for model in learned.speaking} == {"data features", "all features"}
    judgement = learned.speaking[0].judgement
    assert judgement.scheme == "tasks left out"
    assert judgement.auc.value - 2 * judgement.auc.sd > 0.5
    helped = expected_of(learned, {"jsd": 0.9}, {"jsd": 0.1})
    hurt = expected_of(learned, {"jsd": 0.1}, {"jsd": 0.9})
    assert (helped.verdict, hurt.verdict) == (HELPS, HURTS)
    assert helped.probability > 0.6
    assert hurt.probability < 0.4
    assert helped.predictor == learned.speaking[0].predictor.name
    # Equal tasks gain as often as not.
    even = expected_of(learned, {"jsd": 0.5}, {"jsd": 0.5})
    assert even.verdict == NO_EVIDENCE
    assert even.probability == pytest.approx(0.5, abs=0.1)
    # What no pair of the study had is named.
    far = expected_of(learned, {"jsd": 0.9, "size": 7.0}, {"jsd": 0.1})
    assert far.outside == ("main size", "main/aux size")
    assert not helped.outside


@pytest.mark.parametrize("seed", range(3))
def test_random_evidence_is_none(seed: int) -> None:
    learned = lessons(evidence(lambda main, aux, draw: draw.normal(), seed=seed))
    assert learned.speaking == ()
    prediction = expected_of(learned, {"jsd": 0.9}, {"jsd": 0.1}, ami=0.9, correlation=0.9)
    assert prediction.verdict == NO_EVIDENCE
    assert math.isnan(prediction.probability)
    assert prediction.predictor == ""


def test_a_single_number_speaks_where_a_pair_has_it() -> None:
    def number(main: dict[str, float], aux: dict[str, float]) -> dict[str, float | None]:
        # Of pairs on different words nothing is known.
        return {CORRELATION: main["jsd"] * aux["jsd"] if main["size"] > 0.3 and aux["size"] > 0.3 else None}

    def gain(main: dict[str, float], aux: dict[str, float], draw: np.random.Generator) -> float:
        return main["jsd"] * aux["jsd"] - 0.2 + float(draw.normal(0, 0.02))

    learned = lessons(evidence(gain, number))
    (model,) = [model for model in learned.speaking if model.predictor.name == CORRELATION]
    assert 0 < model.judgement.pairs < 132
    assert expected_of(learned, {}, {}, correlation=0.8).verdict == HELPS
    assert expected_of(learned, {}, {}, correlation=5.0).outside == (CORRELATION,)
    assert expected_of(learned, {}, {}).predictor != CORRELATION
