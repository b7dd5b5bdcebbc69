"""The queue's verbs: each does what it says, to the runs that it is meant for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.store import RunState, Store
from jobs import control
from tests.making import OWNER, NoWorkers, claimed, config


@pytest.fixture
def engine() -> NoWorkers:
    return NoWorkers("local")


@pytest.fixture
def store() -> Iterator[Store]:
    opened = Store.open("sqlite://")
    yield opened
    opened.close()


def test_pause_and_go_on(store: Store, engine: NoWorkers) -> None:
    (run,) = store.add_runs([config()])
    (said,) = control.pause(store)
    assert "paused" in said.message
    assert store.claim(OWNER, due_in=15) is None
    control.unpause(store, engine)
    assert engine.asked == 1
    claim = store.claim(OWNER, due_in=15)
    assert claim is not None
    assert claim.id == run


def test_drain_and_back(store: Store, engine: NoWorkers) -> None:
    store.add_runs([config()])
    (said,) = control.drain(store, OWNER.host)
    assert "what it trains goes on" in said.message
    assert not store.evicted(OWNER.host)
    (said,) = control.drain(store, OWNER.host, now=True)
    assert "waits again" in said.message
    assert store.evicted(OWNER.host)
    assert store.claim(OWNER, due_in=15) is None
    control.undrain(store, OWNER.host, engine)
    assert engine.asked == 1
    assert store.claim(OWNER, due_in=15)


def test_a_launch_is_stopped_and_resumed_as_one(store: Store, engine: NoWorkers) -> None:
    ids = store.add_runs([config(seed=seed) for seed in range(3)], "mine")
    (other,) = store.add_runs([config()], "other")
    failed = store.add_runs([config(seed=8)], "mine")
    assert store.claim(OWNER, due_in=15, run_id=failed[0])
    store.finish(failed[0], RunState.FAILED)
    assert store.claim(OWNER, due_in=15, run_id=ids[0])
    answers = control.stop_launch(store, "mine")
    assert [answer.run_id for answer in answers] == ids
    assert [store.state(run) for run in ids] == [RunState.CANCELLING, *[RunState.CANCELLED] * 2]
    store.mark_lost(ids[0], "It went away.")
    control.resume_launch(store, "mine", engine)
    assert [store.state(run) for run in ids] == [RunState.QUEUED] * 3
    assert store.state(other) is RunState.QUEUED
    assert store.state(failed[0]) is RunState.FAILED  # what lies in the run would only happen again


def test_sooner_and_later(store: Store) -> None:
    running = claimed(store, seed=9)
    first, second, third = store.add_runs([config(seed=seed) for seed in range(3)])
    control.prioritise(store, [third], 5)
    answers = control.move(store, [second, third, running], 1)
    assert sorted(answer.run_id for answer in answers) == [second, third]
    assert [store.run(run).priority for run in (first, second, third)] == [0, 1, 6]
