"""The file of a store is deleted, or replaced, while it is open: whoever uses the store learns it at once."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from core.errors import StoreReplaced
from core.recording.heartbeat import StopSignal
from core.recording.sink import StoreSink
from core.store import MetricKey, RunState, Store
from tests.making import OWNER, claimed, config, step_metrics
from tests.supervised import wait_for

LOSS = MetricKey("", "train", "loss")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def test_a_deleted_file_is_an_error_until_it_is_back(path: Path) -> None:
    store = Store.open(f"sqlite:///{path}")
    run_id = claimed(store)
    away = path.with_name("away.db")
    path.rename(away)
    for call in (lambda: store.add_metrics(run_id, [step_metrics(1)]), store.runs):
        with pytest.raises(StoreReplaced, match=r"runs\.db was deleted or replaced while the store was open"):
            call()
    assert not path.exists()
    away.rename(path)
    store.add_metrics(run_id, [step_metrics(1)])
    assert store.last_metric_steps([run_id]) == {run_id: 1}
    store.close()


def test_a_change_of_a_file_deleted_meanwhile_is_not_acknowledged(path: Path) -> None:
    store = Store.open(f"sqlite:///{path}")
    run_id = claimed(store)

    def change() -> None:
        with store.transaction():
            store.add_metrics(run_id, [step_metrics(1)])
            path.unlink()

    with pytest.raises(StoreReplaced):
        change()
    store.close()


def test_a_file_that_took_its_place_is_left_alone(path: Path) -> None:
    store = Store.open(f"sqlite:///{path}")
    run_id = claimed(store)
    path.unlink()
    other = Store.open(f"sqlite:///{path}")
    other.add_runs([config(seed=5)], sweep="another laboratory")
    for call in (lambda: store.add_metrics(run_id, [step_metrics(2)]), store.runs):
        with pytest.raises(StoreReplaced):
            call()
    assert [run.sweep for run in other.runs()] == ["another laboratory"]
    assert other.metric_keys([run_id]) == []
    store.close()
    other.close()


def test_a_run_whose_store_is_another_fails_at_once(path: Path) -> None:
    store = Store.open(f"sqlite:///{path}")
    run_id = claimed(store)

    def train() -> None:
        with StoreSink(store, run_id, OWNER, StopSignal(), flush_s=60) as sink:
            sink(step_metrics(1))
            wait_for(lambda: store.last_metric_steps([run_id]) == {run_id: 1})
            os.replace(backup, path)
            sink(step_metrics(2))

    backup = path.with_name("backup.db")
    Store.open(f"sqlite:///{backup}").close()
    began = time.monotonic()
    with pytest.raises(StoreReplaced):
        train()
    assert time.monotonic() - began < 10
    store.close()
    assert RunState.RUNNING not in {run.state for run in Store.open(f"sqlite:///{path}").runs()}
