"""What befalls a store while a run tells its metrics: a full disk, a lock, a server that restarts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.errors import StoreError
from core.events import Note
from core.recording.heartbeat import StopReason, StopSignal
from core.recording.sink import StoreSink
from core.store import MetricKey, RunState, Store, engine
from tests.making import OWNER, claimed, config, snapshot, step_metrics
from tests.postgres import PASSWORD, PostgresServer
from tests.several import held
from tests.small_disk import fill, small_disk

LOSS = MetricKey("", "train", "loss")
_FASTER = 40  # a minute of patience in 1.5 s, where the fault is to outlast it


def hurried(store: Store, run_id: int, stop: StopSignal) -> StoreSink:
    """A sink whose time goes by faster; what happens to its store is real."""
    return StoreSink(
        store,
        run_id,
        OWNER,
        stop,
        flush_s=0.02,
        sleep=lambda seconds: time.sleep(seconds / _FASTER),
        clock=lambda: time.monotonic() * _FASTER,
    )


def steps(store: Store, run_id: int) -> list[int]:
    return [int(step) for curve in store.metrics([run_id], LOSS) for step in curve.step]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", 1) as folder:
        yield folder


def test_a_full_disk_that_is_tidied_in_time_costs_nothing(
    disk: Path, open_store: Callable[..., Store]
) -> None:
    store = open_store(f"sqlite:///{disk / 'runs.db'}")
    run_id = claimed(store)
    with hurried(store, run_id, StopSignal()) as sink:
        sink(step_metrics(1))
        sink.settle()
        ballast = fill(disk)
        for step in range(2, 400):
            sink(step_metrics(step))
        sink(snapshot(399))
        time.sleep(0.3)
        assert steps(store, run_id) == [1], "the disk was not full"
        ballast.unlink()
    assert steps(store, run_id) == list(range(1, 400))
    assert store.health().problems == ()


def test_a_disk_that_stays_full_fails_the_run_loudly(disk: Path, open_store: Callable[..., Store]) -> None:
    store = open_store(f"sqlite:///{disk / 'runs.db'}")
    run_id, stop = claimed(store), StopSignal()

    def train() -> None:
        with hurried(store, run_id, stop) as sink:
            for step in range(1, 11):
                sink(step_metrics(step))
            sink.settle()
            fill(disk)
            for step in range(11, 100_000):
                sink(step_metrics(step))
                time.sleep(0.001)

    with pytest.raises(StoreError, match="the disk is full; free some space"):
        train()
    assert stop.reason is StopReason.UNRECORDED
    assert steps(store, run_id)[:10] == list(range(1, 11)), "what was acknowledged is there"
    (disk / "ballast").unlink()
    assert store.health().problems == ()
    store.finish(run_id, RunState.FAILED, owner=OWNER)
    store.requeue(run_id, resume=True)
    assert steps(store, run_id)[:10] == list(range(1, 11))


@pytest.mark.parametrize("timeout_s", [30, 0.3], ids=["waited for", "tried again"])
def test_a_locked_store_holds_up_no_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timeout_s: float, open_store: Callable[..., Store]
) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_S", timeout_s)
    store = open_store(f"sqlite:///{tmp_path / 'runs.db'}")
    run_id = claimed(store)
    with StoreSink(store, run_id, OWNER, StopSignal(), flush_s=0.02) as sink, held(tmp_path / "runs.db"):
        for step in range(1, 61):  # none waits for the store
            sink(step_metrics(step))
            time.sleep(0.01)
    assert steps(store, run_id) == list(range(1, 61))


def test_a_server_may_restart(
    postgres_server: PostgresServer, postgres_url: str, open_store: Callable[..., Store]
) -> None:
    store = open_store(postgres_url)
    run_id = claimed(store)
    with StoreSink(store, run_id, OWNER, StopSignal(), flush_s=0.02) as sink:
        sink(step_metrics(1))
        sink.settle()
        with postgres_server.stopped():
            for step in range(2, 40):
                sink(step_metrics(step))
            sink(Note("Still here."))
            with pytest.raises(
                StoreError, match=r"check that its server runs|is starting or stopping"
            ) as refused:
                store.counts()
            assert PASSWORD not in str(refused.value)
    assert steps(store, run_id) == list(range(1, 40))
    assert [event.message for event in store.events(run_id) if event.kind == "note"] == ["Still here."]


def test_a_restart_in_the_middle_of_a_change(
    postgres_server: PostgresServer, postgres_url: str, open_store: Callable[..., Store]
) -> None:
    store = open_store(postgres_url)
    run_id = claimed(store)

    def change() -> None:
        with store.transaction():
            store.add_metrics(run_id, [step_metrics(1)])
            with postgres_server.stopped():
                pass
            store.add_metrics(run_id, [step_metrics(2)])

    with pytest.raises(StoreError, match=r"is starting or stopping|connection broke"):
        change()
    assert steps(store, run_id) == []
    store.add_metrics(run_id, [step_metrics(1)])
    assert steps(store, run_id) == [1]


def test_a_note_is_told_once_however_often_it_is_written(store: Store) -> None:
    """The acknowledgement of a batch may be lost; the batch is then written again."""
    run_id = claimed(store)
    for _ in range(2):
        store.add_event(run_id, "note", "Begun.", at=1000.5)
    store.add_event(run_id, "note", "Begun.", at=1001.0)
    store.add_event(run_id, "note", "Begun.")
    assert [event.message for event in store.events(run_id)][1:] == ["Begun."] * 3


def test_what_keeps_a_server_away_is_told(postgres_url: str) -> None:
    url = engine.parse_url(postgres_url)
    for wrong, words in {
        url.set(password="wr0ng"): "refused the user's name or password",
        url._replace(password=None): "wants a password",
        url.set(database="nosuch"): "is not there",
        url.set(port=1): "does not answer; check that its server runs",
        url.set(host="no-such-host.invalid"): "cannot be found",
    }.items():
        text = wrong.render_as_string(hide_password=False)
        with pytest.raises(StoreError, match=words) as refused:
            Store.open(text)
        assert "\n" not in str(refused.value)
        assert "wr0ng" not in str(refused.value)
        assert PASSWORD not in str(refused.value)
    in_query = (
        engine.parse_url(postgres_url)._replace(password=None).update_query_dict({"password": PASSWORD})
    )
    for text in (postgres_url, in_query.render_as_string(hide_password=False)):
        store = Store.open(text)
        assert PASSWORD in store.url
        assert PASSWORD not in store.name
        store.close()


def test_a_change_that_another_holds_is_told(url: str, open_store: Callable[..., Store]) -> None:
    first, second = (open_store(url, patience_s=0.3) for _ in range(2))
    run_id = claimed(first)
    with first.transaction():
        first.set_progress(run_id, 1, 0.1, 20)
        with pytest.raises(StoreError, match="is busy: another program"):
            second.set_progress(run_id, 2, 0.2, 20)
    second.set_progress(run_id, 2, 0.2, 20)


def test_many_changes_of_the_same_runs_wait_for_one_another(url: str) -> None:
    """In whatever order they name the runs: neither a deadlock nor an error."""
    stores = [Store.open(url) for _ in range(3)]
    ids = stores[0].add_runs([config(seed=seed) for seed in range(20)])
    failures: list[BaseException] = []

    def change(store: Store, order: list[int]) -> None:
        try:
            for turn in range(5):
                store.set_priority(order, turn)
                store.add_keywords(order, [f"turn-{turn}"])
                store.set_waiting_for(dict.fromkeys(order, f"turn {turn}"))
                store.add_metrics(order[0], [step_metrics(turn)])
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread below
            failures.append(error)

    orders = [ids, ids[::-1], ids[10:] + ids[:10]]
    threads = [threading.Thread(target=change, args=pair) for pair in zip(stores, orders, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert {run.priority for run in stores[0].runs()} == {4}
    for store in stores:
        store.close()
