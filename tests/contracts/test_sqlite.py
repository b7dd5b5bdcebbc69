"""SQLite as many processes use it: its settings, its faults in words."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text

from core.errors import StoreError
from core.store import Store, engine
from tests.making import config


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'many.db'}"


def test_every_connection_is_set_up(url: str) -> None:
    store = Store.open(url)
    with store.transaction(write=False) as connection:
        found = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        }
    safe = engine.wal_is_safe(sqlite3.sqlite_version_info)
    assert found == {
        "journal_mode": "wal" if safe else "delete",
        "synchronous": 1 if safe else 2,
        "busy_timeout": 30_000,
        "foreign_keys": 1,
    }
    store.close()


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 45, 0), False),
        ((3, 50, 7), True),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 52, 0), True),
    ],
)
def test_wal_only_where_it_loses_nothing(version: tuple[int, int, int], safe: bool) -> None:
    assert engine.wal_is_safe(version) is safe


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
        with pytest.raises(StoreError, match=words) as told:
            Store.open(url)
        assert "\n" not in str(told.value)
        assert "secret" not in str(told.value)
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
