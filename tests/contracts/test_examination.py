"""The doctor's questions to the store, on every kind of store."""

from __future__ import annotations

from core.store import RunState, Store
from jobs.doctor import of_store
from tests.making import Clock, claimed


def test_a_store_is_examined(store: Store, clock: Clock) -> None:
    assert [one for one in of_store(store) if not one.message.startswith("SQLite ")] == []
    running = claimed(store)
    failed = claimed(store, RunState.FAILED)
    clock.now += 4 * 3600
    (gone,) = [one for one in of_store(store) if one.about == "queue"]
    assert gone.message.endswith(f"that they train run {running}.")
    assert gone.fix is not None
    gone.fix.apply()
    assert store.state(running) is RunState.LOST
    assert store.state(failed) is RunState.FAILED
    rows = store.rows()
    assert (rows["runs"], rows["metrics"]) == (2, 0)
    assert rows["events"] >= 4
