"""Reading on: many curves from their last steps, at once."""

from __future__ import annotations

import math

from core.records import TOTAL, StepMetrics
from core.store import MetricKey, Store
from tests.making import claimed, step_metrics

LOSS, OF_NER = MetricKey(TOTAL, "train", "loss"), MetricKey("ner", "train", "loss")


def test_each_curve_from_its_own_step(store: Store) -> None:
    first, second = claimed(store), claimed(store)
    for run_id in (first, second):
        store.add_metrics(run_id, [step_metrics(step, loss=run_id + step) for step in range(1, 6)])
    steps = {(second, OF_NER): 4, (first, LOSS): 2, (second, LOSS): 5, (first, OF_NER): -1}
    found = {(one.run_id, one.key): one for one in store.metrics_since(steps)}
    assert {curve: one.step.tolist() for curve, one in found.items()} == {
        (first, LOSS): [3, 4, 5],
        (first, OF_NER): [1, 2, 3, 4, 5],
        (second, OF_NER): [5],
    }
    assert found[second, OF_NER].value.tolist() == [(second + 5) / 2]
    assert found[first, LOSS].seconds.tolist() == [1.5, 2, 2.5]


def test_what_nobody_has_logged_is_left_out(store: Store) -> None:
    run_id = claimed(store)
    assert store.metrics_since({}) == []
    assert store.metrics_since({(run_id, MetricKey("pos", "train", "height")): -1, (99, LOSS): -1}) == []


def test_numbers_that_are_none_come_back_as_themselves(store: Store) -> None:
    run_id = claimed(store)
    written = [math.nan, math.inf, -math.inf, 0.1]
    rows = [StepMetrics(step, 0.1, 2**40 + 0.25, {(TOTAL, "loss"): v}) for step, v in enumerate(written)]
    store.add_metrics(run_id, rows)
    (one,) = store.metrics_since({(run_id, LOSS): -1})
    assert [str(value) for value in one.value] == ["nan", "inf", "-inf", "0.1"]
    assert set(one.seconds) == {2**40 + 0.25}
    assert one.step.dtype.kind == "i"
