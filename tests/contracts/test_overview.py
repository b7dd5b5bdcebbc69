"""What goes on, as the database counts it, on every store."""

from __future__ import annotations

from datetime import UTC, datetime

from core.store import Owner, RunState, Store
from tests.making import OWNER, Clock, claimed, config

ELSEWHERE = Owner(host="there", pid=7, process_started=5.0, boot_id="boot-2")


def test_machines_that_train(store: Store, clock: Clock) -> None:
    assert store.machines() == []
    began = clock.now
    claimed(store)
    clock.now += 60
    second = claimed(store)
    store.request_stop(second)
    clock.now += 5
    store.add_runs([config(seed=5)])
    assert store.claim(ELSEWHERE, due_in=15)
    clock.now += 5
    store.heartbeat(second, OWNER, due_in=15)
    here, there = store.machines()
    assert (here.host, here.training, there.host, there.training) == ("here", 2, "there", 1)
    assert (here.since, here.heard) == tuple(datetime.fromtimestamp(began + after, UTC) for after in (0, 70))
    store.finish(second, RunState.CANCELLED)
    assert [one.training for one in store.machines()] == [1, 1]


def test_launches_under_way(store: Store) -> None:
    old = store.add_runs([config(seed=seed) for seed in range(3)], "old")
    new = store.add_runs([config(seed=seed) for seed in range(4)], "new", priority=2)
    store.add_runs([config()])
    for run in new[:2]:
        assert store.claim(OWNER, due_in=15, run_id=run)
    store.mark_lost(new[0], "It went away.")
    first, second = store.launches()
    assert (first.name, first.newest, first.priority) == ("new", new[-1], 2)
    counted = {state: count for state, count in first.counts.items() if count}
    assert counted == {RunState.QUEUED: 2, RunState.RUNNING: 1, RunState.LOST: 1}
    assert (second.name, second.counts[RunState.QUEUED], second.priority) == ("old", 3, 0)
    assert store.launched("new", {RunState.LOST, RunState.RUNNING}) == new[:2]
    for run in old:
        store.request_stop(run)
    assert [one.name for one in store.launches()] == ["new"]
    for run in new[1:]:
        store.request_stop(run)
    store.finish(new[1], RunState.CANCELLED)
    assert [one.name for one in store.launches()] == ["new"]  # one of its runs is lost, and to be resumed
    store.archive(new)
    assert store.launches() == []


def test_what_goes_before_a_run(store: Store) -> None:
    ids = store.add_runs([config(seed=seed) for seed in range(4)])
    assert [store.ahead_of(run) for run in ids] == [0, 1, 2, 3]
    store.set_priority([ids[2]], 1)
    assert [store.ahead_of(run) for run in ids] == [1, 2, 0, 3]
    assert store.next_queued(2) == [ids[2], ids[0]]
    store.set_priority([ids[0]], -1)
    assert [store.ahead_of(run) for run in ids] == [3, 1, 0, 2]
    assert store.claim(OWNER, due_in=15)
    assert store.ahead_of(ids[2]) == 0
