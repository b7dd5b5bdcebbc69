"""Who is given up for lost, and when; with clocks that the test moves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.store import Owner, RunState, Store
from jobs.heartbeat import DUE_IN_S
from jobs.reaper import GRACE_S, reap
from tests.making import OWNER, Clock, claimed


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Iterator[Store]:
    opened = Store.open("sqlite://", clock=clock)
    yield opened
    opened.close()


def look(store: Store, *, here: bool = True, alive: bool = False) -> list[int]:
    def never(_owner: Owner) -> bool:
        raise AssertionError("nobody was to be killed")

    return reap(store, here=lambda _: here, alive=lambda _: alive, end=never)


def test_a_promise_kept_or_not_yet_due(store: Store, clock: Clock) -> None:
    run_id = claimed(store)
    clock.now += DUE_IN_S - 1
    assert look(store) == []
    assert store.state(run_id) is RunState.RUNNING


def test_overdue_and_gone(store: Store, clock: Clock) -> None:
    run_id = claimed(store)
    clock.now += 70
    assert look(store) == [run_id]
    run = store.run(run_id)
    assert run.state is RunState.LOST
    assert run.error is not None
    assert run.error.message == f"The worker of run {run_id} stopped answering 70 s ago."
    assert look(store) == []


def test_overdue_but_its_process_lives(store: Store, clock: Clock) -> None:
    run_id = claimed(store)
    clock.now += 3600
    assert look(store, alive=True) == []
    assert store.state(run_id) is RunState.RUNNING


def test_elsewhere_only_silence_tells_and_within_a_minute(store: Store, clock: Clock) -> None:
    run_id = claimed(store)
    clock.now += DUE_IN_S + 30
    assert look(store, here=False, alive=False) == []
    clock.now += 15
    assert clock.now - 1_700_000_000 <= 60
    assert look(store, here=False, alive=False) == [run_id]


def test_only_runs_with_workers_are_looked_at(store: Store, clock: Clock) -> None:
    states = set(RunState) - {RunState.RUNNING, RunState.CANCELLING}
    ids = {state: claimed(store, state) for state in sorted(states) if state is not RunState.QUEUED}
    ids[RunState.QUEUED] = claimed(store, RunState.QUEUED)
    clock.now += 3600
    assert look(store) == []
    assert {state: store.state(run_id) for state, run_id in ids.items()} == {state: state for state in ids}


def test_force_after_the_grace(store: Store, clock: Clock) -> None:
    run_id = claimed(store, RunState.CANCELLING)
    ended: list[Owner] = []

    def end(owner: Owner) -> bool:
        ended.append(owner)
        return len(ended) > 1  # the first time it is not allowed to

    def look_at_living() -> list[int]:
        return reap(store, here=lambda _: True, alive=lambda _: True, end=end)

    clock.now += GRACE_S - 1
    assert look_at_living() == []
    assert ended == []
    clock.now += 2
    assert look_at_living() == []
    assert ended == [OWNER]
    assert store.state(run_id) is RunState.CANCELLING
    assert look_at_living() == []
    assert store.state(run_id) is RunState.CANCELLED
    assert "20 s" in store.events(run_id)[-2].message


def test_a_stop_of_a_dead_worker_is_a_loss(store: Store, clock: Clock) -> None:
    run_id = claimed(store, RunState.CANCELLING)
    clock.now += 30
    assert look(store) == [run_id]
    assert store.state(run_id) is RunState.LOST
