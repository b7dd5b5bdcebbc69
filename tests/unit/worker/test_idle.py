"""Workers that wait for another run: they take it, and end where they must not train any more."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import subprocess
import sys
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from core.errors import MRNLabError
from core.settings import seconds
from core.store import ENDED, RunState, Store
from jobs.worker.idle import preload, release_memory, starts_ahead
from jobs.worker.process import is_alive
from jobs.worker.slots import taken_slots
from tests.making import config
from tests.small_training import worker
from tests.supervised import FOREVER, freeze, owner_of, supervised, wait_for

LONG = 600.0


def test_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MRNLAB_LINGER_S", "MRNLAB_HANG_S"):
        monkeypatch.delenv(name, raising=False)
    assert (seconds("MRNLAB_HANG_S"), seconds("MRNLAB_LINGER_S")) == (900, 300)
    assert starts_ahead()
    monkeypatch.setenv("MRNLAB_LINGER_S", "0")
    assert not starts_ahead()
    for name, more in (("MRNLAB_LINGER_S", ()), ("MRNLAB_HANG_S", ("0", "0.1"))):
        for wrong in ("soon", "-1", "inf", "nan", *more):
            monkeypatch.setenv(name, wrong)
            with pytest.raises(MRNLabError, match=f"{name} is '{wrong}'; set it to the seconds"):
                seconds(name)


def test_a_worker_that_finds_no_run_imports_what_one_needs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    preload()
    assert "core.training.trainer" in sys.modules
    assert caplog.messages == ["Ready for a run."]


class _Model:
    def __init__(self) -> None:
        self.itself = self


def test_what_a_run_leaves_in_cycles_is_gone_when_the_next_begins() -> None:
    left: list[weakref.ref[_Model]] = []
    freed: list[bool] = []

    def train(*_: Any, **__: Any) -> SimpleNamespace:
        freed.extend(model() is None for model in left)
        left.append(weakref.ref(_Model()))
        assert left[-1]() is not None  # only a collection frees it
        return SimpleNamespace(stopped=False, best_epoch=0, steps=1)

    with contextlib.closing(Store.open("sqlite://")) as store:
        store.add_runs([config(seed=1), config(seed=2), config(seed=3)])
        assert worker(store, train=train).work(linger_s=0) == 3
    assert freed == [True, True, True]
    release_memory()
    kept = gc.get_freeze_count()
    assert kept > 10_000
    release_memory()
    assert gc.get_freeze_count() <= kept  # frozen once: what comes later is collected


_ENDS_BETWEEN = """
import sys
from jobs.worker.loop import Worker, main
from tests.making import OWNER

class Ends(Worker):
    def work(self):  # somebody queues a run just as the worker ends
        self._store.unpause_queue()
        return 0

sys.exit(main(lambda store, slot: Ends(store, OWNER)))
"""


def test_what_was_queued_as_a_worker_ended_goes_to_another_process() -> None:
    with contextlib.closing(Store.open()) as store:
        store.pause_queue()
        (run_id,) = store.add_runs([config()])
        environment = os.environ | {"MRNLAB_LINGER_S": str(LONG)}
        command = [sys.executable, "-c", _ENDS_BETWEEN]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, store.state(run_id)) == (1, RunState.QUEUED), done.stderr


@pytest.mark.slow
def test_one_that_waits_takes_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRNLAB_LINGER_S", str(LONG))
    monkeypatch.setenv("MRNLAB_SLOTS", "2")
    with supervised() as (store, engine):
        engine.expect_run(store)
        engine.expect_run(store)
        wait_for(lambda: len(taken_slots(store.url)) == 1)
        for seed in (1, 2):
            (run_id,) = store.add_runs([config(seed=seed, epochs=1)])
            assert engine.ensure_workers(store) == 0
            wait_for(lambda run_id=run_id: store.state(run_id) in ENDED)  # type: ignore[misc]
            assert {owner_of(store, run_id)} == set(taken_slots(store.url).values())
        # One waits for a run, two are queued: one more is needed.
        store.add_runs([config(epochs=FOREVER), config(seed=2, epochs=FOREVER)])
        wait_for(lambda: engine.ensure_workers(store) == 1)
        wait_for(lambda: len(taken_slots(store.url)) == 2)


@pytest.mark.slow
def test_one_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRNLAB_LINGER_S", str(LONG))
    monkeypatch.setenv("MRNLAB_SLOTS", "2")
    now = 0.0
    with supervised(clock=lambda: now) as (store, engine):
        engine.expect_run(store)
        wait_for(lambda: len(taken_slots(store.url)) == 1)
        (owner,) = taken_slots(store.url).values()
        freeze(store, owner.pid)
        (run_id,) = store.add_runs([config(epochs=1)])
        assert engine.ensure_workers(store) == 0
        now = 61.0
        assert engine.ensure_workers(store) == 1
        wait_for(lambda: store.state(run_id) is RunState.SUCCEEDED)
        assert is_alive(owner)
