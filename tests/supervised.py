"""Supervised workers as real processes, for tests that kill them. They train something small."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil

from core.store import Owner, Store
from jobs.engines.local import LocalEngine
from jobs.worker.process import kill
from jobs.worker.slots import taken_slots
from tests.patience import PATIENCE_S

FOREVER = 1000
"""Epochs of a run that no test waits for."""

SMALL_WORKER = (sys.executable, "-m", "jobs.worker.supervisor", "tests.small_training")


def small_engine(
    module: str = "tests.small_training", clock: Callable[[], float] = time.monotonic
) -> LocalEngine:
    """Starts supervisors whose workers train so."""
    return LocalEngine((*SMALL_WORKER[:-1], module), clock)


def wait_for(condition: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Until the condition holds; fails where it does not in that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def owner_of(store: Store, run_id: int) -> Owner:
    """The process that trains the run."""
    owner = store.run(run_id).owner
    assert owner is not None
    return owner


def freeze(store: Store, pid: int) -> None:
    """Stops the process, while it does not hold the lock of the store.

    The signal stops one thread after another, so the lock is kept until all have stopped.
    """
    with store.transaction():
        os.kill(pid, signal.SIGSTOP)
        threads = [psutil.Process(thread.id) for thread in psutil.Process(pid).threads()]
        wait_for(lambda: all(thread.status() == psutil.STATUS_STOPPED for thread in threads))


def command_lines() -> dict[psutil.Process, list[str]]:
    """The children of this process with their command lines; not the ended ones of other tests."""
    found = {}
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            found[child] = child.cmdline()
    return found


def watchers(pid: int) -> list[psutil.Process]:
    """The supervisors of that worker."""
    supervisors = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            is_above = process.pid == psutil.Process(pid).ppid() or words[-3:-1] == ["--adopt", str(pid)]
            if is_above and "jobs.worker.supervisor" in words:
                supervisors.append(process)
    return supervisors


def end_all(store: Store) -> None:
    """End the workers of that store on this machine that hold a slot, and their supervisors."""
    store.pause_queue()
    while owners := taken_slots(store.url).values():
        above = [watcher for owner in owners for watcher in watchers(owner.pid)]
        for owner in owners:
            kill(owner)
        _gone, alive = psutil.wait_procs(above, timeout=PATIENCE_S)
        assert not alive


@contextmanager
def supervised(
    module: str = "tests.small_training", clock: Callable[[], float] = time.monotonic
) -> Iterator[tuple[Store, LocalEngine]]:
    """The laboratory's own store, which workers open too, and their engine; all are ended with the block."""
    store, engine = Store.open(), small_engine(module, clock)

    def ended() -> bool:
        end_all(store)  # again and again: one that has just been started takes its slot later
        return engine.live_workers(store) == 0

    try:
        yield store, engine
    finally:
        wait_for(ended)
        store.close()
