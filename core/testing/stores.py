"""The contract of stores (`core.store.Store`): what every one keeps of a run, whatever its database."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.errors import StoreError
from core.events import Snapshot
from core.store import MetricKey, SnapshotKey, Store
from core.testing.values import (
    claimed,
    epoch_metrics,
    relations,
    snapshot,
    split_result,
    step_metrics,
)

LOSS, OF_NER = MetricKey("", "train", "loss"), MetricKey("ner", "train", "loss")


class StoreContract:
    """Curves, scores, predictions and relations come back as they were written.

    A subclass overrides the fixture `store`, an empty store.
    """

    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError("override the fixture store")

    def test_curves_come_back_as_written(self, store: Store) -> None:
        run_id = claimed(store)
        store.add_metrics(run_id, [step_metrics(step, loss=1 / step) for step in range(1, 6)])
        store.add_metrics(run_id, [epoch_metrics(5, 1, 0.8)])
        (curve,) = store.metrics([run_id], LOSS)
        assert curve.step.tolist() == [1, 2, 3, 4, 5]
        assert curve.value.tolist() == [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]
        assert curve.epoch.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5]
        assert curve.seconds.tolist() == [0.5, 1, 1.5, 2, 2.5]
        (score,) = store.metrics([run_id], MetricKey("pos", "dev", "score"))
        assert (score.step.tolist(), score.value.tolist()) == ([5], [0.8])
        assert store.metric_keys([run_id]) == [
            MetricKey("", "dev", "score"),
            MetricKey("", "train", "loss"),
            MetricKey("", "train", "lr"),
            MetricKey("ner", "train", "loss"),
            MetricKey("pos", "dev", "score"),
            MetricKey("pos", "train", "loss"),
        ]

    def test_only_what_is_new(self, store: Store) -> None:
        first, second = claimed(store), claimed(store)
        store.add_metrics(first, [step_metrics(step) for step in (1, 2, 3)])
        store.add_metrics(second, [step_metrics(1)])
        series = store.metrics([second, first], LOSS, after_step=1)
        assert [(curve.run_id, curve.step.tolist()) for curve in series] == [(first, [2, 3])]
        assert [curve.run_id for curve in store.metrics([second, first], LOSS)] == [second, first]
        assert store.metrics([first], MetricKey("", "train", "height")) == []

    def test_what_is_no_finite_number_survives(self, store: Store) -> None:
        run_id = claimed(store)
        values = [1.0, math.nan, math.inf, -math.inf, 2.0]
        store.add_metrics(run_id, [step_metrics(step, value) for step, value in enumerate(values)])
        (curve,) = store.metrics([run_id], LOSS)
        np.testing.assert_array_equal(curve.value, values)
        (since,) = store.metrics_since({(run_id, LOSS): -1})
        np.testing.assert_array_equal(since.value, values)
        store.add_metrics(run_id, [step_metrics(9, math.nan)])
        assert math.isnan(store.last_points([run_id], LOSS)[run_id][2])
        assert store.best_metrics([run_id], LOSS) == {run_id: 2.0}

    def test_a_batch_written_twice_counts_once(self, store: Store) -> None:
        run_id = claimed(store)
        batch = [step_metrics(step) for step in (1, 2)]
        store.add_metrics(run_id, batch)
        store.add_metrics(run_id, [*batch, step_metrics(3), step_metrics(1, loss=99.0)])
        (curve,) = store.metrics([run_id], LOSS)
        assert curve.step.tolist() == [1, 2, 3]
        assert curve.value.tolist() == [1.0, 1.0, 1.0]

    def test_each_curve_from_its_own_step(self, store: Store) -> None:
        first, second = claimed(store), claimed(store)
        for run_id in (first, second):
            store.add_metrics(run_id, [step_metrics(step, loss=run_id + step) for step in range(1, 6)])
        steps = {(second, OF_NER): 4, (first, LOSS): 2, (second, LOSS): 5, (first, OF_NER): -1}
        curves = {(curve.run_id, curve.key): curve for curve in store.metrics_since(steps)}
        assert {key: curve.step.tolist() for key, curve in curves.items()} == {
            (first, LOSS): [3, 4, 5],
            (first, OF_NER): [1, 2, 3, 4, 5],
            (second, OF_NER): [5],
        }
        assert curves[second, OF_NER].value.tolist() == [(second + 5) / 2]
        assert curves[first, LOSS].seconds.tolist() == [1.5, 2, 2.5]
        assert store.metrics_since({}) == []
        assert store.metrics_since({(first, MetricKey("pos", "train", "height")): -1, (99, LOSS): -1}) == []

    def test_last_and_best(self, store: Store) -> None:
        first, second, third = claimed(store), claimed(store), claimed(store)
        store.add_metrics(first, [epoch_metrics(10 * epoch, epoch, 0.9 - epoch / 10) for epoch in (1, 2)])
        store.add_metrics(first, [step_metrics(27)])
        store.add_metrics(second, [epoch_metrics(10, 1, 0.5)])
        ids, score = [first, second, third], MetricKey("", "dev", "score")
        assert store.last_metric_steps(ids) == {first: 27, second: 10}
        assert store.last_points(ids, score) == {first: (20, 10.0, 0.7), second: (10, 5.0, 0.5)}
        assert store.last_points(ids, MetricKey("", "dev", "height")) == {}
        assert store.best_metrics(ids, score) == pytest.approx({first: 0.8, second: 0.5})

    def test_scores_and_predictions(self, store: Store) -> None:
        first, second = claimed(store), claimed(store)
        store.add_result(first, split_result("dev", 0.5))
        store.add_result(first, split_result("dev", 0.8))
        store.add_result(first, split_result("test", 0.7))
        store.add_result(second, split_result("test", 0.6))
        scores = [(row.run_id, row.split, row.task, row.score) for row in store.scores(split="test")]
        assert scores == [
            (first, "test", "ner", 0.35),
            (first, "test", "pos", 0.7),
            (second, "test", "ner", 0.3),
            (second, "test", "pos", 0.6),
        ]
        (dev,) = [row for row in store.scores([first], split="dev") if row.task == "pos"]
        assert (dev.score, dev.epoch, dev.secondary("f1_conll"), dev.secondary("seqeval_f1"), dev.tokens) == (
            0.8,
            2,
            None,
            0.5,
            3,
        )
        assert dev.report["NN"]["support"] == 2
        assert math.isnan(dev.report["NN"]["f1"])
        assert len(store.scores()) == 6
        bare = store.scores(with_reports=False)
        assert [row.score for row in bare] == [row.score for row in store.scores()]
        assert all(row.report == {} for row in bare)
        predictions = store.predictions(first, "test")
        assert predictions["pos"] == ([["NN", "VB"], ["NN"]], [["NN", "NN"], ["NN"]])
        assert set(predictions) == {"pos", "ner"}
        assert store.predictions(first, "test", "ner") == {"ner": predictions["ner"]}
        assert store.predictions(second, "dev") == {}

    def test_means_and_counts(self, store: Store) -> None:
        first, second = claimed(store), claimed(store)
        for run_id, score in ((first, 0.8), (second, 0.4)):
            store.add_result(run_id, split_result("dev", score))
        store.add_result(first, split_result("test", 0.6))
        store.add_snapshot(first, snapshot(1))
        assert store.mean_scores("dev") == pytest.approx({first: 0.6, second: 0.3})
        assert store.mean_scores("test", "ner") == pytest.approx({first: 0.3})
        assert store.mean_scores("test", "chunk") == {}
        assert store.scored_tasks() == ["ner", "pos"]

    def test_relations(self, store: Store) -> None:
        run_id = claimed(store)
        for step in (10, 20):
            store.add_snapshot(run_id, snapshot(step, seed=step))
        assert store.snapshots(run_id) == [SnapshotKey(10, 1.0), SnapshotKey(20, 2.0)]
        for step in (10, 20):
            key, stored = store.relations(run_id, step)
            original = relations(seed=step)
            assert key.step == step
            for mode in ("task", "label", "feature"):
                np.testing.assert_allclose(stored.correlation(mode), original.correlation(mode), atol=1e-3)
            assert stored.feature_diagonal == original.feature_diagonal
        assert store.relations(run_id)[0] == SnapshotKey(20, 2.0)
        with pytest.raises(StoreError, match="step 15"):
            store.relations(run_id, 15)
        with pytest.raises(StoreError, match="no relations"):
            store.relations(claimed(store))

    def test_what_is_no_number_is_kept(self, store: Store) -> None:
        run_id = claimed(store)
        plain = relations()
        broken = type(plain)(plain.task * math.nan, plain.label, plain.feature_factor, math.nan)
        store.add_snapshot(run_id, Snapshot(1, 0.1, broken))
        _, stored = store.relations(run_id, 1)
        assert np.isnan(stored.correlation("task")).all()
        assert np.isnan(stored.correlation("feature")).all()
        np.testing.assert_allclose(stored.correlation("label"), plain.correlation("label"), atol=1e-3)
