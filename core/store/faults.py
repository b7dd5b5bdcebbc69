"""Database errors, told in one sentence about the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from core.errors import StoreError

__all__ = ["translated_errors"]

_LOCKED = "is busy: another program has held it for {timeout:g} s; try again when it is done"
_FULL = "cannot be written, because the disk is full; free some space"
_TOO_LATE = "refused a change that came at the same moment as another one; try again"
_RESTARTING = "is starting or stopping; try again when its server is up"

# By words of SQLite's message, in lower case.
_SQLITE = (
    ("database is locked", _LOCKED),
    ("database table is locked", "is busy: another program holds it; try again when it is done"),
    ("not a database", "is not a store of MRN Lab; name another file, or move this one away"),
    ("malformed", "is damaged; move the file away, or put back a backup"),
    ("unable to open", "cannot be opened; check that its folder exists and that you may write there"),
    ("readonly", "cannot be written; check the rights on the file and its folder"),
    ("disk is full", _FULL),
    ("disk i/o", "cannot be read or written (disk error); check the disk and its free space"),
    (
        "no such table",
        "has lost its tables (was the file deleted or replaced?); start again to make a new one",
    ),
)
# By PostgreSQL's code of the error (postgresql.org/docs/current/errcodes-appendix.html).
_POSTGRESQL = {
    "55P03": _LOCKED,
    "40P01": _TOO_LATE,
    "40001": _TOO_LATE,
    "53100": "cannot be written, because the disk of its server is full; free some space there",
    "53300": "has no connection left for this program; close some, or raise max_connections of its server",
    "57P01": _RESTARTING,
    "57P02": _RESTARTING,
    "57P03": _RESTARTING,
    "25006": "can only be read: its server is a standby, or was told to take no changes",
    "42501": "does not let this user do that; the user must own the database, or the tables in it",
    "42P01": "has lost its tables (was the database made anew?); start again to make new ones",
    "22001": "cannot hold a text that long; shorten it",
}
# Where no connection is made there is no code, only the server's words.
_NO_CONNECTION = (
    ("password authentication failed", "refused the user's name or password"),
    ("no password supplied", "wants a password; write it into the URL, or into ~/.pgpass"),
    ("no pg_hba.conf entry", "does not let this user in from this machine; see pg_hba.conf of its server"),
    ("too many clients", _POSTGRESQL["53300"]),
    ("remaining connection slots", _POSTGRESQL["53300"]),
    ("starting up", _RESTARTING),
    ("shutting down", _RESTARTING),
    ("does not exist", "is not there: its server has no such database or user; make them first"),
    ("resolve", "is on a machine that cannot be found; check the name of the host"),
    ("timeout", "does not answer; check that its server runs and can be reached from this machine"),
    ("refused", "does not answer; check that its server runs and can be reached from this machine"),
)
_BROKEN = "cannot be reached any more: the connection broke; check that its server runs"


@contextmanager
def translated_errors(name: str, timeout_s: float) -> Iterator[None]:
    """Tells database errors as a StoreError of one sentence about the store of that name.

    `timeout_s` is how long a busy store is waited for. Errors that only a fault of ours can cause (a violated
    constraint, bad SQL) pass unchanged.
    """
    try:
        yield
    except PoolTimeout as error:
        raise StoreError(f"The store {name} is busy: no connection was free in {timeout_s:g} s.") from error
    except DBAPIError as error:
        reason = _reason(error)
        if reason is None:
            raise
        raise StoreError(f"The store {name} {reason.format(timeout=timeout_s)}.") from error


def _reason(error: DBAPIError) -> str | None:
    original: Any = error.orig
    told = str(original).lower()
    if type(original).__module__.startswith("psycopg"):
        code = getattr(original, "sqlstate", None)
        if code is not None:
            return _POSTGRESQL.get(code, _BROKEN if error.connection_invalidated else None)
        known = next((reason for mark, reason in _NO_CONNECTION if mark in told), None)
        # Without a code it is the connection's fault, or ours: the driver tells them by the class.
        return known or (_BROKEN if type(original).__name__ == "OperationalError" else None)
    known = next((reason for mark, reason in _SQLITE if mark in told), None)
    return known or (_BROKEN if error.connection_invalidated else None)
