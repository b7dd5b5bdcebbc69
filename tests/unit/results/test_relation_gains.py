"""Each label's strongest relation beside its gain over MTL."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from core.events import Snapshot, SplitResult
from core.mrn.relations import Relations
from core.results.relation_gains import mtl_of, rank_over_seeds, relation_gains, strongest_relations
from core.store import Store
from tests.making import config, finished, run_facts, task_score

LABEL = np.array([[1.0, 0.2, 0.1, 0.9], [0.2, 1.0, -0.5, 0.3], [0.1, -0.5, 1.0, 0.4], [0.9, 0.3, 0.4, 1.0]])
"""The correlations of pos:NN, pos:VB, ner:O and ner:B-PER."""
LEARNED = Relations(np.eye(2), LABEL, np.zeros((4, 0)), 1.0)
F1 = {"mtl": (0.5, 0.5, 0.5), "mrn": (0.9, 0.6, 0.7)}
"""Of NN, VB and PER."""


def stored(store: Store, paradigm: str, seed: int) -> int:
    """A finished run with scores; of MRN with relations."""
    rows = {
        label: {"precision": 1.0, "recall": 1.0, "f1": f1, "support": 2}
        for label, f1 in zip(("NN", "VB", "PER"), F1[paradigm], strict=True)
    }
    pos = task_score("pos", 0.5, report={"NN": rows["NN"], "VB": rows["VB"]})
    ner = task_score("ner", 0.5, score_name="f1_conll", report={"PER": rows["PER"]})
    return finished(
        store,
        config(seed=seed, paradigm=paradigm),
        run_facts(),
        *([Snapshot(3, 1.0, LEARNED)] if paradigm == "mrn" else ()),
        SplitResult("test", 1, (pos, ner), {}, {}),
    )


def test_the_strongest_relation_is_with_another_task() -> None:
    gains = strongest_relations(run_facts(), ("pos", "ner"), LEARNED)
    shown = {key: (partner, round(value, 6)) for key, (partner, value) in gains.items()}
    assert shown["pos", "NN"] == ("ner:B-PER", 0.9)
    assert shown["pos", "VB"] == ("ner:O", -0.5)
    assert shown["ner", "PER"] == shown["ner", "B-PER"] == ("pos:NN", 0.9)
    shared = dataclasses.replace(run_facts(), label_owners=(("pos", "ner"),) * 4)
    assert strongest_relations(shared, ("pos", "ner"), LEARNED) == {}


def test_gains_are_paired_by_seed_with_the_same_settings(store: Store) -> None:
    runs = store.runs_with_facts([stored(store, "mrn", seed) for seed in (1, 2, 3)])
    assert relation_gains(store, runs) is None
    for seed in (1, 2, 7):
        stored(store, "mtl", seed)
    assert sorted(mtl_of(store, runs)) == [1, 2]
    gains = relation_gains(store, runs)
    assert gains is not None
    assert gains.rank is not None
    assert {of.label: round(of.gain, 6) for of in gains.labels} == {"NN": 0.4, "PER": 0.2, "VB": 0.1}
    assert gains.labels[-1].label == "VB"  # the least related
    assert gains.rank.seeds == 2
    assert gains.sentence.startswith("Rank correlation of relation and gain: 0.")


def test_rank_correlations_have_an_interval_over_seeds() -> None:
    rising, falling = ([1.0, 2, 3, 4], [1.0, 3, 2, 4]), ([1.0, 2, 3, 4], [4.0, 2, 3, 1])
    gains = rank_over_seeds([rising, rising, falling])
    assert gains is not None
    assert gains.interval is not None
    assert gains.mean == pytest.approx((0.8 + 0.8 - 0.8) / 3)
    assert gains.interval[0] < gains.mean < gains.interval[1]
    assert rank_over_seeds([([1.0, 1, 1], [1.0, 2, 3])]) is None
    alone = rank_over_seeds([rising])
    assert alone is not None
    assert alone.interval is None
