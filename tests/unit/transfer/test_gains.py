"""Gains of pairs of tasks: what is paired with what, and which runs belong together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from core.config import RunConfig
from core.transfer.gains import group_key, measured_gains
from jobs.studies.pairs import amount_text


def run(tasks: str, seed: int = 1, **fields: Any) -> RunConfig:
    paradigm = fields.pop("paradigm", "mtl" if "," in tasks else "stl")
    return RunConfig.build(corpus="demo", tasks=tasks, paradigm=paradigm, seed=seed, **fields)


def test_a_gain_is_mtl_less_stl_of_the_same_seeds() -> None:
    gains = measured_gains(
        [
            (run("pos", 1), {"pos": 0.80}),
            (run("pos", 2), {"pos": 0.70}),
            (run("pos", 3), {"pos": 0.10}),
            (run("ner", 1), {"ner": 0.50}),
            (run("ner,pos", 1), {"pos": 0.82, "ner": 0.45}),
            (run("ner,pos", 2), {"pos": 0.74, "ner": 0.40}),
        ]
    )
    gain = gains.pairs["pos", "ner"]
    assert gain.seeds == 2
    assert gain.alone == pytest.approx(0.75)
    assert gain.mean == pytest.approx(0.03)
    assert gain.relative == pytest.approx(4.0)
    # Student's t with one degree of freedom: 12.7 standard errors of 0.01.
    assert gain.interval is not None
    assert gain.interval[0] == pytest.approx(0.03 - 12.706 * 0.01, abs=1e-5)
    assert not gain.is_decided
    one_seed = gains.pairs["ner", "pos"]
    assert one_seed.seeds == 1
    assert one_seed.mean == pytest.approx(-0.05)
    assert not one_seed.is_decided
    assert gains.tasks == ("pos", "ner")
    np.testing.assert_allclose(gains.matrix(), [[np.nan, 3.0], [-5.0, np.nan]])
    np.testing.assert_allclose(gains.matrix(relative=True), [[np.nan, 4.0], [-10.0, np.nan]])


def test_a_gain_over_a_negative_score_has_no_percentage() -> None:
    """Percent of a negative correlation would turn a gain into a loss."""
    for alone in (-0.1, 0.0):
        gains = measured_gains([(run("pos"), {"pos": alone}), (run("pos,ner"), {"pos": 0.3, "ner": 0.5})])
        (gain,) = gains.pairs.values()
        assert gain.mean > 0
        assert math.isnan(gain.relative)
        assert amount_text(gain, relative=True) == amount_text(gain, relative=False)


def test_a_gain_needs_stl_of_the_main_task_alone() -> None:
    gains = measured_gains(
        [(run("pos"), {"pos": 0.8}), (run("ner,pos"), {"pos": 0.8, "ner": 0.5})], order=("ner", "chunk")
    )
    assert list(gains.pairs) == [("pos", "ner")]
    assert gains.tasks == ("ner", "pos")


def test_a_decided_gain_has_an_interval_without_zero() -> None:
    scored = [(run("pos", seed), {"pos": 0.5}) for seed in (1, 2, 3)]
    scored += [(run("pos,ner", seed), {"pos": 0.6 + seed / 1000}) for seed in (1, 2, 3)]
    assert measured_gains(scored).pairs["pos", "ner"].is_decided
    same = [(config, scores if len(config.tasks) == 1 else {"pos": 0.6}) for config, scores in scored]
    assert not measured_gains(same).pairs["pos", "ner"].is_decided


def test_stl_and_pairs_that_are_alike_in_all_else_make_a_group() -> None:
    key = group_key(run("pos"))
    assert key is not None
    assert key == group_key(run("ner", 7)) == group_key(run("pos,ner", 2))
    assert key != group_key(run("pos", epochs=2))
    assert key != group_key(run("pos", corpus_order="in_turn"))
    assert group_key(run("pos,chunk,ner", affinity_every=5)) == key
    assert group_key(run("pos,ner", paradigm="mrn")) is None
    assert group_key(run("pos,ner", task_weights="1,2")) is None
