"""Workers as real processes: killed, stopped, left alone by Ctrl-C. They train something small."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from core.errors import MRNLabError
from core.store import ENDED, MetricKey, Owner, RunState, Store
from jobs.engines import default_engine, slots
from jobs.engines.local import LocalEngine
from jobs.engines.slots import free_slot, slot_count, taken_slots
from jobs.processes import is_alive, is_here, kill, this_process
from jobs.reaper import reap
from tests.making import config

ROOT = Path(__file__).resolve().parents[2]
SMALL_WORKER = (sys.executable, "-m", "tests.small_training")
FOREVER = 1000  # epochs


@pytest.fixture
def store(laboratory: Path) -> Iterator[Store]:
    """The laboratory's own store, so that workers open the same; its workers are ended with the test."""
    opened = Store.open()
    yield opened
    for owner in taken_slots(opened.url).values():
        kill(owner)
    opened.close()


@pytest.fixture
def engine(store: Store) -> Iterator[LocalEngine]:
    made = LocalEngine(SMALL_WORKER)
    yield made
    for owner in taken_slots(store.url).values():
        kill(owner)
    wait_for(lambda: made.live_workers(store) == 0)


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Until the condition holds; fails where it does not in that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def owner_of(store: Store, run_id: int) -> Owner:
    owner = store.run(run_id).owner
    assert owner is not None
    return owner


def later(store: Store, seconds: float) -> Store:
    """The same store, seen that much later."""
    return Store.open(store.url, clock=lambda: time.time() + seconds)


def test_one_worker_trains_all_runs_and_ends(store: Store, engine: LocalEngine) -> None:
    ids = store.add_runs([config(seed=seed, epochs=1) for seed in (1, 2, 3)])
    assert engine.ensure_workers(store) == 1
    assert engine.ensure_workers(store) == 0
    # Another dashboard on the same store starts no worker either, once it can see ours.
    wait_for(lambda: len(taken_slots(store.url)) == 1)
    assert LocalEngine(SMALL_WORKER).ensure_workers(store) == 0
    wait_for(lambda: all(store.state(run_id) in ENDED for run_id in ids))
    assert {store.state(run_id) for run_id in ids} == {RunState.SUCCEEDED}
    assert len({owner_of(store, run_id) for run_id in ids}) == 1
    log = store.run(ids[0]).log
    assert log is not None
    assert "Epoch 1" in Path(log).read_text()
    wait_for(lambda: engine.live_workers(store) == 0)
    assert [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE] == []


def test_a_killed_worker_costs_its_run_only(store: Store, engine: LocalEngine) -> None:
    first, second = store.add_runs([config(epochs=FOREVER), config(seed=2, epochs=1)])
    engine.ensure_workers(store)
    wait_for(lambda: store.run(first).step > 5)
    os.kill(owner_of(store, first).pid, signal.SIGKILL)
    assert reap(store) == []  # it has promised to speak within 15 s
    soon = later(store, 50)
    wait_for(lambda: reap(soon) == [first])
    run = store.run(first)
    assert run.state is RunState.LOST
    assert run.error is not None
    assert run.error.message.startswith(f"The worker of run {first} stopped answering 5")
    # What it had acknowledged is there, without a gap.
    (loss,) = store.metrics([first], MetricKey("", "train", "loss"))
    assert loss.step.tolist() == list(range(1, run.step + 1))
    wait_for(lambda: engine.live_workers(store) == 0)
    engine.ensure_workers(store)
    wait_for(lambda: store.state(second) is RunState.SUCCEEDED)
    soon.close()


def test_stop_reaches_a_worker(store: Store, engine: LocalEngine) -> None:
    (run_id,) = store.add_runs([config(epochs=FOREVER)])
    engine.ensure_workers(store)
    wait_for(lambda: store.run(run_id).step > 0)
    store.request_stop(run_id)
    asked = time.monotonic()
    wait_for(lambda: store.state(run_id) is RunState.CANCELLED)
    assert time.monotonic() - asked < 5


def test_a_worker_that_does_not_stop_is_ended(store: Store, engine: LocalEngine) -> None:
    (run_id,) = store.add_runs([config(epochs=FOREVER)])
    engine.ensure_workers(store)
    wait_for(lambda: store.run(run_id).step > 0)
    owner = owner_of(store, run_id)
    os.kill(owner.pid, signal.SIGSTOP)  # it can do nothing now
    store.request_stop(run_id)
    assert reap(store) == []
    assert store.state(run_id) is RunState.CANCELLING
    soon = later(store, 25)
    assert reap(soon) == []
    assert store.state(run_id) is RunState.CANCELLED
    assert "killed" in next(event.message for event in store.events(run_id) if event.kind == "warning")
    wait_for(lambda: not is_alive(owner))
    soon.close()


