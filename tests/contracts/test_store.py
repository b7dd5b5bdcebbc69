"""What every store must do, whatever database it stands on."""

from __future__ import annotations

import math
import threading
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from core.errors import IllegalMove, MRNLabError, NotOwner, RunNotFound, StoreError
from core.store import ENDED, MOVES, RESTARTABLE, ErrorInfo, MetricKey, RunState, SnapshotKey, Store
from core.training.events import Snapshot, StepMetrics
from tests.making import (
    OTHER,
    OWNER,
    Clock,
    claimed,
    config,
    epoch_metrics,
    relations,
    run_facts,
    snapshot,
    split_result,
    step_metrics,
)

LOSS = MetricKey("", "train", "loss")


class TestRuns:
    def test_keeps_what_was_queued(self, store: Store, clock: Clock) -> None:
        configs = [config(seed=seed) for seed in (3, 1, 2)]
        ids = store.add_runs(configs, sweep="three seeds")
        runs = [store.run(run_id) for run_id in ids]
        assert [run.config for run in runs] == configs
        assert {run.sweep for run in runs} == {"three seeds"}
        assert {run.configuration_id for run in runs} == {configs[0].configuration_id}
        assert {run.state for run in runs} == {RunState.QUEUED}
        assert runs[0].created_at == datetime.fromtimestamp(clock.now, UTC)
        assert runs[0].attempt == 1
        assert runs[0].facts == {}

    def test_lists_newest_first(self, store: Store) -> None:
        ids = store.add_runs([config(seed=seed) for seed in range(5)])
        assert [run.id for run in store.runs()] == ids[::-1]
        assert [run.id for run in store.runs(limit=2)] == ids[:-3:-1]
        assert [run.id for run in store.runs(ids=[ids[1], ids[3], 999])] == [ids[3], ids[1]]
        store.request_stop(ids[2])
        assert [run.id for run in store.runs(states={RunState.CANCELLED})] == [ids[2]]
        assert store.runs(ids=[ids[0]], states={RunState.CANCELLED}) == []
        assert store.runs(ids=[]) == []
        assert store.add_runs([]) == []

    def test_lists_show_every_change(self, store: Store) -> None:
        run_id = claimed(store)
        assert store.runs()[0].step == 0
        store.set_progress(run_id, step=7, epoch=0.7, total_steps=20)
        assert store.runs()[0].step == 7

    def test_a_rolled_back_change_is_never_shown(self, store: Store) -> None:
        run_id = claimed(store)

        def change_and_fail() -> None:
            with store.transaction():
                store.set_progress(run_id, step=7, epoch=0.7, total_steps=20)
                assert store.runs()[0].step == 7
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            change_and_fail()
        assert store.runs()[0].step == 0
        store.set_progress(run_id, step=8, epoch=0.8, total_steps=20)
        assert store.runs()[0].step == 8

    def test_facts_come_with_runs_that_are_named(self, store: Store) -> None:
        run_id = claimed(store)
        store.set_facts(run_id, run_facts(total_steps=33))
        assert store.run(run_id).facts["label_names"] == ["pos:NN", "pos:VB", "ner:O", "ner:B-PER"]
        assert store.run(run_id).facts["tasks"][1]["name"] == "ner"
        assert store.run(run_id).total_steps == 33
        assert store.runs()[0].facts == {}
        assert store.runs(with_facts=True)[0].facts == store.run(run_id).facts

    def test_unknown_runs_are_named(self, store: Store) -> None:
        with pytest.raises(RunNotFound, match="no run 12"):
            store.run(12)
        for call in (
            lambda: store.state(12),
            lambda: store.request_stop(12),
            lambda: store.requeue(12),
            lambda: store.heartbeat(12, OWNER, 15),
            lambda: store.finish(12, RunState.LOST),
            lambda: store.add_metrics(12, [step_metrics(1)]),
            lambda: store.add_snapshot(12, snapshot(1)),
            lambda: store.add_result(12, split_result("dev")),
            lambda: store.add_event(12, "note", "Hello."),
        ):
            with pytest.raises(RunNotFound):
                call()

    def test_counts_every_state(self, store: Store) -> None:
        claimed(store, RunState.FAILED)
        store.add_runs([config(), config(seed=2)])
        counts = store.counts()
        assert counts[RunState.QUEUED] == 2
        assert counts[RunState.FAILED] == 1
        assert set(counts) == set(RunState)
        assert sum(counts.values()) == 3

    def test_deletes_with_all_that_was_recorded(self, store: Store) -> None:
        kept, gone = claimed(store, RunState.FAILED), claimed(store, RunState.FAILED)
        for run_id in (kept, gone):
            store.add_metrics(run_id, [step_metrics(1)])
            store.add_snapshot(run_id, snapshot(1))
            store.add_result(run_id, split_result("dev"))
            store.set_facts(run_id, run_facts())
        store.delete_runs([gone, 999])
        assert [run.id for run in store.runs()] == [kept]
        with store.transaction(write=False) as connection:
            for table in ("metrics", "scores", "predictions", "snapshots", "facts", "events"):
                owners = connection.execute(text(f"SELECT DISTINCT run_id FROM {table}")).scalars().all()
                assert owners == [kept], table

    def test_never_deletes_what_is_being_trained(self, store: Store) -> None:
        queued, running = store.add_runs([config()])[0], None
        running = claimed(store)
        queued = store.add_runs([config(seed=2)])[0]
        with pytest.raises(IllegalMove, match=f"Run {running} is being trained"):
            store.delete_runs([queued, running])
        assert store.state(queued) is RunState.QUEUED

    def test_never_reuses_an_id(self, store: Store) -> None:
        ids = store.add_runs([config(), config(seed=2)])
        store.delete_runs(ids)
        assert store.add_runs([config()])[0] > max(ids)

    def test_one_unreadable_description_hides_no_other_run(self, store: Store) -> None:
        good, old, broken = store.add_runs([config(), config(seed=2), config(seed=3)])
        with store.transaction() as connection:
            set_config = text("UPDATE runs SET config = :config WHERE id = :id")
            stored = config(seed=2).to_json().replace("{", '{"colour":"red",', 1)
            connection.execute(set_config, {"config": stored, "id": old})
            connection.execute(set_config, {"config": "no JSON", "id": broken})
        runs = {run.id: run for run in store.runs()}
        assert runs[good].config_problem is None
        assert runs[good].config == config()
        assert runs[old].config_problem is not None
        assert "colour" in runs[old].config_problem
        assert runs[old].config.tasks == ("pos", "ner")
        assert runs[broken].config_problem is not None
        assert runs[broken].config.corpus == "unreadable"


