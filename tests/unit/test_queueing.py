"""The queue's verbs: each does what it says, to the runs that it is meant for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.store import Store
from jobs import control
from tests.making import OWNER, NoWorkers, config


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