def test_sigterm_is_a_polite_stop(store: Store, engine: LocalEngine) -> None:
    first, second = store.add_runs([config(epochs=FOREVER), config(seed=2)])
    engine.ensure_workers(store)
    wait_for(lambda: store.run(first).step > 0)
    os.kill(owner_of(store, first).pid, signal.SIGTERM)
    wait_for(lambda: store.state(first) is RunState.CANCELLED)
    wait_for(lambda: engine.live_workers(store) == 0)
    assert store.state(second) is RunState.QUEUED


def test_ctrl_c_leaves_workers_alive(store: Store) -> None:
    (run_id,) = store.add_runs([config(epochs=FOREVER)])
    program = (
        "import signal, sys, time\n"
        # Where the tests run in a shell's background, Ctrl-C is ignored from birth.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from core.store import Store\n"
        "from jobs.engines.local import LocalEngine\n"
        "store = Store.open()\n"
        "LocalEngine((sys.executable, '-m', 'tests.small_training')).ensure_workers(store)\n"
        "time.sleep(60)\n"
    )
    # The terminal's Ctrl-C goes to the whole group of the program that it runs.
    parent = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, start_new_session=True, stderr=subprocess.DEVNULL
    )
    wait_for(lambda: store.run(run_id).step > 0)
    os.killpg(parent.pid, signal.SIGINT)
    parent.wait(timeout=10)
    step = store.run(run_id).step
    wait_for(lambda: store.run(run_id).step > step + 5)
    assert is_alive(owner_of(store, run_id))
    assert store.state(run_id) is RunState.RUNNING


def test_a_surplus_worker_ends_at_once(store: Store) -> None:
    (run_id,) = store.add_runs([config()])
    with free_slot(store.url) as slot:
        assert slot is not None
        assert taken_slots(store.url) == {0: this_process()}
        with free_slot(store.url, patience_s=0) as second:
            assert second is None
        ended = subprocess.run(SMALL_WORKER, cwd=ROOT, timeout=20, check=False)
        assert ended.returncode == 0
    assert store.state(run_id) is RunState.QUEUED
    assert taken_slots(store.url) == {}


def test_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "gpu_count", lambda: 0)
    assert slot_count() == 1
    assert slots.Slot(0).device == "auto"
    monkeypatch.setattr(slots, "gpu_count", lambda: 4)
    assert slot_count() == 4
    assert slots.Slot(2).device == "cuda:2"
    monkeypatch.setenv("MRNLAB_SLOTS", "6")
    assert slot_count() == 6
    assert slots.Slot(5).device == "cuda:1"
    for wrong in ("0", "-1", "many"):
        monkeypatch.setenv("MRNLAB_SLOTS", wrong)
        with pytest.raises(MRNLabError, match="MRNLAB_SLOTS"):
            slot_count()


def test_gpus_are_counted_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU 0: H200 (UUID: a)'\necho 'GPU 1: H200 (UUID: b)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    count = slots.gpu_count.__wrapped__
    assert count() == 2
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert count() == 1
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert count() == 0
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    program.write_text("#!/bin/sh\nexit 9\n")
    assert count() == 0


def test_processes_are_told_apart() -> None:
    mine = this_process()
    assert is_here(mine)
    assert is_alive(mine)
    assert not is_here(dataclasses.replace(mine, host="elsewhere"))
    assert not is_alive(dataclasses.replace(mine, boot_id="another boot"))
    assert not is_alive(dataclasses.replace(mine, process_started=mine.process_started - 100))
    child = subprocess.Popen([sys.executable, "-c", ""])
    wait_for(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
    assert not is_alive(dataclasses.replace(mine, pid=child.pid))
    child.wait()
    assert not is_alive(dataclasses.replace(mine, pid=child.pid))


def test_an_engine_that_cannot_start_workers_says_so(store: Store, tmp_path: Path) -> None:
    store.add_runs([config()])
    with pytest.raises(MRNLabError, match="no worker could be started"):
        LocalEngine((str(tmp_path / "no-python"),)).ensure_workers(store)
    assert store.counts()[RunState.QUEUED] == 1


def test_the_engine_of_a_process_is_one() -> None:
    assert default_engine() is default_engine()
