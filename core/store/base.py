"""What every part of the Store stands on: the one transaction, the clock, and the guard of a run's rows."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import URL, Connection, Engine, Table, bindparam, func, select, update
from sqlalchemy.dialects import sqlite

from core.config import RunConfig
from core.errors import ConfigError, NotOwner, RunNotFound, StoreError
from core.records import RunFacts
from core.store.copies import StoreFile
from core.store.engine import shown, store_file, translated_errors
from core.store.records import Conditions, ErrorInfo, Owner, Run, RunState
from core.store.schema import events, runs

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql


# Databases bound the parameters of one statement; lists of ids are read in pieces of this size.
_CHUNK = 2000
_LARGEST_ID = 2**31 - 1  # of a column of whole numbers in PostgreSQL
_Id = TypeVar("_Id", int, str)


def in_chunks(ids: Iterable[_Id]) -> Iterator[list[_Id]]:
    """The distinct ids in pieces that fit one statement. Numbers that no row can have are left out."""
    distinct = [one for one in dict.fromkeys(ids) if isinstance(one, str) or 0 <= one <= _LARGEST_ID]
    return (distinct[start : start + _CHUNK] for start in range(0, len(distinct), _CHUNK))


class StoreBase:
    """Engine, transactions, clock. Safe to share among threads; each process opens its own."""

    def __init__(self, engine: Engine, url: URL, clock: Callable[[], float], patience_s: float) -> None:
        self._engine = engine
        self._url = url
        self._clock = clock
        self._patience_s = patience_s
        path = store_file(url)
        self._file = None if path is None else StoreFile(path, engine)
        self._local = threading.local()
        self._key_ids: dict[tuple[str, str, str], int] = {}
        # Runs as last read, with the revision of their row. An id is never reused, so it can stay here.
        self._seen: dict[int, tuple[int, Run]] = {}
        # By run and attempt, of runs that have ended: their facts do not change.
        self._conditions: dict[tuple[int, int], Conditions] = {}

    @property
    def url(self) -> str:
        """The store's full URL, password included: what a worker is given."""
        return self._url.render_as_string(hide_password=False)

    @property
    def _path(self) -> Path | None:
        """The file of a store that is one."""
        return store_file(self._url)

    @property
    def name(self) -> str:
        """The store's URL as it may be shown."""
        return shown(self._url)

    @property
    def is_deleted(self) -> bool:
        """Whether the file that the store is kept in is gone. Whoever uses the store next puts it back."""
        return self._path is not None and not self._path.exists()

    def now(self) -> float:
        """Seconds since 1970 by the store's clock, which all of its times are told by."""
        return self._clock()

    def close(self) -> None:
        """Closes all connections."""
        self._engine.dispose()

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[Connection]:
        """Commits at the end of the block, rolls back on an error. Raises StoreError.

        A read sees the store as it is at one moment, however many statements it makes. Store methods called
        inside the block by the same thread join it, so several can be made one.
        """
        joined: Connection | None = getattr(self._local, "connection", None)
        if joined is not None:
            if write and not joined.get_execution_options().get("write"):
                raise RuntimeError("a write inside a read transaction; open the outer one with write=True")
            yield joined
            return
        with translated_errors(self.name, self._patience_s), self._connected() as connection:
            connection = connection.execution_options(**self._options(connection.dialect.name, write))
            self._local.connection, self._local.fresh_keys = connection, {}
            try:
                with connection.begin():
                    yield connection
                if write:
                    self._confirm(connection)
                # Only now are keys made inside sure to exist.
                self._key_ids.update(self._local.fresh_keys)
            except BaseException:
                if write:
                    self._seen = {}  # it may hold rows that were never committed
                raise
            finally:
                self._local.connection = None

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """A connection to the store, put back where its file was deleted. Raises StoreError."""
        connection = self._engine.connect()
        try:
            if self._file is not None and not self._file.is_in_place(connection):
                self._file.put_back(connection)
                connection.close()
                self._engine.dispose()
                connection = self._engine.connect()
            yield connection
        finally:
            connection.close()

    def _confirm(self, connection: Connection) -> None:
        """Makes sure that what was committed is in the store, not in a file deleted at the same moment.

        Raises StoreError where it may not be.
        """
        if self._file is None or self._file.is_in_place(connection):
            return
        ours = self._file.put_back(connection)
        self._engine.dispose()
        if not ours:
            raise StoreError(f"The file of the store {self.name} was deleted during a change; try again.")

    @staticmethod
    def _options(dialect: str, write: bool) -> dict[str, Any]:
        if write:
            return {"write": True}
        if dialect == "postgresql":
            # SQLite reads the store of one moment by itself; here each statement would see one of its own.
            return {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        return {}

    def _guard(self, connection: Connection, run_id: int, owner: Owner | None) -> RunState:
        """The run's state, its row held until a transaction that writes ends.

        Raises RunNotFound, and NotOwner where an owner is named that does not (or no longer) train it.
        """
        owned = (runs.c.owner_host, runs.c.owner_pid, runs.c.owner_started, runs.c.owner_boot)
        if not 0 <= run_id <= _LARGEST_ID:
            raise RunNotFound(f"There is no run {run_id}.")
        found = select(runs.c.state, *owned).where(runs.c.id == run_id)
        if connection.get_execution_options().get("write"):
            found = found.with_for_update(key_share=True)
        row = connection.execute(found).one_or_none()
        if row is None:
            raise RunNotFound(f"There is no run {run_id}.")
        state = RunState(row.state)
        if owner is not None:
            same = tuple(row[1:]) == (owner.host, owner.pid, owner.process_started, owner.boot_id)
            if not same or state not in (RunState.RUNNING, RunState.CANCELLING):
                raise NotOwner(
                    f"Run {run_id} is {state} and no longer belongs to process {owner.pid} on {owner.host}."
                )
        return state

    @staticmethod
    def _held(connection: Connection, ids: Iterable[int]) -> Iterator[list[int]]:
        """The distinct ids in pieces that fit one statement, the rows of each held before it is given.

        In the order of their ids: two that change the same runs then never wait for each other.
        """
        for some in in_chunks(sorted(ids)):
            if connection.dialect.name == "postgresql":
                held = select(runs.c.id).where(runs.c.id.in_(some)).order_by(runs.c.id)
                connection.execute(held.with_for_update())
            yield some

    def _change(
        self, connection: Connection, run_id: int, values: Mapping[str, Any], *conditions: Any
    ) -> int:
        """Changes a run's row where the conditions hold; returns how many rows that were (0 or 1)."""
        changed = connection.execute(
            update(runs)
            .where(runs.c.id == run_id, *conditions)
            .values(**values, revision=runs.c.revision + 1)
        )
        return changed.rowcount

    def _tell(
        self, connection: Connection, run_id: int, kind: str, message: str, at: float | None = None
    ) -> None:
        moment = self._clock() if at is None else at
        row = {"run_id": run_id, "time": moment, "kind": kind, "message": message}
        connection.execute(events.insert(), row)

    def _upsert(
        self,
        connection: Connection,
        table: Table,
        rows: Sequence[Mapping[str, Any]],
        *,
        replace: bool,
        keys: Sequence[str] = (),
    ) -> None:
        """Inserts rows; one with the same keys (the primary ones) is replaced, or kept as it is."""
        if not rows:
            return
        statement: postgresql.Insert | sqlite.Insert = sqlite.insert(table)
        if connection.dialect.name == "postgresql":
            statement = _insert_arrays(table, rows)
        keys = keys or [column.name for column in table.primary_key]
        if replace:
            changed = {name: statement.excluded[name] for name in rows[0] if name not in keys}
            statement = statement.on_conflict_do_update(index_elements=keys, set_=changed)
        else:
            statement = statement.on_conflict_do_nothing(index_elements=keys)
        if connection.dialect.name == "postgresql":
            connection.execute(statement)
        else:
            connection.execute(statement, list(rows))


def _insert_arrays(table: Table, rows: Sequence[Mapping[str, Any]]) -> postgresql.Insert:
    """The rows as one statement with an array per column: PostgreSQL takes them many times as fast."""
    from sqlalchemy.dialects import postgresql  # a tenth of a second that SQLite does without

    columns = (
        bindparam(name, [row[name] for row in rows], postgresql.ARRAY(table.c[name].type)) for name in rows[0]
    )
    arrays = select(*(func.unnest(column) for column in columns))
    return postgresql.insert(table).from_select(list(rows[0]), arrays)


# Rows of `runs` to frozen `Run` values.


# In the order of `run_of`'s unpacking.
_NAMES = """
id config configuration_id sweep state created_at started_at finished_at
owner_host owner_pid owner_started owner_boot heartbeat_at heartbeat_due
step total_steps epoch progress_at best_epoch checkpoint log
error_type error_message error_traceback error_exit_code attempt stop_requested_at
archived_at note tags priority retries waiting_for engine_job saved_step revision
"""
RUN_COLUMNS = tuple(runs.c[name] for name in _NAMES.split())
# Up to nine digits are a seed that a description may have. Inside a string the quotes would be escaped.
_SEED = re.compile(r'"seed":(0|[1-9]\d{0,8})(?=[,}])')
_NO_FACTS: Mapping[str, Any] = {}
_FACTS = TypeAdapter(RunFacts)
NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""In place of a time that must be there and cannot be read."""
_END = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
_STATES = {state.value: state for state in RunState}


def moment(seconds: float | None) -> datetime | None:
    """Seconds since 1970 as a timezone-aware UTC time; None where they are no time that a page can tell."""
    try:
        # The last year is left out, for another time zone may be in the next.
        return datetime.fromtimestamp(seconds, UTC) if 0 <= seconds < _END else None  # type: ignore[operator, arg-type]
    except TypeError:  # None, or a text, which SQLite keeps in any column
        return None


def facts_of(text: str) -> Mapping[str, Any]:
    """The stored facts of a run; none where they cannot be read, as of a run that has not begun.

    Facts of an earlier version, which lack some, are taken as they are.
    """
    try:
        stored: Any = json.loads(text)
        if isinstance(stored, dict):
            _FACTS.validate_python(stored)
    except ValidationError as error:
        return stored if all(one["type"] == "missing" for one in error.errors()) else _NO_FACTS
    except (TypeError, ValueError):
        return _NO_FACTS
    return stored if isinstance(stored, dict) else _NO_FACTS


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None


def _tags(text: str) -> tuple[str, ...]:
    try:
        stored = json.loads(text)
    except (TypeError, ValueError):
        return ()
    return tuple(map(str, stored)) if isinstance(stored, list) else ()


@lru_cache(maxsize=20_000)
def parse_config(text: str) -> tuple[RunConfig, str | None]:
    """The stored description, and why it no longer holds if so.

    One run that cannot be read must not hide all others: what can be read of it is then shown unchecked.
    """
    # Checking a description costs far more than reading its row, and the seeds of a configuration have all
    # but the seed in common.
    seed = _SEED.search(text)
    if seed is None:
        return _checked(text)
    config, problem = _checked(f"{text[: seed.start(1)]}0{text[seed.end(1) :]}")
    return config.model_copy(update={"seed": int(seed[1])}), problem


@lru_cache(maxsize=20_000)
def _checked(text: str) -> tuple[RunConfig, str | None]:
    try:
        return RunConfig.from_json(text), None
    except (ConfigError, ValueError) as error:
        return _unchecked(text), f"The stored description of this run cannot be read: {error}"


def _unchecked(text: str) -> RunConfig:
    try:
        stored = json.loads(text)
    except json.JSONDecodeError:
        stored = {}
    values: dict[str, Any] = {"corpus": "unreadable", "tasks": ()}
    if isinstance(stored, dict):
        known = {("lambda_" if key == "lambda" else key): value for key, value in stored.items()}
        values |= {key: value for key, value in known.items() if _is_of_kind(key, value)}
    frozen = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    return RunConfig.model_construct(None, **frozen)


def _is_of_kind(field: str, value: Any) -> bool:
    """Whether a run has the field, and the value is a number, a text, a truth or a list as in it."""
    if field not in RunConfig.model_fields:
        return False
    kind = str(RunConfig.model_fields[field].annotation)
    if value is None:
        return "None" in kind
    if "tuple" in kind:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if "int" in kind or "float" in kind:
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, bool if "bool" in kind else str)


def run_of(row: Sequence[Any]) -> Run:
    """The Run of a row of RUN_COLUMNS, without its facts."""
    (
        id_, config_text, configuration_id, sweep, state, created_at, started_at, finished_at,
        host, pid, process_started, boot_id, heartbeat_at, heartbeat_due,
        step, total_steps, epoch, progress_at, best_epoch, checkpoint, log,
        error_type, error_message, error_traceback, error_exit_code, attempt, stop_requested_at,
        archived_at, note, tags, priority, retries, waiting_for, engine_job, saved_step, _,
    ) = row  # fmt: skip
    config, problem = parse_config(config_text if isinstance(config_text, str) else "")
    error = None
    if error_type is not None:
        error = ErrorInfo(error_type, error_message or "", error_traceback or "", error_exit_code)
    return Run(
        id=id_,
        config=config,
        configuration_id=configuration_id,
        sweep=sweep,
        state=_STATES[state],
        created_at=moment(created_at) or NO_TIME,
        started_at=moment(started_at),
        finished_at=moment(finished_at),
        owner=None if pid is None else Owner(host, pid, process_started, boot_id),
        heartbeat_at=moment(heartbeat_at),
        heartbeat_due=moment(heartbeat_due),
        step=_whole(step) or 0,
        total_steps=_whole(total_steps),
        epoch=epoch if type(epoch) is float and math.isfinite(epoch) else 0.0,
        progress_at=moment(progress_at),
        best_epoch=_whole(best_epoch),
        checkpoint=checkpoint,
        log=log,
        error=error,
        facts=_NO_FACTS,
        attempt=attempt,
        stop_requested_at=moment(stop_requested_at),
        archived_at=moment(archived_at),
        note=note,
        tags=() if tags == "[]" else _tags(tags),
        config_problem=problem,
        priority=priority,
        retries=retries,
        waiting_for=waiting_for,
        engine_job=engine_job,
        saved_step=_whole(saved_step),
    )
