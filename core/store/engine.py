"""The engine: what many processes on one SQLite file, or on one PostgreSQL, need to be set.

SQLite before 3.51.3 can lose commits in WAL mode when two connections write and checkpoint at the same
moment (sqlite.org/wal.html#walresetbug), so WAL is used only where the library has the fix.
"""

from __future__ import annotations

import re
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, ProgrammingError

from core.errors import StoreError
from core.paths import given_path
from core.plain_text import without_passwords

__all__ = [
    "BUSY_TIMEOUT_S",
    "check_connection",
    "make_engine",
    "parse_url",
    "shown",
    "store_file",
    "wal_is_safe",
]

BUSY_TIMEOUT_S = 30.0
# A file or a word, but no part of a URL.
_PLAIN_NAME = re.compile(r"[\w./~ -]{1,200}")
_MEMORY = (None, "", ":memory:")
# Two connections are kept by each process (its workers number hundreds), more are opened for a moment.
_KEPT, _MOMENTARY = 2, 10
_POSTGRES = {
    "application_name": "mrnlab",
    "connect_timeout": "10",
    # A server whose machine went away without a word is noticed within these seconds and milliseconds.
    "keepalives_idle": "20",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
}


def wal_is_safe(version: tuple[int, int, int]) -> bool:
    """Whether this version of SQLite has the fix of the WAL-reset bug (3.51.3, or its backports)."""
    return version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51) or (3, 44, 6) <= version < (3, 45)


def parse_url(text: str) -> URL:
    """The URL with a relative SQLite path made absolute, so that a worker elsewhere opens the same file.

    Raises StoreError where it is none, or names a database whose driver is not installed.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # Without its cause, and of a URL no more than the database's name: any other part may be a password.
        scheme, there, _ = text.partition("://")
        named = f"{scheme}://…" if there else text if _PLAIN_NAME.fullmatch(text) else "…"
        raise StoreError(
            f"The store '{named}' is not a database URL; write it like sqlite:///runs.db."
        ) from None
    if url.drivername == "postgres":  # as other programs of PostgreSQL have it
        url = url.set(drivername="postgresql")
    if "password" in url.query:
        url = url.set(password=str(url.query["password"])).difference_update_query(["password"])
    try:
        url.get_dialect()
    except (NoSuchModuleError, ImportError) as error:
        raise _no_driver(url, error) from error
    file = store_file(url)
    return url if file is None else url.set(database=str(file))


def store_file(url: URL) -> Path | None:
    """The file that a store of that URL is kept in; None for one in memory, or on a server."""
    name = url.database
    if url.get_backend_name() != "sqlite" or name is None or name in _MEMORY or name.startswith("file:"):
        return None
    return given_path(name).resolve()


def shown(url: URL) -> str:
    """The URL as it may stand in a log, on a page, in an error: without its passwords."""
    secret = {name: "***" for name in url.query if "password" in name}
    return url.update_query_dict(secret).render_as_string(hide_password=True)


def _no_driver(url: URL, error: Exception) -> StoreError:
    how = "pip install 'mrnlab[postgres]'" if url.get_backend_name() == "postgresql" else "install it"
    return StoreError(
        f"The store {shown(url)} needs a database driver that is not installed ({error}); "
        f"{how}, or use SQLite: sqlite:///runs.db."
    )


def make_engine(url: URL, patience_s: float) -> Engine:
    """An engine with the settings that many processes on one file need. Nothing is opened yet.

    A busy database is waited for so long. Raises StoreError where the database's driver is not installed.
    """
    make = _sqlite_engine if url.get_backend_name() == "sqlite" else _server_engine
    try:
        return make(url, patience_s)
    except ImportError as error:
        raise _no_driver(url, error) from error
    except (ArgumentError, ValueError, TypeError) as error:
        raise _odd_url(url, error) from None


def check_connection(engine: Engine, url: URL) -> None:
    """Connects once. Raises StoreError where an option of the URL is no such option or has an odd value.

    A database that does not answer, or refuses, raises DBAPIError (`core.store.faults` has words for it).
    """
    try:
        engine.connect().close()
    except (ProgrammingError, ValueError, TypeError) as error:
        raise _odd_url(url, error) from None


def _odd_url(url: URL, error: Exception) -> StoreError:
    """In the driver's own words, which speak of the part that is odd."""
    reason = str(getattr(error, "orig", None) or error).partition("\n")[0].rstrip(".")
    reason = without_passwords(reason, url.render_as_string(hide_password=False))
    return StoreError(f"The store {shown(url)} cannot be opened ({reason}); check its URL.")


def _sqlite_engine(url: URL, patience_s: float) -> Engine:
    if url.database in _MEMORY:
        # One connection for all threads, lent to one at a time: the pool is then the lock.
        engine = create_engine(
            url,
            poolclass=QueuePool,
            pool_size=1,
            max_overflow=0,
            pool_timeout=patience_s,
            connect_args={"check_same_thread": False},
        )
    else:
        engine = create_engine(url, poolclass=QueuePool)
    event.listen(engine, "connect", partial(_configure_sqlite, patience_s))
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _server_engine(url: URL, patience_s: float) -> Engine:
    given: dict[str, Any] = {}
    if url.get_backend_name() == "postgresql":
        given = {name: value for name, value in _POSTGRES.items() if name not in url.query}
        # As long as SQLite waits for another writer.
        given["options"] = f"{url.query.get('options', '')} -c lock_timeout={patience_s * 1000:.0f}".strip()
    # Asked first whether it still lives, a connection survives a restart of its server.
    engine = create_engine(
        url,
        pool_pre_ping=True,
        pool_size=_KEPT,
        max_overflow=_MOMENTARY,
        pool_timeout=patience_s,
        connect_args=given,
    )
    if engine.driver == "psycopg":
        event.listen(engine, "connect", _replace_nul)
    return engine


def _replace_nul(connection: Any, _record: Any) -> None:
    """PostgreSQL refuses U+0000 in a text, and a traceback must never keep a run from being told failed."""
    from psycopg.types.string import StrDumper

    class WithoutNul(StrDumper):
        def dump(self, obj: str) -> Any:
            return super().dump(obj.replace("\0", "�"))

    connection.adapters.register_dumper(str, WithoutNul)


def _configure_sqlite(patience_s: float, connection: Any, _record: Any) -> None:
    # Transactions are begun by `_begin_sqlite`, not by the driver, which would begin them too late.
    connection.isolation_level = None
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA busy_timeout = {patience_s * 1000:.0f}")
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
