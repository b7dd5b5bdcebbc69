"""The engine and its SQLite settings, and database errors told in one sentence.

SQLite before 3.51.3 can lose commits in WAL mode when two connections write and checkpoint at the same
moment (sqlite.org/wal.html#walresetbug), so WAL is used only where the library has the fix.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from core.errors import StoreError

__all__ = ["BUSY_TIMEOUT_S", "make_engine", "parse_url", "translated_errors", "wal_is_safe"]

BUSY_TIMEOUT_S = 30
_MEMORY = (None, "", ":memory:")


def wal_is_safe(version: tuple[int, int, int]) -> bool:
    """Whether this version of SQLite has the fix of the WAL-reset bug (3.51.3, or its backports)."""
    return version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51) or (3, 44, 6) <= version < (3, 45)


def parse_url(text: str) -> URL:
    """The URL with a relative SQLite path made absolute, so that a worker elsewhere opens the same file."""
    try:
        url = make_url(text)
    except ArgumentError as error:
        raise StoreError(
            f"The store '{text}' is not a database URL; write it like sqlite:///runs.db."
        ) from error
    try:
        url.get_dialect()
    except (NoSuchModuleError, ImportError) as error:
        raise _no_driver(url, error) from error
    if url.get_backend_name() == "sqlite" and url.database not in _MEMORY:
        assert url.database is not None  # narrowed by the membership test above, which mypy cannot see
        if not url.database.startswith("file:"):
            url = url.set(database=str(Path(url.database).expanduser().resolve()))
    return url


def _no_driver(url: URL, error: Exception) -> StoreError:
    return StoreError(
        f"The store {url.render_as_string()} needs a database driver that is not installed ({error}); "
        "install it, or use SQLite: sqlite:///runs.db."
    )


def make_engine(url: URL) -> Engine:
    """An engine with the settings that many processes on one file need. Nothing is opened yet.

    Raises StoreError where the database's driver is not installed.
    """
    if url.get_backend_name() != "sqlite":
        try:
            return create_engine(url, pool_pre_ping=True)
        except ImportError as error:
            raise _no_driver(url, error) from error
    if url.database in _MEMORY:
        # One connection for all threads, lent to one at a time: the pool is then the lock.
        engine = create_engine(
            url,
            poolclass=QueuePool,
            pool_size=1,
            max_overflow=0,
            pool_timeout=BUSY_TIMEOUT_S,
            connect_args={"check_same_thread": False},
        )
    else:
        engine = create_engine(url, poolclass=QueuePool)
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _configure_sqlite(connection: Any, _record: Any) -> None:
    # Transactions are begun by `_begin_sqlite`, not by the driver, which would begin them too late.
    connection.isolation_level = None
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000}")
        wanted, synchronous = (
            ("wal", "NORMAL") if wal_is_safe(sqlite3.sqlite_version_info) else ("delete", "FULL")
        )
        present = cursor.execute("PRAGMA journal_mode").fetchone()[0]
        if present not in (wanted, "memory"):
            cursor.execute(f"PRAGMA journal_mode = {wanted}")
        cursor.execute(f"PRAGMA synchronous = {synchronous}")
        cursor.execute("PRAGMA foreign_keys = ON")
    finally:
        cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A deferred transaction that reads and then writes fails at once where another wrote between;
    # busy_timeout does not help it. IMMEDIATE waits its turn.
    write = connection.get_execution_options().get("write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


_REASONS = (
    ("database is locked", "is busy: another program has held it for {timeout} s; try again when it is done"),
    ("database table is locked", "is busy: another program holds it; try again when it is done"),
    ("not a database", "is not a store of MRN Lab; name another file, or move this one away"),
    ("malformed", "is damaged; move the file away, or put back a backup"),
    ("unable to open", "cannot be opened; check that its folder exists and that you may write there"),
    ("readonly", "cannot be written; check the rights on the file and its folder"),
    ("disk is full", "cannot be written, because the disk is full; free some space"),
    ("disk i/o", "cannot be read or written (disk error); check the disk and its free space"),
    (
        "no such table",
        "has lost its tables (was the file deleted or replaced?); start again to make a new one",
    ),
)


@contextmanager
def translated_errors(name: str) -> Iterator[None]:
    """Tells database errors as a StoreError of one sentence about the store of that name.

    Errors that only a fault of ours can cause (a violated constraint, bad SQL) pass unchanged.
    """
    try:
        yield
    except PoolTimeout as error:
        raise StoreError(
            f"The store {name} is busy: no connection was free in {BUSY_TIMEOUT_S} s."
        ) from error
    except DatabaseError as error:
        told = str(error.orig).lower()
        for mark, reason in _REASONS:
            if mark in told:
                raise StoreError(f"The store {name} {reason.format(timeout=BUSY_TIMEOUT_S)}.") from error
        if error.connection_invalidated:
            raise StoreError(
                f"The connection to the store {name} broke; check that its server runs."
            ) from error
        raise