class TestLife:
    @pytest.mark.parametrize("source", list(RunState))
    @pytest.mark.parametrize("target", list(RunState))
    def test_only_the_moves_of_the_table(self, store: Store, source: RunState, target: RunState) -> None:
        run_id = claimed(store, source)
        moves = {
            RunState.QUEUED: lambda: store.requeue(run_id),
            RunState.RUNNING: lambda: store.claim(OWNER, 15),
            RunState.CANCELLING: lambda: store.request_stop(run_id),
        }
        move = moves.get(target, lambda: store.finish(run_id, target))
        if target is RunState.RUNNING:
            assert (move() is not None) == (target in MOVES[source])
            expected = RunState.RUNNING if target in MOVES[source] else source
        elif target is RunState.CANCELLING and source in (RunState.QUEUED, RunState.CANCELLING):
            # A stop asked for twice is one stop, and one of a queued run ends it.
            move()
            expected = RunState.CANCELLED if source is RunState.QUEUED else source
        elif target in MOVES[source]:
            move()
            expected = target
        else:
            with pytest.raises(IllegalMove):
                move()
            expected = source
        assert store.state(run_id) is expected

    def test_a_claim_takes_the_oldest(self, store: Store, clock: Clock) -> None:
        first, second = store.add_runs([config(), config(seed=2)])
        run = store.claim(OWNER, due_in=15)
        assert run is not None
        assert run.id == first
        assert run.owner == OWNER
        assert run.started_at == datetime.fromtimestamp(clock.now, UTC)
        assert run.heartbeat_due == datetime.fromtimestamp(clock.now + 15, UTC)
        assert run.log is not None
        assert run.log.endswith(f"run-{first}.log")
        assert run == store.runs(ids=[first])[0]
        other = store.claim(OTHER, due_in=15)
        assert other is not None
        assert other.id == second
        assert store.claim(OTHER, due_in=15) is None

    def test_a_heartbeat_promises_the_next(self, store: Store, clock: Clock) -> None:
        run_id = claimed(store)
        clock.now += 5
        assert store.heartbeat(run_id, OWNER, due_in=15) is RunState.RUNNING
        run = store.run(run_id)
        assert run.heartbeat_at == datetime.fromtimestamp(clock.now, UTC)
        assert run.heartbeat_due == datetime.fromtimestamp(clock.now + 15, UTC)
        store.request_stop(run_id)
        assert store.heartbeat(run_id, OWNER, due_in=15) is RunState.CANCELLING

    def test_a_stranger_changes_nothing(self, store: Store) -> None:
        run_id = claimed(store)
        before = store.run(run_id)
        for call in (
            lambda: store.heartbeat(run_id, OTHER, 60),
            lambda: store.set_progress(run_id, 5, 0.5, 20, owner=OTHER),
            lambda: store.set_facts(run_id, run_facts(), owner=OTHER),
            lambda: store.add_metrics(run_id, [step_metrics(1)], owner=OTHER),
            lambda: store.add_snapshot(run_id, snapshot(1), owner=OTHER),
            lambda: store.add_result(run_id, split_result("dev"), owner=OTHER),
            lambda: store.finish(run_id, RunState.SUCCEEDED, owner=OTHER),
        ):
            with pytest.raises(NotOwner):
                call()
        assert store.run(run_id) == before
        assert store.metric_keys([run_id]) == []

    def test_a_worker_given_up_for_lost_writes_no_more(self, store: Store) -> None:
        run_id = claimed(store)
        store.mark_lost(run_id, "It stopped answering.")
        with pytest.raises(NotOwner, match="lost"):
            store.heartbeat(run_id, OWNER, 15)
        with pytest.raises(NotOwner):
            store.finish(run_id, RunState.SUCCEEDED, owner=OWNER)
        assert store.state(run_id) is RunState.LOST

    def test_failures_keep_their_cause(self, store: Store, clock: Clock) -> None:
        run_id = claimed(store)
        error = ErrorInfo("TrainingError", "The loss of ner is not a number.", "Traceback…", exit_code=1)
        clock.now += 60
        store.finish(run_id, RunState.FAILED, error=error, owner=OWNER)
        run = store.run(run_id)
        assert run.error == error
        assert run.seconds == 60
        assert store.events(run_id)[-1].message == error.message

    def test_success_keeps_its_best_epoch(self, store: Store) -> None:
        run_id = claimed(store)
        store.finish(run_id, RunState.SUCCEEDED, best_epoch=3, checkpoint="checkpoints/1", owner=OWNER)
        run = store.run(run_id)
        assert (run.best_epoch, run.checkpoint, run.error) == (3, "checkpoints/1", None)

    def test_a_run_cannot_end_as_running(self, store: Store) -> None:
        run_id = claimed(store)
        with pytest.raises(IllegalMove):
            store.finish(run_id, RunState.QUEUED)

    def test_stop(self, store: Store, clock: Clock) -> None:
        queued = claimed(store, RunState.QUEUED)
        assert store.request_stop(queued) is RunState.CANCELLED
        running = claimed(store)
        assert store.request_stop(running) is RunState.CANCELLING
        first_asked = store.run(running).stop_requested_at
        clock.now += 10
        assert store.request_stop(running) is RunState.CANCELLING
        assert store.run(running).stop_requested_at == first_asked

    @pytest.mark.parametrize("state", sorted(RESTARTABLE))
    def test_requeue_is_a_clean_restart(self, store: Store, state: RunState) -> None:
        run_id = claimed(store, RunState.RUNNING)
        store.set_facts(run_id, run_facts())
        store.set_progress(run_id, 5, 0.5, 20)
        store.add_metrics(run_id, [step_metrics(1), epoch_metrics(10, 1, 0.5)])
        store.add_snapshot(run_id, snapshot(1))
        store.add_result(run_id, split_result("dev"))
        if state is RunState.CANCELLED:
            store.request_stop(run_id)
        store.finish(run_id, state, error=ErrorInfo("E", "Broke.", ""), best_epoch=1, checkpoint="x")
        store.requeue(run_id)
        run = store.run(run_id)
        assert (run.state, run.attempt) == (RunState.QUEUED, 2)
        assert (run.step, run.epoch, run.total_steps, run.best_epoch) == (0, 0.0, None, None)
        assert (run.owner, run.error, run.checkpoint, run.started_at) == (None, None, None, None)
        assert run.stop_requested_at is None
        assert run.facts == {}
        assert store.metric_keys([run_id]) == []
        assert store.snapshots(run_id) == []
        assert store.scores([run_id]) == []
        assert store.predictions(run_id, "dev") == {}
        assert "clean restart" in store.events(run_id)[-1].message

    def test_lost_only_while_still_overdue(self, store: Store, clock: Clock) -> None:
        run_id = claimed(store)
        due = store.run(run_id).heartbeat_due
        assert due is not None
        assert not store.mark_lost(run_id, "Gone.", overdue_at=due - timedelta(seconds=1))
        clock.now += 20
        assert store.mark_lost(run_id, "Gone.", overdue_at=datetime.fromtimestamp(clock.now, UTC))
        run = store.run(run_id)
        assert run.state is RunState.LOST
        assert run.error is not None
        assert run.error.message == "Gone."
        assert not store.mark_lost(run_id, "Gone.", overdue_at=datetime.fromtimestamp(clock.now, UTC))

    def test_history(self, store: Store) -> None:
        run_id = claimed(store)
        store.add_event(run_id, "note", "The penalty has vanished.")
        store.finish(run_id, RunState.SUCCEEDED)
        events = store.events(run_id)
        assert [event.kind for event in events] == ["running", "note", "succeeded"]
        assert store.events(run_id, after_id=events[0].id) == events[1:]
        with pytest.raises(IntegrityError):
            store.add_event(run_id, "gossip", "Not a kind.")


