"""What every store must do with its queue: order, pause, drained machines, retries, resumed runs."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import pytest

from core.errors import NotOwner
from core.store import Owner, RunState, SnapshotKey, Store
from tests.making import OWNER, Clock, claimed, config, facts_of, step_metrics, stopped_halfway

ELSEWHERE = Owner(host="there", pid=7, process_started=5.0, boot_id="boot-2")


def claim_all(store: Store) -> list[int]:
    """All queued runs in the order in which they are claimed."""
    return [run.id for run in iter(lambda: store.claim(OWNER), None) if run is not None]


class TestOrder:
    def test_higher_priorities_first_then_the_oldest(self, store: Store) -> None:
        priorities = [0, 3, -3, 3, 1, 0, -3, 2, 1, 3, 0]
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


class TestCores:
    def test_the_threads_of_all_fit_the_cores_in_the_order_of_the_queue(self, store: Store) -> None:
        threads = [1, 2, 1, 4, None, 1]
        ids = store.add_runs([config(seed=seed) for seed in range(6)], threads=threads)
        here, there = dataclasses.replace(ELSEWHERE, host="here"), ELSEWHERE

        def taken(owner: Owner) -> int | None:
            run = store.claim(owner, cores=4)
            return None if run is None else ids.index(run.id)

        assert store.claimable("here", 4) == 3
        assert [taken(here), taken(here)] == [0, 1]
        assert (store.claimable("here", 4), store.claimable("there", 4), store.claimable("here")) == (1, 1, 4)
        assert [taken(here), taken(here)] == [2, None]  # the last run would fit, but is not the next
        assert (store.claimable("here", 4), store.claimable("there", 4)) == (0, 1)
        assert [taken(there), taken(there)] == [3, None]
        for number in range(3):
            store.finish(ids[number], RunState.SUCCEEDED)
        assert [taken(here), taken(here)] == [4, None]
        assert store.run(ids[4]).threads == 4  # it takes all, so others wait
        # A run that a process trains in the foreground has no number, and holds nothing back.
        store.finish(ids[4], RunState.SUCCEEDED)
        assert claimed(store) == ids[-1] + 1
        assert store.run(ids[-1]).state is RunState.RUNNING

    def test_no_more_than_the_chosen_number_of_a_machine(self, store: Store) -> None:
        store.add_runs([config(seed=seed) for seed in range(4)], threads=[1] * 4)
        store.choose_slots("here", 2)
        assert (store.chosen_slots("here"), store.chosen_slots("there")) == (2, None)
        assert (store.claimable("here", 4), store.claimable("there", 4)) == (2, 4)
        store.choose_slots("here", 3)
        assert store.claimable("here", 4) == 3
        store.choose_slots("here", None)
        assert (store.chosen_slots("here"), store.claimable("here", 4)) == (None, 4)

    def test_no_more_threads_than_the_share_of_chosen_slots(self, store: Store) -> None:
        resumed = claimed(store, RunState.FAILED)
        store.requeue(resumed, resume=True)
        store.add_runs([config(seed=seed) for seed in (2, 3, 4)], threads=[4, None, 1])
        store.choose_slots("here", 2)
        claims = []
        while store.claimable("here", 4) and (run := store.claim(OWNER, cores=4)):
            claims.append(run.threads)
            store.finish(run.id, RunState.SUCCEEDED)
        assert claims == [4, 2, 2, 1]  # a run that is resumed keeps its number


class TestHeldBack:
    def test_a_paused_queue_gives_out_nothing(self, store: Store, clock: Clock) -> None:
        (run_id,) = store.add_runs([config()])
        assert store.paused_since() is None
        store.pause_queue()
        paused = datetime.fromtimestamp(clock.now, UTC)
        clock.now += 5
        store.pause_queue()
        assert store.paused_since() == paused
        assert store.claim(OWNER) is None
        assert store.claim(OWNER, run_id=run_id) is None
        store.unpause_queue()
        store.unpause_queue()
        assert store.paused_since() is None
        assert claim_all(store) == [run_id]

    def test_a_drained_machine_takes_nothing(self, store: Store, clock: Clock) -> None:
        store.add_runs([config()])
        store.drain("here")
        store.drain("nowhere")
        assert store.claim(OWNER) is None
        moment = datetime.fromtimestamp(clock.now, UTC)
        assert store.drained() == {"here": moment, "nowhere": moment}
        assert store.paused_since() is None
        assert store.claim(ELSEWHERE) is not None
        store.undrain("here")
        assert set(store.drained()) == {"nowhere"}
        store.add_runs([config(seed=2)])
        assert store.claim(OWNER) is not None


class TestElsewhere:
    def test_why_runs_wait(self, store: Store) -> None:
        first, second, third = store.add_runs([config(seed=seed) for seed in range(3)])
        store.set_waiting_for({first: "No GPU is free.", second: "No GPU is free.", 999: "Nobody."})
        assert [store.run(run).waiting_for for run in (first, second)] == ["No GPU is free."] * 2
        store.set_waiting_for({second: None})
        assert store.run(second).waiting_for is None
        assert store.claim(OWNER, run_id=first, engine_job="slurm 4711") is not None
        assert store.run(first).waiting_for is None
        assert [store.run(run).engine_job for run in (first, second)] == ["slurm 4711", None]
        store.set_waiting_for({first: "Too late.", third: "Its turn comes."})
        assert store.run(first).waiting_for is None
        assert store.run(third).waiting_for == "Its turn comes."
        before = store.run(third)
        store.set_waiting_for({third: "Its turn comes."})
        assert store.run(third) == before


class TestAgain:
    def test_a_lost_run_with_retries_is_resumed_by_itself(self, store: Store) -> None:
        (run_id,) = store.add_runs([config()], priority=4, retries=1)
        assert store.claim(OWNER) is not None
        store.add_metrics(run_id, [step_metrics(1)], OWNER)
        store.mark_lost(run_id, "Its machine went away.")
        run = store.run(run_id)
        assert (run.state, run.retries, run.priority, run.attempt) == (RunState.QUEUED, 0, 4, 2)
        assert run.error is None
        assert run.owner is None
        assert store.last_metric_steps([run_id]) == {run_id: 1}
        assert [event.kind for event in store.events(run_id)] == ["running", "lost", "queued"]
        with pytest.raises(NotOwner):
            store.add_metrics(run_id, [step_metrics(2)], OWNER)
        assert claim_all(store) == [run_id]
        store.mark_lost(run_id, "And again.")
        assert store.state(run_id) is RunState.LOST
        assert store.run(run_id).retries == 0

    def test_nobody_wants_back_what_was_being_stopped(self, store: Store) -> None:
        (run_id,) = store.add_runs([config()], retries=3)
        store.claim(OWNER)
        store.request_stop(run_id)
        store.mark_lost(run_id, "Gone.")
        assert store.state(run_id) is RunState.LOST
        assert store.run(run_id).retries == 3

    def test_a_resumed_run_keeps_everything(self, store: Store) -> None:
        run_id = stopped_halfway(store)
        store.requeue(run_id, resume=True)
        run = store.run(run_id)
        assert (run.state, run.attempt, run.saved_step) == (RunState.QUEUED, 2, 10)
        assert (run.step, run.total_steps, run.best_epoch) == (10, 40, 1)
        assert run.epoch == pytest.approx(1.0)
        assert (run.owner, run.error, run.finished_at, run.stop_requested_at) == (None, None, None, None)
        assert facts_of(run).total_steps == 40
        assert store.last_metric_steps([run_id]) == {run_id: 2}
        assert store.snapshots(run_id) == [SnapshotKey(2, 0.2)]
        assert len(store.scores([run_id])) == 2
        assert set(store.predictions(run_id, "dev")) == {"pos", "ner"}
        assert run.keywords == ("odd",)
        assert "to be resumed" in store.events(run_id)[-1].message


def test_runs_of_a_process(store: Store) -> None:
    first, other, second, _ = store.add_runs([config(seed=seed) for seed in (1, 2, 3, 4)])
    for run_id, owner in ((first, OWNER), (other, ELSEWHERE), (second, OWNER)):
        assert store.claim(owner, run_id=run_id)
    store.finish(first, RunState.SUCCEEDED, owner=OWNER)
    store.archive([first])
    assert [run.id for run in store.runs_owned_by(OWNER)] == [second, first]
    assert [run.id for run in store.runs_owned_by(ELSEWHERE)] == [other]
    assert store.runs_owned_by(dataclasses.replace(OWNER, process_started=1.5)) == []


def test_machines_that_train(store: Store, clock: Clock) -> None:
    assert store.machines() == []
    began = clock.now
    claimed(store)
    clock.now += 60
    second = claimed(store)
    store.request_stop(second)
    clock.now += 5
    store.add_runs([config(seed=5)])
    assert store.claim(ELSEWHERE)
    clock.now += 5
    store.heartbeat(second, OWNER)
    here, there = store.machines()
    assert (here.host, here.training, there.host, there.training) == ("here", 2, "there", 1)
    assert (here.since, here.heard) == tuple(datetime.fromtimestamp(began + after, UTC) for after in (0, 70))
    store.finish(second, RunState.CANCELLED)
    assert [machine.training for machine in store.machines()] == [1, 1]


def test_runs_of_a_launch_by_state(store: Store) -> None:
    store.add_runs([config()], "old")
    new = store.add_runs([config(seed=seed) for seed in range(3)], "new")
    for run in new[:2]:
        assert store.claim(OWNER, run_id=run)
    store.mark_lost(new[0], "It went away.")
    assert store.ids_of_sweep("new", {RunState.LOST, RunState.RUNNING}) == new[:2]


def test_what_goes_before_a_run(store: Store) -> None:
    ids = store.add_runs([config(seed=seed) for seed in range(4)])
    assert [store.ahead_of(run) for run in ids] == [0, 1, 2, 3]
    store.set_priority([ids[2]], 1)
    assert [store.ahead_of(run) for run in ids] == [1, 2, 0, 3]
    assert store.next_queued(2) == [ids[2], ids[0]]
    store.set_priority([ids[0]], -1)
    assert [store.ahead_of(run) for run in ids] == [3, 1, 0, 2]
    assert store.claim(OWNER)
    assert store.ahead_of(ids[2]) == 0
