"""Workers that wait for another run: they take it, and end where they must not train any more."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import MRNLabError
from core.store import ENDED, RunState, Store
from jobs.engines.local import taken_slots
from jobs.worker.idle import Lingering, Program, linger_seconds, starts_ahead
from jobs.worker.loop import Worker
from jobs.worker.process import is_alive
from tests.making import OWNER, config
from tests.supervised import FOREVER, owner_of, supervised, wait_for

LONG = 600.0


def _worker(store: Store, folder: Path) -> Worker:
    return Worker(store, OWNER, lingering=Lingering(store, Program((folder,)), ahead=False))


def test_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MRNLAB_LINGER_S", raising=False)
    assert linger_seconds() == 300
    assert starts_ahead()
    monkeypatch.setenv("MRNLAB_LINGER_S", "0")
    assert linger_seconds() == 0
    assert not starts_ahead()
    for wrong in ("soon", "-1", "inf", "nan"):
        monkeypatch.setenv("MRNLAB_LINGER_S", wrong)
        with pytest.raises(MRNLabError, match=f"MRNLAB_LINGER_S is '{wrong}'; set it to the seconds"):
            linger_seconds()


def test_a_program_changes(tmp_path: Path) -> None:
    file = tmp_path / "part" / "module.py"
    file.parent.mkdir()
    file.write_text("a = 1")
    program = Program((tmp_path,))
    assert not program.has_changed()
    os.utime(file, (1, 1))
    assert program.has_changed()
    program = Program((tmp_path,))
    (tmp_path / "more.py").touch()
    assert program.has_changed()


def test_a_worker_whose_program_changes_trains_nothing_more(tmp_path: Path) -> None:
    with contextlib.closing(Store.open()) as store:
        worker = _worker(store, tmp_path)
        (tmp_path / "edited.py").touch()
        assert worker.work(LONG) == 0
        assert worker.is_outdated


def test_a_store_that_was_deleted_stays_so(tmp_path: Path) -> None:
    with contextlib.closing(Store.open(f"sqlite:///{tmp_path / 'runs.db'}")) as store:
        worker = _worker(store, tmp_path)
        assert not worker.train_next()  # its connection has the file open
        (tmp_path / "runs.db").unlink()
        lingering = Lingering(store, Program((tmp_path,)), ahead=False)
        assert not lingering()
        assert not (tmp_path / "runs.db").exists()


def test_a_worker_started_ahead_imports_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with contextlib.closing(Store.open()) as store:
        lingering = Lingering(store, Program((tmp_path,)), ahead=True)
        assert lingering()
        assert "core.training.trainer" in sys.modules
        lingering.trained()
        assert lingering()
        assert caplog.messages.count("Ready for a run.") == 1


_ENDS_BETWEEN = """
import sys
from pathlib import Path
from jobs.worker.idle import Lingering, Program
from jobs.worker.loop import Worker, main
from tests.making import OWNER

class Unpausing(Lingering):  # somebody queues a run just as the worker ends
    def __call__(self):
        goes_on = super().__call__()
        self._store.unpause_queue()
        return goes_on

def make(store, slot):
    program = Program((Path(sys.argv[1]),))
    Path(sys.argv[1], "edited.py").touch()
    return Worker(store, OWNER, lingering=Unpausing(store, program, ahead=False))

sys.exit(main(make))
"""


def test_what_was_queued_as_an_outdated_worker_ended_goes_to_another_process(tmp_path: Path) -> None:
    with contextlib.closing(Store.open()) as store:
        store.pause_queue()
        (run_id,) = store.add_runs([config()])
        done = subprocess.run(
            [sys.executable, "-c", _ENDS_BETWEEN, str(tmp_path)],
            env=os.environ | {"MRNLAB_LINGER_S": str(LONG)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, store.state(run_id)) == (1, RunState.QUEUED), done.stderr


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
        assert engine.ensure_workers(store) == 1
        wait_for(lambda: len(taken_slots(store.url)) == 2)


def test_one_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRNLAB_LINGER_S", str(LONG))
    monkeypatch.setenv("MRNLAB_SLOTS", "2")
    with supervised() as (store, engine):
        moment = 0.0
        monkeypatch.setattr(engine, "_clock", lambda: moment)
        engine.expect_run(store)
        wait_for(lambda: len(taken_slots(store.url)) == 1)
        (owner,) = taken_slots(store.url).values()
        os.kill(owner.pid, 19)  # SIGSTOP
        (run_id,) = store.add_runs([config(epochs=1)])
        assert engine.ensure_workers(store) == 0
        moment = 61.0
        assert engine.ensure_workers(store) == 1
        wait_for(lambda: store.state(run_id) is RunState.SUCCEEDED)
        assert is_alive(owner)
