"""Workers and supervisors as real processes: killed, hung, told to end, left alone by Ctrl-C.

They train something small. In tests of faults nobody looks meanwhile: only the supervisor watches.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.errors import LossCause, MRNLabError
from core.recording.owner import this_process
from core.store import ENDED, ErrorInfo, MetricKey, RunState, Store
from jobs.engines.local import LocalEngine
from jobs.queue.maintenance import QueueMaintenance
from jobs.queue.submit import queue_runs
from jobs.worker import devices, timeout
from jobs.worker.devices import fixed_slots
from jobs.worker.process import ProcessStatus, describe_exit, is_alive, process_status
from jobs.worker.reaper import reap
from jobs.worker.slots import Slot, free_slot, taken_slots
from jobs.worker.start import start
from jobs.worker.timeout import ProgressFile, ProgressTimeout, workers_folder
from tests.making import Clock, config
from tests.patience import PATIENCE_S
from tests.small_training import HANGS, STOP_ONE, STOPPED_IN_A_COMMIT, STOPPED_IN_A_WRITE
from tests.supervised import (
    FOREVER,
    SMALL_WORKER,
    freeze,
    owner_of,
    small_engine,
    supervised,
    wait_for,
    watchers,
)
from tests.unit.conftest import error_of

ROOT = Path(__file__).resolve().parents[3]
WITHIN_S = 60.0
HUNG_FOR_3_S = "made no progress for 3 s although its process lived; it was ended."


@pytest.fixture
def workshop(laboratory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Store, LocalEngine]]:
    monkeypatch.setenv("MRNLAB_LINGER_S", "0.5")
    with supervised() as store_and_engine:
        yield store_and_engine


@pytest.fixture
def store(workshop: tuple[Store, LocalEngine]) -> Store:
    return workshop[0]


@pytest.fixture
def engine(workshop: tuple[Store, LocalEngine]) -> LocalEngine:
    return workshop[1]


def _zombies() -> set[int]:
    return {child.pid for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE}


def test_one_worker_trains_all_runs_and_ends(store: Store, engine: LocalEngine) -> None:
    before = _zombies()  # other tests' children are none of ours
    ids = store.add_runs([config(seed=seed, epochs=1) for seed in (1, 2, 3)])
    assert engine.ensure_workers(store) == 1
    assert engine.ensure_workers(store) == 0
    # Another dashboard on the same store starts no worker either, once it can see ours.
    wait_for(lambda: len(taken_slots(store.url)) == 1)
    assert small_engine().ensure_workers(store) == 0
    assert engine.live_workers(store) == small_engine().live_workers(store) == 1
    wait_for(lambda: all(store.state(run_id) in ENDED for run_id in ids))
    assert {store.state(run_id) for run_id in ids} == {RunState.SUCCEEDED}
    assert len({owner_of(store, run_id) for run_id in ids}) == 1
    log = store.run(ids[0]).log
    assert log is not None
    assert "Epoch 1" in Path(log).read_text()
    wait_for(lambda: engine.live_workers(store) == 0)
    assert _zombies() <= before


def test_a_worker_that_does_not_stop_is_ended(store: Store, engine: LocalEngine) -> None:
    (run_id,) = store.add_runs([config(epochs=FOREVER)])
    engine.ensure_workers(store)
    wait_for(lambda: store.run(run_id).step > 0)
    owner = owner_of(store, run_id)
    freeze(store, owner.pid)
    store.request_stop(run_id)
    assert reap(store) == []
    assert store.state(run_id) is RunState.CANCELLING
    with contextlib.closing(Store.open(store.url, clock=lambda: time.time() + 200)) as later:
        assert reap(later) == []
    assert store.state(run_id) is RunState.CANCELLED
    assert "killed" in next(event.message for event in store.events(run_id) if event.kind == "warning")
    wait_for(lambda: not is_alive(owner))


@pytest.mark.slow
def test_workers_outlive_the_program_that_started_them(store: Store) -> None:
    """Ctrl-C, which goes to the whole group of the program that a terminal runs, and a kill of that group."""
    (run_id,) = store.add_runs([config(epochs=FOREVER)])
    program = (
        "import signal, time\n"
        # Where the tests run in a shell's background, Ctrl-C is ignored from birth.
        "signal.signal(signal.SIGINT, lambda *_: print('interrupted', flush=True))\n"
        "from core.store import Store\n"
        "from tests.supervised import small_engine\n"
        "small_engine().ensure_workers(Store.open())\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    wait_for(lambda: store.run(run_id).step > 0)
    for number in (signal.SIGINT, signal.SIGKILL):
        os.killpg(parent.pid, number)
        if number == signal.SIGINT:
            assert parent.stdout.readline() == "interrupted\n"
        else:
            assert parent.wait(timeout=PATIENCE_S) == -signal.SIGKILL
        step = store.run(run_id).step
        wait_for(lambda step=step: store.run(run_id).step > step + 5)  # type: ignore[misc]
        assert is_alive(owner_of(store, run_id))
        assert store.state(run_id) is RunState.RUNNING
    parent.stdout.close()


def test_a_surplus_worker_ends_at_once(store: Store) -> None:
    (run_id,) = store.add_runs([config()])
    with free_slot(store.url) as slot:
        assert slot is not None
        assert taken_slots(store.url) == {0: this_process()}
        with free_slot(store.url, patience_s=0) as second:
            assert second is None
        ended = subprocess.run(SMALL_WORKER, cwd=ROOT, timeout=PATIENCE_S, check=False)
        assert ended.returncode == 0
    assert store.state(run_id) is RunState.QUEUED
    assert taken_slots(store.url) == {}


def test_a_worker_in_another_container_takes_no_slot_of_this_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same home: it may hang and hold it for good, and cannot be ended from here."""
    boot, _namespaces, machine = this_process().boot_id.split("/")
    with contextlib.ExitStack() as elsewhere:
        with monkeypatch.context() as container:
            container.setattr(timeout, "boot_id", lambda: f"{boot}/01234567/{machine}", raising=False)
            assert elsewhere.enter_context(free_slot(store.url)) is not None
        with free_slot(store.url, patience_s=0) as slot:
            assert slot is not None
            assert taken_slots(store.url) == {0: this_process()}


