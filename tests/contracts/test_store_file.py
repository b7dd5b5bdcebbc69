"""The file of a store is deleted, or replaced, while it is open: nothing that was acknowledged is lost."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import pytest

from core.errors import StoreError, StoreReplaced
from core.recording.heartbeat import StopSignal
from core.recording.sink import StoreSink
from core.store import MetricKey, RunState, Store
from tests.making import OWNER, claimed, config, step_metrics
from tests.several import started
from tests.supervised import wait_for

LOSS = MetricKey("", "train", "loss")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def steps(store: Store, run_id: int) -> list[int]:
    return [int(step) for curve in store.metrics([run_id], LOSS) for step in curve.step]


def test_a_deleted_file_is_put_back(path: Path) -> None:
    store = Store.open(f"sqlite:///{path}")
    run_id = claimed(store)
    store.add_metrics(run_id, [step_metrics(1)])
    for number in (2, 3):
        path.unlink()
        path.with_name("runs.db-journal").write_bytes(b"of the deleted file")
        store.add_metrics(run_id, [step_metrics(number)])
    path.unlink()
    assert steps(store, run_id) == [1, 2, 3]  # reading puts it back, too
    other = Store.open(f"sqlite:///{path}")
    assert steps(other, run_id) == [1, 2, 3]
    assert other.health().problems == ()
    assert sorted(each.name for each in path.parent.glob("runs*")) == ["runs.db"]
    store.close()
    other.close()


def test_what_a_transaction_wrote_meanwhile_is_kept_or_refused(path: Path) -> None:
    store = Store.open(f"sqlite:///{path}")
    run_id = claimed(store)
    acknowledged = []
    for step in (1, 2):
        with contextlib.suppress(StoreError), store.transaction():
            if step == 2:
                path.unlink()
            store.add_metrics(run_id, [step_metrics(step)])
            if step == 1:
                path.unlink()
        acknowledged = steps(store, run_id)
        assert 1 in acknowledged
    store.add_metrics(run_id, [step_metrics(2)])
    assert steps(store, run_id) == [1, 2]
    store.close()


def test_a_file_that_took_its_place_is_left_alone(path: Path) -> None:
    url = f"sqlite:///{path}"
    store, dashboard = Store.open(url), Store.open(url)
    run_id = claimed(store)
    store.add_metrics(run_id, [step_metrics(1)])
    assert dashboard.run(run_id).id == run_id
    path.unlink()
    other = Store.open(url)
    other.add_runs([config(seed=5)], sweep="another laboratory")
    with pytest.raises(StoreReplaced, match=r"saved in .*runs\.db\.rescued-"):
        store.add_metrics(run_id, [step_metrics(2)])
    with pytest.raises(StoreReplaced):
        store.runs()
    with pytest.raises(StoreReplaced):
        dashboard.runs()
    assert [run.sweep for run in other.runs()] == ["another laboratory"]
    (saved,) = path.parent.glob("runs.db.rescued-*")
    rescued = Store.open(f"sqlite:///{saved}")
    assert steps(rescued, run_id) == [1]
    assert rescued.state(run_id) is RunState.RUNNING
    for one in (store, dashboard, other, rescued):
        one.close()


def test_a_run_goes_on_without_a_gap(path: Path) -> None:
    store, page = Store.open(f"sqlite:///{path}"), Store.open(f"sqlite:///{path}")
    run_id = claimed(store)
    with StoreSink(store, run_id, OWNER, StopSignal(), flush_s=0.02) as sink:
        for step in range(1, 31):
            sink(step_metrics(step))
            if step % 10 == 0:
                wait_for(path.exists)  # put back since it was deleted before
                path.unlink()
            time.sleep(0.01)
    assert steps(page, run_id) == list(range(1, 31))
    store.close()
    page.close()


def test_a_run_whose_store_is_another_fails_at_once(path: Path) -> None:
    store = Store.open(f"sqlite:///{path}")
    run_id = claimed(store)

    def train() -> None:
        with StoreSink(store, run_id, OWNER, StopSignal(), flush_s=60) as sink:
            sink(step_metrics(1))
            wait_for(lambda: store.last_metric_steps([run_id]) == {run_id: 1})
            path.unlink()
            Store.open(f"sqlite:///{path}").close()
            sink(step_metrics(2))

    began = time.monotonic()
    with pytest.raises(StoreReplaced, match="saved in"):
        train()
    assert time.monotonic() - began < 10
    store.close()


def _write_on(url: str, run_id: int, acknowledged: Path, stop: Path) -> None:
    store = Store.open(url)
    step = 0
    while not stop.exists():
        with contextlib.suppress(StoreError):  # as the sink does: the same batch again
            store.add_metrics(run_id, [step_metrics(step + one) for one in range(5)])
            step += 5
            new = acknowledged.with_suffix(".new")
            new.write_text(str(step))
            os.replace(new, acknowledged)
        time.sleep(0.01)
    store.close()


def test_three_processes_write_while_it_is_deleted(path: Path, tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{path}")
    ids = [claimed(store) for _ in range(3)]
    told, stop = {run_id: tmp_path / f"acknowledged-{run_id}" for run_id in ids}, tmp_path / "stop"

    def acknowledged() -> dict[int, int]:
        return {run_id: int(file.read_text()) if file.exists() else 0 for run_id, file in told.items()}

    calls = [(store.url, run_id, told[run_id], stop) for run_id in ids]
    with started(_write_on, calls, stop=stop.touch) as wait:
        for _ in range(3):
            before = acknowledged()
            wait(lambda before=before: all(now > before[run_id] for run_id, now in acknowledged().items()))
            path.unlink()
            wait(path.exists)
    for run_id, last in acknowledged().items():
        found = steps(store, run_id)
        assert len(found) >= last
        assert found == list(range(len(found)))
    assert store.health().problems == ()
    assert list(path.parent.glob("*rescued*")) == []
    store.close()