class TestMetrics:
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
        assert [(one.run_id, one.step.tolist()) for one in series] == [(first, [2, 3])]
        assert [one.run_id for one in store.metrics([second, first], LOSS)] == [second, first]
        assert store.metrics([first], MetricKey("", "train", "height")) == []

    def test_what_is_no_finite_number_survives(self, store: Store) -> None:
        run_id = claimed(store)
        values = [1.0, math.nan, math.inf, -math.inf, 2.0]
        store.add_metrics(run_id, [step_metrics(step, value) for step, value in enumerate(values)])
        (curve,) = store.metrics([run_id], LOSS)
        np.testing.assert_array_equal(curve.value, values)
        store.add_metrics(run_id, [step_metrics(9, math.nan)])
        assert math.isnan(store.latest_metrics([run_id], LOSS)[run_id])
        assert store.best_metrics([run_id], LOSS) == {run_id: 2.0}

    def test_a_batch_written_twice_counts_once(self, store: Store) -> None:
        run_id = claimed(store)
        batch = [step_metrics(step) for step in (1, 2)]
        store.add_metrics(run_id, batch)
        store.add_metrics(run_id, [*batch, step_metrics(3), step_metrics(1, loss=99.0)])
        (curve,) = store.metrics([run_id], LOSS)
        assert curve.step.tolist() == [1, 2, 3]
        assert curve.value.tolist() == [1.0, 1.0, 1.0]

    def test_a_batch_is_all_or_nothing(self, store: Store) -> None:
        run_id = claimed(store)
        bad = StepMetrics(2, 0.2, None, {("", "loss"): 1.0})  # type: ignore[arg-type]  # on purpose: breaks a constraint
        with pytest.raises(IntegrityError):
            store.add_metrics(run_id, [step_metrics(1), bad])
        assert store.metrics([run_id], LOSS) == []
        # The keys that were made in the failed batch are gone with it, and are made anew.
        store.add_metrics(run_id, [step_metrics(1)])
        assert store.last_metric_steps([run_id]) == {run_id: 1}

    def test_last_and_best(self, store: Store) -> None:
        first, second, third = claimed(store), claimed(store), claimed(store)
        store.add_metrics(first, [epoch_metrics(10 * epoch, epoch, 0.9 - epoch / 10) for epoch in (1, 2)])
        store.add_metrics(first, [step_metrics(27)])
        store.add_metrics(second, [epoch_metrics(10, 1, 0.5)])
        ids, score = [first, second, third], MetricKey("", "dev", "score")
        assert store.last_metric_steps(ids) == {first: 27, second: 10}
        assert store.latest_metrics(ids, score) == pytest.approx({first: 0.7, second: 0.5})
        assert store.best_metrics(ids, score) == pytest.approx({first: 0.8, second: 0.5})
        assert store.latest_metrics(ids, MetricKey("", "dev", "height")) == {}

    def test_orphans_are_refused(self, store: Store) -> None:
        with pytest.raises(IntegrityError, match="FOREIGN KEY"), store.transaction() as connection:
            connection.execute(text("INSERT INTO facts (run_id, facts) VALUES (777, '{}')"))

    def test_threads_share_a_store(self, store: Store) -> None:
        ids = [claimed(store) for _ in range(4)]
        failures: list[BaseException] = []

        def write(run_id: int) -> None:
            try:
                for start in range(0, 60, 10):
                    store.add_metrics(run_id, [step_metrics(step) for step in range(start, start + 10)])
                    store.runs()
            except BaseException as error:  # noqa: BLE001 - handed to the test's own thread below
                failures.append(error)

        threads = [threading.Thread(target=write, args=(run_id,)) for run_id in ids]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert store.last_metric_steps(ids) == dict.fromkeys(ids, 59)
        assert [len(one.step) for one in store.metrics(ids, LOSS)] == [60] * 4