@pytest.mark.slow
def test_workers_that_find_nothing_to_do_are_started_ever_less_often(store: Store) -> None:
    clock = Clock(0.0)
    starts: list[float] = []

    class NotedEngine(LocalEngine):
        """Notes when a worker is started: it may end before anyone sees it live."""

        def ensure_workers(self, store: Store) -> int:
            started = super().ensure_workers(store)
            starts.extend([clock.now] * started)
            return started

    engine = NotedEngine((sys.executable, "-c", ""), clock)
    maintenance = QueueMaintenance(store, engine, clock)
    store.add_runs([config(seed=1)])

    def starts_until(end: float) -> list[float]:
        starts.clear()
        while clock.now < end:
            maintenance.maintain()
            wait_for(lambda: engine.live_workers(store) == 0)
            clock.now += 2
        return starts

    assert starts_until(60) == [0, 2, 6, 14, 30]
    with pytest.raises(MRNLabError, match="5 workers ended right after their start"):
        maintenance.check_starts()
    assert starts_until(1200)[-2:] == [810, 1110]
    assert store.claim(this_process()) is not None  # workers do start
    store.add_runs([config(seed=2)])
    assert starts_until(1204) == [1200, 1202]
    maintenance.check_starts()


def test_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpu_count", lambda: 0)
    monkeypatch.setattr(devices, "core_count", lambda: 1)
    assert fixed_slots() == 1
    monkeypatch.setattr(devices, "core_count", lambda: 16)
    assert fixed_slots() is None
    assert Slot(0).device == "auto"
    monkeypatch.setattr(devices, "gpu_count", lambda: 4)
    assert fixed_slots() == 4
    assert Slot(2).device == "cuda:2"
    monkeypatch.setenv("MRNLAB_RUNS_PER_GPU", "3")
    assert fixed_slots() == 12
    assert [Slot(number).device for number in (0, 2, 3, 11)] == ["cuda:0", "cuda:0", "cuda:1", "cuda:3"]
    monkeypatch.delenv("MRNLAB_RUNS_PER_GPU")
    monkeypatch.setenv("MRNLAB_SLOTS", "6")
    assert fixed_slots() == 6
    assert Slot(5).device == "cuda:1"
    for name in ("MRNLAB_SLOTS", "MRNLAB_RUNS_PER_GPU"):
        for wrong in ("0", "-1", "many"):
            monkeypatch.setenv(name, wrong)
            with pytest.raises(MRNLabError, match=f"{name} is '{wrong}'"):
                fixed_slots()
        monkeypatch.delenv(name)


_TWO_GPUS = """#!/bin/sh
echo 'GPU 0: NVIDIA H200 (UUID: GPU-aaaa-1)'
echo 'GPU 1: NVIDIA H200 (UUID: GPU-bbbb-2)'
echo '  MIG 1g.18gb     Device  0: (UUID: MIG-cccc-3)'
echo '  MIG 1g.18gb     Device  1: (UUID: MIG-dddd-4)'
"""


