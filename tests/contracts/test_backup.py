"""A backup is a whole store, read beside the live one."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.errors import StoreError
from core.store import MetricKey, Store, back_up
from jobs.cli import app
from tests.making import claimed, config, fully_recorded, step_metrics
from tests.several import started

LOSS = MetricKey("", "train", "loss")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'runs.db'}"


def test_a_backup_is_the_store(url: str, tmp_path: Path) -> None:
    """With everything that a run can record, and the next number of one that is gone."""
    with contextlib.closing(Store.open(url)) as store:
        run_id = fully_recorded(store)
        store.add_keywords([run_id], ["Größer als λ"])
        store.pause_queue()
        store.delete_runs(store.add_runs([config(seed=2), config(seed=3)]))
        made = back_up(store, str(tmp_path / "copy.db"))
        assert (made.runs, made.size) == (1, made.file.stat().st_size)
        assert made.rows == sum(store.rows().values())
        with contextlib.closing(Store.open(f"sqlite:///{made.file}")) as copy:
            assert copy.health().problems == ()
            assert copy.rows() == store.rows()
            assert repr(copy.record(run_id)) == repr(store.record(run_id))
            assert copy.paused_since() == store.paused_since()
            assert copy.add_runs([config()]) == store.add_runs([config()])
    assert sorted(path.name for path in tmp_path.glob("*copy*")) == ["copy.db"]


def test_nothing_is_overwritten_by_accident(url: str, tmp_path: Path, postgres_url: str) -> None:
    precious = tmp_path / "precious.db"
    precious.write_text("Not yours.")
    with contextlib.closing(Store.open(url)) as store:
        store.add_runs([config()])
        for target, words in {
            str(precious): "already exists",
            str(tmp_path / "no" / "folder.db"): "cannot be written",
            postgres_url: "A backup is a file",
        }.items():
            with pytest.raises(StoreError, match=words):
                back_up(store, target)
        for target in ("runs.db", f"../{tmp_path.name}/runs.db"):
            with pytest.raises(StoreError, match="the store itself"):
                back_up(store, str(tmp_path / target), replace=True)
        assert precious.read_text() == "Not yours."
        back_up(store, str(precious), replace=True)
    with contextlib.closing(sqlite3.connect(precious)) as copy:
        assert copy.execute("SELECT count(*) FROM runs").fetchone() == (1,)
    with contextlib.closing(Store.open(postgres_url)) as server, pytest.raises(StoreError, match="pg_dump"):
        back_up(server, str(tmp_path / "server.db"))


def _write_on(url: str, run_id: int, acknowledged: Path, stop: Path) -> None:
    store = Store.open(url)
    step = 0
    while not stop.exists():
        store.add_metrics(run_id, [step_metrics(step + row) for row in range(20)])
        step += 20
        new = acknowledged.with_suffix(".new")
        new.write_text(str(step))
        os.replace(new, acknowledged)
        time.sleep(0.02)  # real ones write twice a second
    store.close()


def test_writers_keep_writing(url: str, tmp_path: Path, open_store: Callable[..., Store]) -> None:
    """All that was acknowledged before a backup began is in it, in whole batches; nothing stops meanwhile."""
    store = open_store(url)
    ids = [claimed(store) for _ in range(2)]
    written, stop = {run_id: tmp_path / f"acknowledged-{run_id}" for run_id in ids}, tmp_path / "stop"
    calls = [(url, run_id, written[run_id], stop) for run_id in ids]
    with started(_write_on, calls, stop=stop.touch) as wait:
        wait(lambda: all(path.exists() for path in written.values()))
        before = {run_id: int(path.read_text()) for run_id, path in written.items()}
        back_up(store, str(tmp_path / "copy.db"))
        wait(lambda: all(int(written[run_id].read_text()) > before[run_id] for run_id in ids))
    copy = open_store(f"sqlite:///{tmp_path / 'copy.db'}")
    for curve in copy.metrics(ids, LOSS):
        assert len(curve.step) >= before[curve.run_id]
        assert curve.step.tolist() == list(range(len(curve.step)))
        assert len(curve.step) % 20 == 0, "half of a batch was copied"


def test_the_verb(tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    first = CliRunner().invoke(app, ["backup", str(file)])
    assert (first.exit_code, first.stdout) == (0, "")
    assert first.stderr.startswith("0 runs, 0 rows, 0.1 MB: ")
    assert CliRunner().invoke(app, ["backup", str(file)]).exit_code == 2
    again = CliRunner().invoke(app, ["backup", str(file), "--force", "--json"])
    size = file.stat().st_size
    assert json.loads(again.stdout) == {"place": str(file), "runs": 0, "rows": 0, "bytes": size}
