"""URLs, engines and database errors, for many processes on one SQLite file or on PostgreSQL.

SQLite before 3.51.3 can lose commits in WAL mode when two connections write and checkpoint at the same
moment (sqlite.org/wal.html#walresetbug), so WAL is used only where the library has the fix.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from core.errors import StoreBusy, StoreError, StoreFull, StoreReplaced, StoreUnreachable
from core.paths import given_path
from core.plain_text import without_passwords

BUSY_TIMEOUT_S = 30.0
# A file name or a word, but no part of a URL.
_PLAIN_NAME = re.compile(r"[\w./~ -]{1,200}")
_MEMORY = (None, "", ":memory:")
# Each process keeps two connections, as its workers may number hundreds, and opens more for a moment.
_POOL = {"pool_pre_ping": True, "pool_size": 2, "max_overflow": 10}
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

    Raises StoreError where the text is no URL, or names a database whose driver is not installed.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # Only the database's name is quoted, and the cause is dropped: any other part may be a password.
        scheme, separator, _ = text.partition("://")
        named = f"{scheme}://…" if separator else text if _PLAIN_NAME.fullmatch(text) else "…"
        raise StoreError(
            f"The store '{named}' is not a database URL; write it like sqlite:///runs.db."
        ) from None
    if url.drivername == "postgres":  # the name that other PostgreSQL programs use
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
    """The file of a SQLite store; None for a store in memory or on a server."""
    name = url.database
    if url.get_backend_name() != "sqlite" or name is None or name in _MEMORY or name.startswith("file:"):
        return None
    return given_path(name).resolve()


def check_shared(url: URL) -> None:
    """Raises StoreError where other processes would not find that store: in memory, or a URI with options."""
    if url.get_backend_name() == "sqlite" and store_file(url) is None:
        raise StoreError(
            f"The store {shown(url)} is in memory or has no plain file name, so no worker and no other "
            "command would find it; name a file: sqlite:///runs.db."
        )


def shown(url: URL) -> str:
    """The URL without its passwords, for logs, pages and errors."""
    secret = {name: "***" for name in url.query if "password" in name}
    return url.update_query_dict(secret).render_as_string(hide_password=True)


def connect(url: URL, patience_s: float) -> Engine:
    """An engine that has connected once and waits `patience_s` for a busy database.

    Raises StoreError where the driver is not installed or an option of the URL has no such name or value. A
    database that does not answer, or refuses, raises DBAPIError (see `translated_errors`).
    """
    make = _sqlite_engine if url.get_backend_name() == "sqlite" else _server_engine
    try:
        engine = make(url, patience_s)
        engine.connect().close()
    except ImportError as error:
        raise _no_driver(url, error) from error
    except (ArgumentError, ProgrammingError, ValueError, TypeError) as error:
        # The driver's own words name the odd part.
        reason = str(getattr(error, "orig", None) or error).partition("\n")[0].rstrip(".")
        reason = without_passwords(reason, url.render_as_string(hide_password=False))
        raise StoreError(f"The store {shown(url)} cannot be opened ({reason}); check its URL.") from None
    return engine


def _no_driver(url: URL, error: Exception) -> StoreError:
    how = "pip install 'mrnlab[postgres]'" if url.get_backend_name() == "postgresql" else "install it"
    return StoreError(
        f"The store {shown(url)} needs a database driver that is not installed ({error}); "
        f"{how}, or use SQLite: sqlite:///runs.db."
    )


def _sqlite_engine(url: URL, patience_s: float) -> Engine:
    options: dict[str, Any] = {}
    if url.database in _MEMORY:
        # One connection, lent to one thread at a time: the pool is the lock.
        options = {"pool_size": 1, "max_overflow": 0, "pool_timeout": patience_s}
        options["connect_args"] = {"check_same_thread": False}
    engine = create_engine(url, poolclass=QueuePool, **options)
    event.listen(engine, "connect", partial(_configure_sqlite, patience_s))
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _server_engine(url: URL, patience_s: float) -> Engine:
    options: dict[str, Any] = {}
    if url.get_backend_name() == "postgresql":
        options = {name: value for name, value in _POSTGRES.items() if name not in url.query}
        options["options"] = f"{url.query.get('options', '')} -c lock_timeout={patience_s * 1000:.0f}".strip()
    engine = create_engine(url, pool_timeout=patience_s, connect_args=options, **_POOL)
    if engine.driver == "psycopg":
        event.listen(engine, "connect", _replace_nul)
    return engine


def _replace_nul(connection: Any, _record: Any) -> None:
    """PostgreSQL refuses U+0000 in a text, and a traceback must never keep a run from being marked failed."""
    from psycopg.types.string import StrDumper

    class WithoutNul(StrDumper):
        def dump(self, obj: str) -> Any:
            return super().dump(obj.replace("\0", "�"))

    connection.adapters.register_dumper(str, WithoutNul)


def _configure_sqlite(patience_s: float, connection: Any, _record: Any) -> None:
    # Transactions are begun by `_begin_sqlite`, not by the driver, which would begin them too late.
    connection.isolation_level = None
    safe = wal_is_safe(sqlite3.sqlite_version_info)
    connection.execute(f"PRAGMA busy_timeout = {patience_s * 1000:.0f}")
    journal_mode, synchronous = ("wal", "NORMAL") if safe else ("delete", "FULL")
    if connection.execute("PRAGMA journal_mode").fetchone()[0] not in (journal_mode, "memory"):
        connection.execute(f"PRAGMA journal_mode = {journal_mode}")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: Connection) -> None:
    # A deferred transaction that reads and then writes fails at once where another wrote in between;
    # busy_timeout does not help it. IMMEDIATE waits its turn.
    write = connection.get_execution_options().get("write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


@dataclass(frozen=True)
class _Fault:
    """The meaning of a database's error: the words after the store's name, and the error to raise."""

    words: str
    error: type[StoreError] = StoreError


_LOCKED = _Fault(
    "is busy: another program has held it for {timeout:g} s; try again when it is done", StoreBusy
)
_TOO_LATE = _Fault("refused a change that came at the same moment as another one; try again")
_DISK_FULL = _Fault("cannot be written, because the disk is full; free some space", StoreFull)
_NO_TABLES = _Fault(
    "has lost its tables (was it deleted or made anew?); start again to make new ones", StoreReplaced
)
_RESTARTING = _Fault("is starting or stopping; try again when its server is up", StoreUnreachable)
_SILENT = _Fault(
    "does not answer; check that its server runs and can be reached from this machine", StoreUnreachable
)
_BROKEN = _Fault(
    "cannot be reached any more: the connection broke; check that its server runs", StoreUnreachable
)
_CROWDED = _Fault(
    "has no connection left for this program; close some, or raise max_connections of its server"
)

# By words of SQLite's message, in lower case.
_SQLITE = {
    "is locked": _LOCKED,
    "not a database": _Fault("is not a store of MRN Lab; name another file, or move this one away"),
    "malformed": _Fault("is damaged; move the file away, or put back a backup"),
    "unable to open": _Fault("cannot be opened; check that its folder exists and that you may write there"),
    "readonly": _Fault("cannot be written; check the rights on the file and its folder"),
    "disk is full": _DISK_FULL,
    "disk i/o": _Fault("cannot be read or written (disk error); check the disk and its free space"),
    "no such table": _NO_TABLES,
}
# By PostgreSQL's error code (postgresql.org/docs/current/errcodes-appendix.html).
_POSTGRESQL = {
    "55P03": _LOCKED,
    **dict.fromkeys(("40P01", "40001"), _TOO_LATE),
    "53100": _DISK_FULL,
    "53300": _CROWDED,
    **dict.fromkeys(("57P01", "57P02", "57P03"), _RESTARTING),
    "25006": _Fault("can only be read: its server is a standby, or was told to take no changes"),
    "42501": _Fault("does not let this user do that; the user must own the database, or the tables in it"),
    "42P01": _NO_TABLES,
    "22001": _Fault("cannot hold a text that long; shorten it"),
}
# Before a connection is made there is no code, only the server's words.
_NO_CONNECTION = {
    "password authentication failed": _Fault("refused the user's name or password"),
    "no password supplied": _Fault("wants a password; write it into the URL, or into ~/.pgpass"),
    "no pg_hba.conf entry": _Fault(
        "does not let this user in from this machine; see pg_hba.conf of its server"
    ),
    **dict.fromkeys(("too many clients", "remaining connection slots"), _CROWDED),
    **dict.fromkeys(("starting up", "shutting down"), _RESTARTING),
    "does not exist": _Fault("is not there: its server has no such database or user; make them first"),
    "resolve": _Fault("is on a machine that cannot be found; check the name of the host"),
    **dict.fromkeys(("timeout", "refused"), _SILENT),
}


@contextmanager
def translated_errors(name: str, timeout_s: float) -> Iterator[None]:
    """Turns database errors into a StoreError of one sentence about the store of that name.

    `timeout_s` is how long a busy store is waited for. Errors that only a bug can cause (a violated
    constraint, bad SQL) pass unchanged.
    """
    try:
        yield
    except PoolTimeout as error:
        raise StoreBusy(f"The store {name} is busy: no connection was free in {timeout_s:g} s.") from error
    except DBAPIError as error:
        fault = _fault(error)
        if fault is None:
            raise
        raise fault.error(f"The store {name} {fault.words.format(timeout=timeout_s)}.") from error


def _fault(error: DBAPIError) -> _Fault | None:
    original: Any = error.orig
    message = str(original).lower()
    broken = error.connection_invalidated
    marks = _SQLITE
    if type(original).__module__.startswith("psycopg"):
        if original.sqlstate is not None:
            return _POSTGRESQL.get(original.sqlstate, _BROKEN if broken else None)
        marks = _NO_CONNECTION
        # Without a code, an OperationalError is the connection's fault; other errors are bugs.
        broken = broken or type(original).__name__ == "OperationalError"
    fault = next((fault for mark, fault in marks.items() if mark in message), None)
    return fault or (_BROKEN if broken else None)