def test_gpus_are_counted_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(_TWO_GPUS)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    count = devices.gpu_count.__wrapped__
    assert count() == 2
    visible = {
        "1": 1, "0,1": 2, "1, 0": 2, "": 0, "-1": 0, "0,-1,1": 1, "7": 0, "0,7,1": 1, "0,0": 1,
        "GPU-bbbb": 1, "GPU-bbbb-2,GPU-aaaa-1": 2, "GPU-eeee": 0, "MIG-cccc-3,MIG-dddd-4": 1,
    }  # fmt: skip
    for named, expected in visible.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
        assert count() == expected, named
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    program.write_text("#!/bin/sh\nexit 9\n")
    assert count() == 0


def test_processes_are_told_apart() -> None:
    mine = this_process()
    boot, namespaces, machine = mine.boot_id.split("/")
    expected = {
        mine.boot_id: ProcessStatus.ALIVE,
        f"another/{namespaces}/{machine}": ProcessStatus.REBOOTED,
        f"another//{machine}": ProcessStatus.REBOOTED,
        "another boot": ProcessStatus.REBOOTED,
        # A container with its host's name, and a machine with ours: our process numbers say nothing of them.
        f"{boot}/01234567/{machine}": ProcessStatus.ELSEWHERE,
        f"another/{namespaces}/01234567": ProcessStatus.ELSEWHERE if machine else ProcessStatus.REBOOTED,
        boot: ProcessStatus.ALIVE,
    }
    for boot_id, status in expected.items():
        assert process_status(dataclasses.replace(mine, boot_id=boot_id)) is status, boot_id
    assert process_status(dataclasses.replace(mine, host="elsewhere")) is ProcessStatus.ELSEWHERE
    child = subprocess.Popen([sys.executable, "-c", ""])
    wait_for(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
    gone: list[dict[str, Any]] = [{"process_started": mine.process_started - 100}, {"pid": child.pid}]
    assert not any(is_alive(dataclasses.replace(mine, **changes)) for changes in gone)
    child.wait()
    assert not is_alive(dataclasses.replace(mine, pid=child.pid))


def test_exits_in_words() -> None:
    words = {
        -9: "was ended by SIGKILL (the system kills the largest process when memory runs out)",
        -15: "was ended by SIGTERM",
        -65: "was ended by signal 65",
        3: "ended with exit code 3",
        None: "ended without a word",
    }
    assert {code: describe_exit(code) for code in words} == words


def test_waiting_threads_of_workers_sleep_soon(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    environments: list[dict[str, str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *_, env, **__: environments.append(env))
    start(["worker"], store.url)
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    start(["worker"], store.url)
    assert [environment["GOMP_SPINCOUNT"] for environment in environments] == ["30000", "7"]


def test_an_engine_that_cannot_start_workers_says_so(store: Store, tmp_path: Path) -> None:
    store.add_runs([config()])
    with pytest.raises(MRNLabError, match="no worker could be started"):
        LocalEngine((str(tmp_path / "no-python"),)).ensure_workers(store)
    assert store.counts()[RunState.QUEUED] == 1


def training(store: Store, engine: LocalEngine, run_id: int) -> int:
    """The process that trains the run, once it does."""
    engine.ensure_workers(store)
    wait_for(lambda: store.run(run_id).step > 3)
    return owner_of(store, run_id).pid


def supervisor_of(pid: int) -> psutil.Process:
    wait_for(lambda: len(watchers(pid)) == 1)
    return watchers(pid)[0]


def loss_of(store: Store, run_id: int) -> ErrorInfo:
    """Why the run is lost, once that is found, which must be soon."""
    wait_for(lambda: store.state(run_id) is RunState.LOST, WITHIN_S)
    return error_of(store, run_id)


def history(store: Store, run_id: int) -> list[str]:
    return [event.message for event in store.events(run_id)]


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_run_only(store: Store, engine: LocalEngine) -> None:
    """The queue goes on, and a run with retries is taken up again."""
    (first,) = store.add_runs([config(epochs=FOREVER)])
    (retried,) = store.add_runs([config(epochs=FOREVER, seed=2)], retries=1)
    pid = training(store, engine, first)
    os.kill(pid, signal.SIGKILL)
    killed = time.time()
    error, run = loss_of(store, first), store.run(first)
    assert run.finished_at is not None
    assert run.finished_at.timestamp() - killed < 5
    ended = f"The worker of run {first} is gone: its process {pid} was ended by SIGKILL ("
    assert error.message.startswith(ended)
    assert error.exit_code == -signal.SIGKILL
    # What it had acknowledged is there, without a gap.
    (loss,) = store.metrics([first], MetricKey("", "train", "loss"))
    assert loss.step.tolist() == list(range(1, run.step + 1))
    wait_for(lambda: store.run(retried).step > 0)
    pid = owner_of(store, retried).pid
    os.kill(pid, signal.SIGSEGV)
    wait_for(lambda: store.run(retried).attempt == 2 and store.state(retried) is RunState.RUNNING)
    assert owner_of(store, retried).pid != pid
    cause = "was ended by SIGSEGV (a fault in compiled code)"
    assert any(cause in message for message in history(store, retried))
    store.request_stop(retried)
    wait_for(lambda: store.state(retried) is RunState.CANCELLED)
    wait_for(lambda: engine.live_workers(store) == 0)


@pytest.mark.slow
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
    assert loss_of(store, second).message.endswith("ended without a word.")
    wait_for(lambda: store.state(third) is RunState.SUCCEEDED)


@pytest.mark.slow
def test_runs_share_the_cores(store: Store, engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    if fixed_slots() is not None:
        pytest.skip("runs share cores only where there are several, and no GPU")
    ids = queue_runs(store, [config(epochs=FOREVER, seed=seed) for seed in (1, 2, 3)], engine=engine)
    assert engine.ensure_workers(store) == 2
    wait_for(lambda: [store.state(run_id) is RunState.RUNNING for run_id in ids] == [True, True, False])
    assert len({owner_of(store, run_id) for run_id in ids[:2]}) == 2
    assert [run.threads for run in store.runs(ids)] == [1, 1, 1]
    store.request_stop(ids[0])
    wait_for(lambda: store.state(ids[2]) is RunState.RUNNING)
    assert store.state(ids[1]) is RunState.RUNNING
    for run_id in ids[1:]:
        store.request_stop(run_id)
    wait_for(lambda: engine.live_workers(store) == 0)
    # One that is alone takes both cores; the next waits until it has ended, whoever starts its worker.
    (alone,) = queue_runs(store, [config(epochs=FOREVER, seed=4, lambda_=0.5)], engine=engine)
    engine.ensure_workers(store)
    wait_for(lambda: store.state(alone) is RunState.RUNNING)
    following = queue_runs(store, [config(seed=seed, lambda_=0.7) for seed in (1, 2)], engine=engine)
    assert [run.threads for run in store.runs([*following, alone])] == [1, 1, 2]
    assert engine.ensure_workers(store) == 0
    store.request_stop(alone)
    wait_for(lambda: all(store.state(run_id) is RunState.SUCCEEDED for run_id in following))


@pytest.mark.slow
def test_told_to_end(store: Store, engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM and SIGINT, to a supervisor and to a worker; and twice, where the worker hangs."""
    monkeypatch.setenv("MRNLAB_SLOTS", "5")
    # The hung one comes last: until it is told to end it takes a core.
    *ids, hung_id = store.add_runs([config(epochs=FOREVER, seed=seed) for seed in (1, 2, 3, 4, HANGS)])
    *workers, hung = (psutil.Process(training(store, engine, run_id)) for run_id in (*ids, hung_id))
    (waiting,) = store.add_runs([config(seed=5)])
    supervisor_of_hung = supervisor_of(hung.pid)
    supervisor_of_hung.send_signal(signal.SIGINT)
    numbers = (signal.SIGTERM, signal.SIGINT) * 2
    targets = [*(supervisor_of(worker.pid) for worker in workers[:2]), *workers[2:]]
    for target, number in zip(targets, numbers, strict=True):
        target.send_signal(number)
    wait_for(lambda: all(store.state(run_id) is RunState.CANCELLED for run_id in ids))
    for run_id in ids:
        assert any(text.startswith("Its worker was told to end.") for text in history(store, run_id)), run_id
    assert hung.is_running()
    supervisor_of_hung.send_signal(signal.SIGINT)
    forced = "was ended by force, for it was told to end a second time."
    assert loss_of(store, hung_id).message.endswith(forced)
    wait_for(lambda: engine.live_workers(store) == 0)
    assert store.state(waiting) is RunState.QUEUED


@pytest.mark.slow
def test_a_hung_worker_is_ended(store: Store, engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is busy for ever, and one that the system has stopped."""
    monkeypatch.setenv("MRNLAB_HANG_S", "3")
    monkeypatch.setenv("MRNLAB_SLOTS", "2")
    busy, stopped = store.add_runs([config(epochs=FOREVER, seed=HANGS), config(epochs=FOREVER)])
    for run_id in (busy, stopped):
        training(store, engine, run_id)
    owners = {run_id: owner_of(store, run_id) for run_id in (busy, stopped)}
    freeze(store, owners[stopped].pid)
    (waiting,) = store.add_runs([config(seed=2, epochs=1)])
    for run_id in owners:
        assert loss_of(store, run_id).message.endswith(HUNG_FOR_3_S)
    wait_for(lambda: not any(map(is_alive, owners.values())))
    wait_for(lambda: store.state(waiting) is RunState.SUCCEEDED)


@pytest.mark.slow
@pytest.mark.parametrize("is_supervised", [True, False])
def test_a_worker_that_hangs_before_its_first_run_is_ended(
    store: Store, engine: LocalEngine, laboratory: Path, monkeypatch: pytest.MonkeyPatch, is_supervised: bool
) -> None:
    """By its supervisor, or by whoever looks after the queue where the supervisor has died."""
    monkeypatch.setenv("MRNLAB_HANG_S", "3")
    marker = laboratory / "stop one"
    marker.touch()
    monkeypatch.setenv(STOP_ONE, str(marker))
    *python, supervisor, module = SMALL_WORKER
    stopped = start((*python, supervisor, module) if is_supervised else (*python, module), store.url)
    wait_for(lambda: len(taken_slots(store.url)) == 1 and not marker.exists())
    (owner,) = taken_slots(store.url).values()
    (waiting,) = store.add_runs([config(epochs=1)])
    if not is_supervised:
        wait_for(lambda: stopped.poll() is None and engine.ensure_workers(store) > 0)
    wait_for(lambda: store.state(waiting) is RunState.SUCCEEDED)
    assert not is_alive(owner)
    stopped.wait(timeout=PATIENCE_S)


def test_a_worker_may_take_a_minute_to_its_first_move(store: Store) -> None:
    """Its imports may take long on a busy machine, and nothing can be touched meanwhile."""
    clock = Clock(0.0)
    progress = ProgressFile(store.url, this_process())
    watched = ProgressTimeout(progress, clock)

    def hung_after(looks: int) -> list[bool]:
        found = []
        for _ in range(looks):
            clock.now += 10
            found.append(watched.is_hung(3.0))
        return found

    assert hung_after(7) == [False] * 6 + [True]
    progress.touch()
    assert hung_after(2) == [False, True]
    progress.remove()
    assert hung_after(8) == [False] * 7 + [True]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [STOPPED_IN_A_WRITE, STOPPED_IN_A_COMMIT])
def test_a_worker_that_was_stopped_with_the_store_locked_is_ended(
    store: Store, engine: LocalEngine, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """By its supervisor, which needs no store for that, and the history says so."""
    monkeypatch.setenv("MRNLAB_HANG_S", "3")
    stopped, waiting = store.add_runs([config(epochs=FOREVER, seed=seed), config(epochs=1)])
    engine.ensure_workers(store)
    error = loss_of(store, stopped)
    assert error.type == LossCause.HUNG
    assert error.message.endswith(HUNG_FOR_3_S)
    wait_for(lambda: store.state(waiting) is RunState.SUCCEEDED)
    wait_for(lambda: engine.live_workers(store) == 0)
    assert not list(workers_folder(store.url).glob("progress-*"))


@pytest.mark.slow
def test_a_supervisor_that_finds_the_store_locked_ends_the_worker(
    store: Store, engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It watches the worker before it has opened the store."""
    monkeypatch.setenv("MRNLAB_HANG_S", "3")
    (stopped,) = store.add_runs([config(epochs=FOREVER, seed=STOPPED_IN_A_COMMIT)])
    *python, _, module = SMALL_WORKER
    worker = start((*python, module), store.url)
    try:
        wait_for(lambda: psutil.Process(worker.pid).status() == psutil.STATUS_STOPPED)
        supervisor = start((*SMALL_WORKER[:-1], "--adopt", str(worker.pid), module), store.url)
        error = loss_of(store, stopped)
    finally:
        worker.kill()
        worker.wait()
    assert error.type == LossCause.HUNG
    assert error.message.endswith(HUNG_FOR_3_S)
    assert supervisor.wait(timeout=PATIENCE_S) == 0


@pytest.mark.slow
def test_workers_that_cannot_even_start(
    store: Store, engine: LocalEngine, laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MRNLAB_TEST_IMPORT_FAULT", "1")
    (run_id,) = store.add_runs([config()])
    engine.ensure_workers(store)
    wait_for(lambda: engine.live_workers(store) == 0)
    output = (laboratory / "logs" / "workers.log").read_text()
    assert output.count("ImportError: libcudart.so.99") == 5
    assert "5 workers ended one after another before they had claimed a run" in output
    assert store.state(run_id) is RunState.QUEUED