class TestArtefacts:
    def test_scores_and_predictions(self, store: Store) -> None:
        first, second = claimed(store), claimed(store)
        store.add_result(first, split_result("dev", 0.5))
        store.add_result(first, split_result("dev", 0.8))
        store.add_result(first, split_result("test", 0.7))
        store.add_result(second, split_result("test", 0.6))
        found = [(one.run_id, one.split, one.task, one.score) for one in store.scores(split="test")]
        assert found == [
            (first, "test", "ner", 0.35),
            (first, "test", "pos", 0.7),
            (second, "test", "ner", 0.3),
            (second, "test", "pos", 0.6),
        ]
        (dev,) = [one for one in store.scores([first], split="dev") if one.task == "pos"]
        assert (dev.score, dev.epoch, dev.f1_conll, dev.seqeval_f1, dev.tokens) == (0.8, 2, None, 0.5, 3)
        assert dev.report["NN"]["support"] == 2
        assert math.isnan(dev.report["NN"]["f1"])
        assert len(store.scores()) == 6
        predictions = store.predictions(first, "test")
        assert predictions["pos"] == ([["NN", "VB"], ["NN"]], [["NN", "NN"], ["NN"]])
        assert set(predictions) == {"pos", "ner"}
        assert store.predictions(second, "dev") == {}

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

    def test_half_precision_only_where_correlations_allow(self, store: Store) -> None:
        run_id = claimed(store)
        plain = relations(features=64)
        store.add_snapshot(run_id, Snapshot(1, 0.1, plain))
        # One feature a million times larger than the others: theirs would vanish in half precision.
        factor = np.array(plain.feature_factor)
        factor[0] *= 1e8
        wild = Snapshot(2, 0.2, relations=type(plain)(plain.task, plain.label, factor, 0.0))
        store.add_snapshot(run_id, wild)
        with store.transaction(write=False) as connection:
            rows = connection.execute(
                text("SELECT factor_type, length(factor) AS size FROM snapshots ORDER BY step")
            )
            assert [tuple(row) for row in rows] == [("<f2", 64 * 3 * 2), ("<f4", 64 * 3 * 4)]
        np.testing.assert_allclose(
            store.relations(run_id, 2)[1].correlation("feature"),
            wild.relations.correlation("feature"),
            atol=1e-3,
        )

    def test_no_relations(self, store: Store) -> None:
        with pytest.raises(StoreError, match="no relations"):
            store.relations(claimed(store))


def test_states_cover_the_life() -> None:
    assert set(MOVES) == set(RunState)
    assert all(MOVES[state] <= {RunState.QUEUED} for state in ENDED)
    assert issubclass(IllegalMove, MRNLabError)
