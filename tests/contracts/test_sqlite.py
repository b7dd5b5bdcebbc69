"""SQLite as many processes use it: its settings, its faults in words, a file that goes meanwhile."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from core.errors import StoreError, StoreReplaced
from core.recording.heartbeat import StopSignal
from core.recording.sink import StoreSink
from core.store import Store, engine
from tests.making import OWNER, claimed, config, step_metrics
from tests.supervised import wait_for


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'many.db'}"


def test_every_connection_is_set_up(store: Store) -> None:
    with store.transaction(write=False) as connection:
        settings = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        }
    safe = engine.wal_is_safe(sqlite3.sqlite_version_info)
    assert settings == {
        "journal_mode": "wal" if safe else "delete",
        "synchronous": 1 if safe else 2,
        "busy_timeout": 30_000,
        "foreign_keys": 1,
    }


def test_wal_only_where_it_loses_nothing() -> None:
    for version in ((3, 40, 1), (3, 44, 5), (3, 45, 0), (3, 51, 2)):
        assert not engine.wal_is_safe(version)
    for version in ((3, 44, 6), (3, 50, 7), (3, 51, 3), (3, 52, 0)):
        assert engine.wal_is_safe(version)


def test_what_cannot_be_opened_is_told(tmp_path: Path) -> None:
    text_file = tmp_path / "notes.db"
    text_file.write_text("These are my notes, and no database at all. " * 50)
    for url, words in {
        f"sqlite:///{text_file}": "is not a store of MRN Lab",
        f"sqlite:///{tmp_path / 'no' / 'folder.db'}": "cannot be opened; check that its folder exists",
        "sqlite//runs.db": "not a database URL",
        "nosuchdb://me:secret@host/name": "database driver that is not installed",
        "mysql+oursql://me:secret@host/name": "database driver that is not installed",
        "mysql+cymysql://me:secret@host/name": "database driver that is not installed",
    }.items():
        with pytest.raises(StoreError, match=words) as refused:
            Store.open(url)
        assert "\n" not in str(refused.value)
        assert "secret" not in str(refused.value)
    assert text_file.read_text().startswith("These are my notes")


def test_a_laboratory_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MRNLAB_HOME", str(tmp_path / "file" / "laboratory"))
    with pytest.raises(StoreError, match="set MRNLAB_HOME"):
        Store.open()


def test_damage_is_told(url: str, tmp_path: Path) -> None:
    store = Store.open(url)
    store.add_runs([config(seed=seed) for seed in range(50)])
    store.close()
    path = tmp_path / "many.db"
    content = bytearray(path.read_bytes())
    for page in range(4096, len(content), 4096):
        content[page : page + 64] = b"\xff" * 64
    path.write_bytes(bytes(content))
    with pytest.raises(StoreError, match="damaged"):
        Store.open(url).runs()


def test_relative_paths_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store.open("sqlite:///here.db")
    assert store.url == f"sqlite:///{tmp_path / 'here.db'}"
    store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "many.db"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with contextlib.closing(Store.open(url)) as opened:
        yield opened


def test_a_deleted_file_is_an_error_until_it_is_back(store: Store, path: Path) -> None:
    run_id = claimed(store)
    away = path.with_name("away.db")
    path.rename(away)
    for call in (lambda: store.add_metrics(run_id, [step_metrics(1)]), store.runs):
        with pytest.raises(StoreReplaced, match=r"many\.db was deleted or replaced while the store was open"):
            call()
    assert not path.exists()
    away.rename(path)
    store.add_metrics(run_id, [step_metrics(1)])
    assert store.last_metric_steps([run_id]) == {run_id: 1}


def test_a_change_of_a_file_deleted_meanwhile_is_not_acknowledged(store: Store, path: Path) -> None:
    run_id = claimed(store)

    def change() -> None:
        with store.transaction():
            store.add_metrics(run_id, [step_metrics(1)])
            path.unlink()

    with pytest.raises(StoreReplaced):
        change()


def test_a_file_that_took_its_place_is_left_alone(store: Store, path: Path) -> None:
    run_id = claimed(store)
    path.unlink()
    other = Store.open(f"sqlite:///{path}")
    other.add_runs([config(seed=5)], sweep="another laboratory")
    for call in (lambda: store.add_metrics(run_id, [step_metrics(2)]), store.runs):
        with pytest.raises(StoreReplaced):
            call()
    assert [run.sweep for run in other.runs()] == ["another laboratory"]
    assert other.metric_keys([run_id]) == []
    other.close()


def test_a_run_whose_store_is_another_fails_at_once(store: Store, path: Path) -> None:
    run_id = claimed(store)

    def wait(seconds: float) -> None:
        raise AssertionError("such a store does not come back")

    def train() -> None:
        with StoreSink(store, run_id, OWNER, StopSignal(), flush_s=60, sleep=wait) as sink:
            sink(step_metrics(1))
            wait_for(lambda: store.last_metric_steps([run_id]) == {run_id: 1})
            os.replace(backup, path)
            sink(step_metrics(2))

    backup = path.with_name("backup.db")
    Store.open(f"sqlite:///{backup}").close()
    with pytest.raises(StoreReplaced):
        train()
    with contextlib.closing(Store.open(f"sqlite:///{path}")) as other:
        assert other.runs() == []
