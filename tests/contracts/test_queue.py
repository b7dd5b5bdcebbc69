"""What every store must do with its queue: order, pause, drained machines, retries, resumed runs."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import NotOwner, RunNotFound
from core.store import RESTARTABLE, RunState, SnapshotKey, Store
from tests.making import (
    OTHER,
    OWNER,
    Clock,
    claimed,
    config,
    epoch_metrics,
    run_facts,
    snapshot,
    split_result,
    step_metrics,
)


def claim_all(store: Store) -> list[int]:
    """All queued runs in the order in which they are claimed."""
    found = []
    while (run := store.claim(OWNER, due_in=15)) is not None:
        found.append(run.id)
    return found


class TestOrder:
    # The store is not emptied between examples: runs of former ones are being trained, and do not matter.
    @settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.integers(-3, 3), min_size=1, max_size=12))
    def test_higher_priorities_first_then_the_oldest(self, store: Store, priorities: list[int]) -> None:
        ids = [store.add_runs([config()], priority=priority)[0] for priority in priorities]
        wanted = sorted(ids, key=lambda run_id: (-priorities[ids.index(run_id)], run_id))
        assert claim_all(store) == wanted

    def test_a_priority_may_change_while_a_run_waits(self, store: Store) -> None:
        first, second, third = store.add_runs([config(seed=seed) for seed in range(3)])
        before = store.run(third)
        store.set_priority([third, 999], 1)
        assert store.run(third).priority == 1
        assert store.runs(ids=[third]) != [before]
        store.set_priority([first], -1)
        assert claim_all(store) == [third, second, first]
        store.set_priority([], 4)

    def test_one_run_may_be_asked_for(self, store: Store) -> None:
        first, second = store.add_runs([config(), config(seed=2)], priority=2)
        run = store.claim(OWNER, due_in=15, run_id=second)
        assert run is not None
        assert run.id == second
        assert store.claim(OTHER, due_in=15, run_id=second) is None
        assert store.claim(OTHER, due_in=15, run_id=999) is None
        assert store.state(first) is RunState.QUEUED


class TestHeldBack:
    def test_a_paused_queue_gives_out_nothing(self, store: Store, clock: Clock) -> None:
        (run_id,) = store.add_runs([config()])
        assert store.paused_since() is None
        store.pause_queue()
        paused = datetime.fromtimestamp(clock.now, UTC)
        clock.now += 5
        store.pause_queue()
        assert store.paused_since() == paused
        assert store.claim(OWNER, due_in=15) is None
        assert store.claim(OWNER, due_in=15, run_id=run_id) is None
        store.unpause_queue()
        store.unpause_queue()
        assert store.paused_since() is None
        assert claim_all(store) == [run_id]

    def test_what_is_being_trained_goes_on(self, store: Store) -> None:
        run_id = claimed(store)
        store.pause_queue()
        store.drain(OWNER.host)
        assert store.heartbeat(run_id, OWNER, due_in=15) is RunState.RUNNING
        store.add_metrics(run_id, [step_metrics(1)], OWNER)
        store.finish(run_id, RunState.SUCCEEDED, owner=OWNER)

    def test_a_drained_machine_takes_nothing(self, store: Store, clock: Clock) -> None:
        store.add_runs([config()])
        elsewhere = type(OWNER)("elsewhere", 1, 0.0, "boot-2")
        store.drain("here")
        store.drain("nowhere")
        assert store.claim(OWNER, due_in=15) is None
        moment = datetime.fromtimestamp(clock.now, UTC)
        assert store.drained() == {"here": moment, "nowhere": moment}
        assert store.paused_since() is None
        assert store.claim(elsewhere, due_in=15) is not None
        store.undrain("here")
        assert set(store.drained()) == {"nowhere"}
        store.add_runs([config(seed=2)])
        assert store.claim(OWNER, due_in=15) is not None


class TestElsewhere:
    def test_why_runs_wait(self, store: Store) -> None:
        first, second, third = store.add_runs([config(seed=seed) for seed in range(3)])
        store.set_waiting_for({first: "No GPU is free.", second: "No GPU is free.", 999: "Nobody."})
        assert [store.run(run).waiting_for for run in (first, second)] == ["No GPU is free."] * 2
        store.set_waiting_for({second: None})
        assert store.run(second).waiting_for is None
        assert store.claim(OWNER, due_in=15, run_id=first) is not None
        assert store.run(first).waiting_for is None
        store.set_waiting_for({first: "Too late.", third: "Its turn comes."})
        assert store.run(first).waiting_for is None
        assert store.run(third).waiting_for == "Its turn comes."
        before = store.run(third)
        store.set_waiting_for({third: "Its turn comes."})
        assert store.run(third) == before

    def test_what_its_scheduler_calls_it(self, store: Store) -> None:
        placed, own = store.add_runs([config(seed=1), config(seed=2)])
        assert store.claim(OWNER, due_in=15, run_id=placed, engine_job="slurm 4711") is not None
        assert store.run(placed).engine_job == "slurm 4711"
        assert store.claim(OWNER, due_in=15) is not None
        assert store.run(own).engine_job is None


class TestAgain:
    def test_a_lost_run_with_retries_is_resumed_by_itself(self, store: Store) -> None:
        (run_id,) = store.add_runs([config()], priority=4, retries=1)
        assert store.claim(OWNER, due_in=15) is not None
        store.add_metrics(run_id, [step_metrics(1)], OWNER)
        assert store.mark_lost(run_id, "Its machine went away.")
        run = store.run(run_id)
        assert (run.state, run.retries, run.priority, run.attempt) == (RunState.QUEUED, 0, 4, 2)
        assert run.error is None
        assert run.owner is None
        assert store.last_metric_steps([run_id]) == {run_id: 1}
        assert [event.kind for event in store.events(run_id)] == ["running", "lost", "queued"]
        with pytest.raises(NotOwner):
            store.add_metrics(run_id, [step_metrics(2)], OWNER)
        assert claim_all(store) == [run_id]
        assert store.mark_lost(run_id, "And again.")
        assert store.state(run_id) is RunState.LOST
        assert store.run(run_id).retries == 0

    def test_nobody_wants_back_what_was_being_stopped(self, store: Store) -> None:
        (run_id,) = store.add_runs([config()], retries=3)
        store.claim(OWNER, due_in=15)
        store.request_stop(run_id)
        store.mark_lost(run_id, "Gone.")
        assert store.state(run_id) is RunState.LOST
        assert store.run(run_id).retries == 3

    @pytest.mark.parametrize("state", sorted(RESTARTABLE))
    def test_a_resumed_run_keeps_everything(self, store: Store, state: RunState) -> None:
        run_id = claimed(store)
        store.set_facts(run_id, run_facts(total_steps=40), OWNER)
        store.add_metrics(run_id, [step_metrics(1), step_metrics(2), epoch_metrics(2, 1, 0.5)], OWNER)
        store.add_snapshot(run_id, snapshot(2), OWNER)
        store.add_result(run_id, split_result("dev"), OWNER)
        store.set_progress(run_id, 12, 1.2, 40, OWNER)
        store.set_saved_step(run_id, 10, OWNER)
        store.set_note(run_id, "Keep an eye on it.")
        if state is RunState.CANCELLED:
            store.request_stop(run_id)
        store.finish(run_id, state, best_epoch=1, owner=OWNER)
        store.requeue(run_id, resume=True)
        run = store.run(run_id)
        assert (run.state, run.attempt, run.saved_step) == (RunState.QUEUED, 2, 10)
        assert (run.step, run.epoch, run.total_steps, run.best_epoch) == (10, pytest.approx(1.0), 40, 1)
        assert (run.owner, run.error, run.finished_at, run.stop_requested_at) == (None, None, None, None)
        assert run.facts["total_steps"] == 40
        assert store.last_metric_steps([run_id]) == {run_id: 2}
        assert store.snapshots(run_id) == [SnapshotKey(2, 0.2)]
        assert len(store.scores([run_id])) == 2
        assert set(store.predictions(run_id, "dev")) == {"pos", "ner"}
        assert run.note == "Keep an eye on it."
        assert "to be resumed" in store.events(run_id)[-1].message

    def test_a_resumed_run_without_a_saved_state_is_at_its_beginning(self, store: Store) -> None:
        run_id = claimed(store)
        store.set_progress(run_id, 12, 1.2, 40, OWNER)
        store.finish(run_id, RunState.LOST)
        store.requeue(run_id, resume=True)
        assert (store.run(run_id).step, store.run(run_id).epoch) == (0, 0.0)

    def test_steps_made_again_are_on_record_already(self, store: Store) -> None:
        run_id = claimed(store, RunState.RUNNING)
        store.add_metrics(run_id, [step_metrics(step, loss=step) for step in (1, 2, 3)], OWNER)
        store.finish(run_id, RunState.LOST)
        store.requeue(run_id, resume=True)
        assert store.claim(OTHER, due_in=15) is not None
        store.add_metrics(run_id, [step_metrics(step, loss=step) for step in (2, 3, 4)], OTHER)
        (curve,) = store.metrics([run_id], store.metric_keys([run_id])[0])
        assert curve.step.tolist() == [1, 2, 3, 4]

    def test_a_saved_step_is_its_owners(self, store: Store) -> None:
        run_id = claimed(store)
        with pytest.raises(NotOwner):
            store.set_saved_step(run_id, 5, OTHER)
        assert store.run(run_id).saved_step is None
        store.set_saved_step(run_id, 5, OWNER)
        assert store.run(run_id).saved_step == 5
        store.finish(run_id, RunState.FAILED, owner=OWNER)
        store.requeue(run_id)
        assert store.run(run_id).saved_step is None
        with pytest.raises(RunNotFound):
            store.set_saved_step(999, 1)

    def test_a_beat_may_tell_that_training_moves(self, store: Store, clock: Clock) -> None:
        run_id = claimed(store)
        clock.now += 5
        store.heartbeat(run_id, OWNER, due_in=15)
        assert store.run(run_id).progress_at is None
        store.heartbeat(run_id, OWNER, due_in=15, moved=True)
        assert store.run(run_id).progress_at == datetime.fromtimestamp(clock.now, UTC)
