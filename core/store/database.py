"""The database under the store: one transaction, a clock, and the few statements that every part needs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import URL, Connection, Engine, Table, bindparam, func, select, update
from sqlalchemy.dialects import sqlite

from core.errors import NotOwner, RunNotFound, StoreError, StoreReplaced
from core.store.engine import shown, store_file, translated_errors
from core.store.schema import IS_KEPT, OWNER, events, runs
from core.store.types import Owner, RunState

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

_CHUNK = 2000  # databases limit the parameters of one statement
_LARGEST_ID = 2**31 - 1  # of an integer column in PostgreSQL
_RETRY_WAITS_S = (0.5, 1.0, 2.0, 4.0)  # each try waits for a busy store by itself
_Id = TypeVar("_Id", int, str)
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


def in_chunks(ids: Iterable[_Id]) -> Iterator[list[_Id]]:
    """The distinct ids in lists that fit one statement, without numbers that no row can have."""
    distinct = [id_ for id_ in dict.fromkeys(ids) if isinstance(id_, str) or 0 <= id_ <= _LARGEST_ID]
    return (distinct[start : start + _CHUNK] for start in range(0, len(distinct), _CHUNK))


def retried(
    act: Callable[[], _T],
    patience_s: float,
    *,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> _T:
    """The result of `act`, retried for this many seconds where it raises StoreError.

    Not where it raises StoreReplaced: such a store does not come back.
    """
    end = clock() + patience_s
    for wait_s in chain(_RETRY_WAITS_S, repeat(_RETRY_WAITS_S[-1])):
        try:
            return act()
        except StoreReplaced:
            raise
        except StoreError as error:
            if clock() >= end:
                raise
            _log.warning("%s Trying again in %g s.", error, wait_s)
            sleep(wait_s)
    raise AssertionError("the waits never end")


class Database:
    """Engine, transactions, clock. Safe to share among threads; each process opens its own."""

    def __init__(self, engine: Engine, url: URL, clock: Callable[[], float], patience_s: float) -> None:
        self.now = clock
        """Seconds since 1970 by the clock that all stored times come from."""
        self.file = store_file(url)
        """The file of a SQLite store; None for a store in memory or on a server."""
        self._engine = engine
        self._url = url
        self._patience_s = patience_s
        self._local = threading.local()
        self._file_identity = _identity(self.file)

    @property
    def url(self) -> str:
        """The full URL, password included, for workers."""
        return self._url.render_as_string(hide_password=False)

    @property
    def name(self) -> str:
        """The URL without its passwords, for logs and pages."""
        return shown(self._url)

    def close(self) -> None:
        """Closes all connections."""
        self._engine.dispose()

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[Connection]:
        """Commits at the end of the block, rolls back on an error. Raises StoreError.

        A read sees the store at one moment, however many statements it makes. Store methods called inside the
        block by the same thread join it.
        """
        joined: Connection | None = getattr(self._local, "connection", None)
        if joined is not None:
            if write and not joined.get_execution_options().get("write"):
                raise RuntimeError("a write inside a read transaction; open the outer one with write=True")
            yield joined
            return
        self._check_file()
        with translated_errors(self.name, self._patience_s), self._engine.connect() as connection:
            options: dict[str, Any] = {"write": True} if write else {}
            if not write and connection.dialect.name == "postgresql":
                # SQLite always reads the store at one moment; PostgreSQL would at each statement's.
                options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
            connection = connection.execution_options(**options)
            self._local.connection = connection
            try:
                with connection.begin():
                    yield connection
                if write:
                    self._check_file()
            finally:
                self._local.connection = None

    def _check_file(self) -> None:
        """Raises StoreReplaced where the store's file is no longer the one that was opened.

        The system keeps a deleted file for those who have it open, and drops it with the last of them: what
        they write would be lost without a word (docs/adr/0016).
        """
        if self._file_identity is not None and _identity(self.file) != self._file_identity:
            raise StoreReplaced(
                f"The file {self.file} was deleted or replaced while the store was open. Put it back, or a "
                "backup in its place, and start again."
            )

    def guard(self, connection: Connection, run_id: int, owner: Owner | None) -> RunState:
        """The run's state; its row is locked until a write transaction ends.

        Raises RunNotFound, and NotOwner where `owner` is given and does not (or no longer) train the run.
        """
        if not 0 <= run_id <= _LARGEST_ID:
            raise RunNotFound(run_id)
        statement = select(runs.c.state, *OWNER).where(runs.c.id == run_id, IS_KEPT)
        if connection.get_execution_options().get("write"):
            statement = statement.with_for_update(key_share=True)
        row = connection.execute(statement).one_or_none()
        if row is None:
            raise RunNotFound(run_id)
        state = RunState(row.state)
        is_training = state in (RunState.RUNNING, RunState.CANCELLING)
        if owner is not None and not (is_training and tuple(row[1:]) == astuple(owner)):
            raise NotOwner(run_id, state, owner.pid, owner.host)
        return state

    @staticmethod
    def locked_chunks(connection: Connection, ids: Iterable[int]) -> Iterator[list[int]]:
        """The distinct run ids in lists that fit one statement, their rows locked.

        In ascending order: two transactions that change the same runs then never wait for each other.
        """
        for chunk in in_chunks(sorted(ids)):
            if connection.dialect.name == "postgresql":
                rows = select(runs.c.id).where(runs.c.id.in_(chunk)).order_by(runs.c.id)
                connection.execute(rows.with_for_update())
            yield chunk

    @staticmethod
    def update_runs(
        connection: Connection, ids: Collection[int], values: Mapping[str, Any], *conditions: Any
    ) -> int:
        """Changes the rows of runs where the conditions hold; returns the number of changed rows."""
        changed = update(runs).where(runs.c.id.in_(ids), *conditions)
        return connection.execute(changed.values(**values, revision=runs.c.revision + 1)).rowcount

    def insert_event(
        self, connection: Connection, run_id: int, kind: str, message: str, at: float | None = None
    ) -> None:
        """Adds a line to a run's history, now or `at` that time."""
        time = self.now() if at is None else at
        connection.execute(
            events.insert(), {"run_id": run_id, "time": time, "kind": kind, "message": message}
        )

    def insert(
        self,
        connection: Connection,
        table: Table,
        rows: Sequence[Mapping[str, Any]],
        *,
        replace: bool = False,
        keys: Sequence[str] = (),
    ) -> None:
        """Inserts rows. Existing rows with the same keys (default: the primary key) stay, or are replaced."""
        if not rows:
            return
        server = connection.dialect.name == "postgresql"
        statement: Any = _insert_arrays(table, rows) if server else sqlite.insert(table)
        keys = keys or [column.name for column in table.primary_key]
        if replace:
            changed = {name: statement.excluded[name] for name in rows[0] if name not in keys}
            statement = statement.on_conflict_do_update(index_elements=keys, set_=changed)
        else:
            statement = statement.on_conflict_do_nothing(index_elements=keys)
        connection.execute(statement, None if server else list(rows))


def _insert_arrays(table: Table, rows: Sequence[Mapping[str, Any]]) -> postgresql.Insert:
    """The rows as one statement with an array per column, which PostgreSQL inserts many times as fast."""
    from sqlalchemy.dialects import postgresql  # 0.1 s that SQLite does without

    columns = (
        bindparam(name, [row[name] for row in rows], postgresql.ARRAY(table.c[name].type)) for name in rows[0]
    )
    arrays = select(*(func.unnest(column) for column in columns))
    return postgresql.insert(table).from_select(list(rows[0]), arrays)


def _identity(path: Path | None) -> tuple[int, int] | None:
    """Device and inode of a file; no other file has them while this one is open."""
    try:
        return None if path is None else (path.stat().st_dev, path.stat().st_ino)
    except FileNotFoundError:
        return None
