"""A backup is a whole store: read beside the live one, restored, moved to a server and back."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

import pytest
from sqlalchemy import text

from core.errors import StoreError
from core.store import MetricKey, RunState, Store, back_up
from tests.making import (
    OWNER,
    claimed,
    config,
    run_facts,
    snapshot,
    split_result,
    step_metrics,
)
from tests.several import started

LOSS = MetricKey("", "train", "loss")


def filled(store: Store) -> int:
    """A run with everything that a run can record, and the next number of one that is gone."""
    run_id = claimed(store)
    store.set_facts(run_id, run_facts())
    store.add_metrics(run_id, [step_metrics(step) for step in range(1, 8)])
    store.add_metrics(run_id, [step_metrics(9, float("nan")), step_metrics(10, float("-inf"))])
    store.add_snapshot(run_id, snapshot(3))
    store.add_result(run_id, split_result("test"))
    store.add_tags([run_id], ["kept", "Größer als λ"])
    store.finish(run_id, RunState.SUCCEEDED, best_epoch=1, owner=OWNER)
    store.pause_queue()
    store.delete_runs(store.add_runs([config(seed=2), config(seed=3)]))
    return run_id


def same(one: Store, other: Store) -> None:
    """Both give the same answers, also about the number that the next run gets."""
    assert one.runs(with_facts=True) == other.runs(with_facts=True)
    for run in one.runs(states={RunState.SUCCEEDED}):
        assert one.events(run.id) == other.events(run.id)
        assert one.scores([run.id]) == other.scores([run.id]) or "nan" in str(one.scores([run.id]))
        assert one.predictions(run.id, "test") == other.predictions(run.id, "test")
        (mine,), (its,) = one.metrics([run.id], LOSS), other.metrics([run.id], LOSS)
        assert mine.step.tolist() == its.step.tolist()
        assert str(mine.value) == str(its.value)
        shown = [store.relations(run.id)[1].correlation("feature") for store in (one, other)]
        assert shown[0].tolist() == shown[1].tolist()
    assert one.paused_since() == other.paused_since()
    assert one.add_runs([config(seed=9)]) == other.add_runs([config(seed=9)])


def test_a_backup_is_the_store(store: Store, tmp_path: Path) -> None:
    run_id = filled(store)
    file = tmp_path / "copy.db"
    made = back_up(store, str(file))
    assert (made.runs, made.size) == (1, file.stat().st_size)
    copy = Store.open(f"sqlite:///{file}")
    with copy.transaction(write=False) as connection:
        assert connection.scalar(text("SELECT count(*) FROM metrics")) == 36
    assert copy.run(run_id).tags == ("größer-als-λ", "kept")
    assert copy.health().problems == ()
    same(store, copy)
    copy.close()
    assert sorted(path.name for path in tmp_path.glob("*copy*")) == ["copy.db"]


def test_a_laboratory_moves_to_a_server_and_back(postgres_url: str, tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'runs.db'}")
    run_id = filled(store)
    with store.transaction() as connection:  # as an older version may have written it
        connection.execute(text("UPDATE runs SET note = :note"), {"note": "half\0whole"})
    made = back_up(store, postgres_url)
    assert "sesame" not in made.place
    server = Store.open(postgres_url)
    assert server.run(run_id).note == "half�whole"
    for there in (store, server):
        with there.transaction() as connection:
            there.update_run(connection, run_id, {"note": "half�whole"})
    same(store, server)
    back_up(server, str(tmp_path / "back.db"))
    back = Store.open(f"sqlite:///{tmp_path / 'back.db'}")
    same(server, back)
    with pytest.raises(StoreError, match="rows already; name an empty one"):
        back_up(store, postgres_url)
    for one in (store, server, back):
        one.close()


def test_nothing_is_overwritten_by_accident(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'runs.db'}")
    store.add_runs([config()])
    precious = tmp_path / "precious.db"
    precious.write_text("Not yours.")
    with pytest.raises(StoreError, match="there already"):
        back_up(store, str(precious))
    assert precious.read_text() == "Not yours."
    for own in ("runs.db", "../" + tmp_path.name + "/runs.db"):
        with pytest.raises(StoreError, match="the store itself"):
            back_up(store, str(tmp_path / own), replace=True)
    back_up(store, f"sqlite:///{precious}", replace=True)
    assert sqlite3.connect(precious).execute("SELECT count(*) FROM runs").fetchone() == (1,)
    with pytest.raises(StoreError, match="cannot be written"):
        back_up(store, str(tmp_path / "no" / "folder.db"))
    store.close()


def _write_on(url: str, run_id: int, acknowledged: Path, stop: Path) -> None:
    store = Store.open(url)
    step = 0
    while not stop.exists():
        store.add_metrics(run_id, [step_metrics(step + one) for one in range(20)])
        step += 20
        new = acknowledged.with_suffix(".new")
        new.write_text(str(step))
        os.replace(new, acknowledged)
        time.sleep(0.02)  # real ones write twice a second
    store.close()


def test_writers_keep_writing(url: str, tmp_path: Path) -> None:
    """All that was acknowledged before a backup began is in it, in whole batches; nothing stops meanwhile."""
    store = Store.open(url)
    ids = [claimed(store) for _ in range(2)]
    told, stop = {run_id: tmp_path / f"acknowledged-{run_id}" for run_id in ids}, tmp_path / "stop"
    with started(_write_on, [(url, run_id, told[run_id], stop) for run_id in ids], stop=stop.touch) as wait:
        wait(lambda: all(path.exists() for path in told.values()))
        before = {run_id: int(path.read_text()) for run_id, path in told.items()}
        back_up(store, str(tmp_path / "copy.db"))
        wait(lambda: all(int(told[run_id].read_text()) > before[run_id] for run_id in ids))
    copy = Store.open(f"sqlite:///{tmp_path / 'copy.db'}")
    for curve in copy.metrics(ids, LOSS):
        assert len(curve.step) >= before[curve.run_id]
        assert curve.step.tolist() == list(range(len(curve.step)))
        assert len(curve.step) % 20 == 0, "half of a batch was copied"
    assert copy.health().problems == ()
    copy.close()
    store.close()
