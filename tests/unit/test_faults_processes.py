"""Processes that die, hang or are told to end: nobody looks meanwhile, only the supervisor watches."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from core.store import MetricKey, Run, RunState, Store
from jobs.engines.local import LocalEngine
from jobs.worker.process import is_alive, process_status
from tests.faulty_training import HANGS
from tests.making import config
from tests.supervised import FOREVER, owner_of, supervised, wait_for, watchers

WITHIN_S = 60.0


@pytest.fixture
def workshop(laboratory: Path) -> Iterator[tuple[Store, LocalEngine]]:
    with supervised("tests.faulty_training") as found:
        yield found


@pytest.fixture
def store(workshop: tuple[Store, LocalEngine]) -> Store:
    return workshop[0]


@pytest.fixture
def engine(workshop: tuple[Store, LocalEngine]) -> LocalEngine:
    return workshop[1]


def training(store: Store, engine: LocalEngine, run_id: int) -> int:
    """The process that trains the run, once it does."""
    engine.ensure_workers(store)
    wait_for(lambda: store.run(run_id).step > 3)
    return owner_of(store, run_id).pid


def supervisor_of(pid: int) -> psutil.Process:
    wait_for(lambda: len(watchers(pid)) == 1)
    return watchers(pid)[0]


def lost(store: Store, run_id: int) -> Run:
    """The run, once it is found lost, which must be soon."""
    wait_for(lambda: store.state(run_id) is RunState.LOST, WITHIN_S)
    return store.run(run_id)


def history(store: Store, run_id: int) -> list[str]:
    return [event.message for event in store.events(run_id)]


def test_a_worker_that_dies_costs_its_run_only(store: Store, engine: LocalEngine) -> None:
    first, second = store.add_runs([config(epochs=FOREVER), config(seed=2, epochs=1)])
    pid = training(store, engine, first)
    os.kill(pid, signal.SIGKILL)
    killed = time.time()
    run = lost(store, first)
    assert run.finished_at is not None
    assert run.finished_at.timestamp() - killed < 5
    assert run.error is not None
    assert run.error.message.startswith(
        f"The worker of run {first} is gone: its process {pid} was ended by SIGKILL ("
    )
    assert run.error.exit_code == -signal.SIGKILL
    # What it had acknowledged is there, without a gap.
    (loss,) = store.metrics([first], MetricKey("", "train", "loss"))
    assert loss.step.tolist() == list(range(1, run.step + 1))
    wait_for(lambda: store.state(second) is RunState.SUCCEEDED)
    wait_for(lambda: engine.live_workers(store) == 0)


def test_a_run_with_retries_is_taken_up_again(store: Store, engine: LocalEngine) -> None:
    (run_id,) = store.add_runs([config(epochs=FOREVER)], retries=1)
    pid = training(store, engine, run_id)
    os.kill(pid, signal.SIGSEGV)
    wait_for(lambda: store.run(run_id).attempt == 2 and store.state(run_id) is RunState.RUNNING)
    assert owner_of(store, run_id).pid != pid
    assert any("was ended by SIGSEGV (a fault in compiled code)" in told for told in history(store, run_id))
    store.request_stop(run_id)
    wait_for(lambda: store.state(run_id) is RunState.CANCELLED)


def test_the_supervisor_may_die(store: Store, engine: LocalEngine) -> None:
    """Its worker goes on, and is watched again: when it dies too, that is found and the queue goes on."""
    first, second, third = store.add_runs(
        [config(epochs=10), config(seed=2, epochs=FOREVER), config(seed=3, epochs=1)]
    )
    pid = training(store, engine, first)
    killed = supervisor_of(pid)
    killed.kill()
    wait_for(lambda: engine.live_workers(store) == 1 and not psutil.pid_exists(killed.pid))
    supervisor_of(pid)
    wait_for(lambda: store.state(first) is RunState.SUCCEEDED)
    assert store.run(first).attempt == 1
    assert training(store, engine, second) == pid
    os.kill(pid, signal.SIGKILL)
    run = lost(store, second)
    assert run.error is not None
    assert run.error.message.endswith("ended without a word.")
    wait_for(lambda: store.state(third) is RunState.SUCCEEDED)


@pytest.mark.parametrize(("number", "whom"), [(signal.SIGTERM, "supervisor"), (signal.SIGINT, "worker")])
def test_told_to_end(store: Store, engine: LocalEngine, number: signal.Signals, whom: str) -> None:
    first, second = store.add_runs([config(epochs=FOREVER), config(seed=2)])
    worker = psutil.Process(training(store, engine, first))
    target = supervisor_of(worker.pid) if whom == "supervisor" else worker
    target.send_signal(number)
    wait_for(lambda: store.state(first) is RunState.CANCELLED)
    assert any(message.startswith("Its worker was told to end.") for message in history(store, first))
    wait_for(lambda: engine.live_workers(store) == 0)
    assert store.state(second) is RunState.QUEUED


def test_told_a_second_time(store: Store, engine: LocalEngine) -> None:
    first, second = store.add_runs([config(epochs=FOREVER, seed=HANGS), config(seed=2)])
    worker = psutil.Process(training(store, engine, first))
    supervisor = supervisor_of(worker.pid)
    supervisor.send_signal(signal.SIGINT)
    with pytest.raises(psutil.TimeoutExpired):
        worker.wait(0.5)  # it hangs, and cannot obey
    supervisor.send_signal(signal.SIGINT)
    run = lost(store, first)
    assert run.error is not None
    assert run.error.message.endswith("was ended by force, for it was told to end a second time.")
    wait_for(lambda: engine.live_workers(store) == 0)
    assert store.state(second) is RunState.QUEUED


@pytest.mark.parametrize("how", ["busy", "stopped"])
def test_a_hung_worker_is_ended(
    workshop: tuple[Store, LocalEngine], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    store, engine = workshop
    monkeypatch.setenv("MRNLAB_HANG_S", "3")
    first, second = store.add_runs(
        [config(epochs=FOREVER, seed=HANGS if how == "busy" else 1), config(seed=2, epochs=1)]
    )
    pid = training(store, engine, first)
    owner = owner_of(store, first)
    if how == "stopped":
        os.kill(pid, signal.SIGSTOP)
    run = lost(store, first)
    assert run.error is not None
    assert run.error.message.endswith("made no progress for 3 s although its process lived; it was ended.")
    assert not is_alive(owner), process_status(owner)
    wait_for(lambda: store.state(second) is RunState.SUCCEEDED)


def test_workers_that_cannot_even_start(
    store: Store, engine: LocalEngine, laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MRNLAB_TEST_IMPORT_FAULT", "1")
    (run_id,) = store.add_runs([config()])
    engine.ensure_workers(store)
    wait_for(lambda: engine.live_workers(store) == 0)
    said = (laboratory / "logs" / "workers.log").read_text()
    assert said.count("ImportError: libcudart.so.99") == 5
    assert "5 workers ended one after another before they had claimed a run" in said
    assert store.state(run_id) is RunState.QUEUED
