"""Faults for the soak: real signals to real workers, a store held by someone else, stops and resumes."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil
from sqlalchemy import create_engine, text

from core.errors import MRNLabError
from core.store import Owner, Run, RunState, Store
from jobs import control
from jobs.processes import is_alive

__all__ = ["FAULTS", "Injected", "inject"]

_HELD_S = 3.0
_FROZEN_S = 3.0


@dataclass(frozen=True)
class Injected:
    """What was done. `killed` is the owner whose run must change its state; None where nobody died."""

    fault: str
    run_id: int
    killed: Owner | None


def _signalled(number: int) -> Callable[[Store, Run, Owner], Owner | None]:
    def send(_store: Store, _run: Run, owner: Owner) -> Owner | None:
        os.kill(owner.pid, number)
        return owner

    return send


def _kill_parent(_store: Store, _run: Run, owner: Owner) -> Owner | None:
    """The process that watches the worker; the worker goes on."""
    parent = psutil.Process(owner.pid).parent()
    if parent is not None and parent.pid not in (1, os.getpid()):
        parent.kill()
    return None


def _kill_both(_store: Store, _run: Run, owner: Owner) -> Owner | None:
    _kill_parent(_store, _run, owner)
    os.kill(owner.pid, signal.SIGKILL)
    return owner


def _freeze(_store: Store, _run: Run, owner: Owner) -> Owner | None:
    """The worker stands still for a while, as on a laptop whose lid is closed."""
    os.kill(owner.pid, signal.SIGSTOP)

    def thaw() -> None:
        if is_alive(owner):
            os.kill(owner.pid, signal.SIGCONT)

    threading.Timer(_FROZEN_S, thaw).start()
    return None


def _stop_and_resume(store: Store, run: Run, _owner: Owner) -> Owner | None:
    """A researcher changes their mind; the driver resumes it when it has stopped."""
    control.stop(store, [run.id])
    return None


def _hold_store(store: Store, _run: Run, _owner: Owner) -> Owner | None:
    """Another program holds the store, and all wait."""
    held = threading.Event()

    def hold() -> None:
        if store.url.startswith("sqlite"):
            path = store.url.removeprefix("sqlite:///")
            connection = sqlite3.connect(path, timeout=60, isolation_level=None)
            connection.execute("BEGIN EXCLUSIVE")
            held.set()
            time.sleep(_HELD_S)
            connection.execute("ROLLBACK")
            connection.close()
        else:
            engine = create_engine(store.url)
            with engine.begin() as connection:
                connection.execute(text("LOCK TABLE runs, metrics IN EXCLUSIVE MODE"))
                held.set()
                time.sleep(_HELD_S)
            engine.dispose()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    thread.join()
    return None


FAULTS: dict[str, Callable[[Store, Run, Owner], Owner | None]] = {
    "worker killed": _signalled(signal.SIGKILL),
    "worker crashed": _signalled(signal.SIGSEGV),
    "worker told to end": _signalled(signal.SIGTERM),
    "its parent killed": _kill_parent,
    "worker and parent killed": _kill_both,
    "worker frozen": _freeze,
    "stopped and resumed": _stop_and_resume,
    "store held": _hold_store,
}
# Deaths are what this is about; the rest comes now and then.
_WEIGHTS = {"worker killed": 6.0, "worker and parent killed": 3.0}


def inject(store: Store, draw: random.Random) -> Injected | None:
    """Does one fault to one of the runs that are being trained; None where none is, or it ended meanwhile."""
    training = [run for run in store.runs(states={RunState.RUNNING}) if run.owner is not None]
    if not training:
        return None
    run = draw.choice(training)
    assert run.owner is not None
    name = draw.choices(list(FAULTS), [_WEIGHTS.get(name, 1.0) for name in FAULTS])[0]
    try:
        return Injected(name, run.id, FAULTS[name](store, run, run.owner))
    except (ProcessLookupError, psutil.NoSuchProcess, MRNLabError):
        return None  # the run, or its worker, had just ended: nothing was done
