"""The whole store as it is at one moment, copied into a file or another database while others write to it."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from sqlalchemy import Connection, Engine, String, Table, Text, event, func, insert, select, text
from sqlalchemy.dialects import sqlite

from core.errors import StoreError, StoreReplaced
from core.store.schema import events, metadata, metric_keys, runs

_BATCH = 10_000  # rows
_NUMBERED = (runs, events, metric_keys)


@dataclass(frozen=True)
class Backup:
    """What was copied, and where to; `size` is in bytes."""

    place: str
    runs: int
    rows: int
    size: int


def counted(connection: Connection) -> dict[str, int]:
    """How many rows each table has."""
    return {
        name: connection.execute(select(func.count()).select_from(table)).scalar_one()
        for name, table in metadata.tables.items()
    }


def copy_file(source: Connection, path: Path) -> None:
    """A SQLite store, page by page, to a new file. Raises StoreError.

    In the transaction of `source`, so that it is the store that this has read.
    """
    with _told(path), contextlib.closing(sqlite3.connect(path)) as target:
        # The file is waited for once, at the end: others can write as soon as the pages are read.
        target.execute("PRAGMA synchronous = OFF")
        raw: Any = source.connection.driver_connection
        # All pages at one go: in steps it would begin anew whenever another process writes.
        raw.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")


def copy_rows(source: Connection, target: Connection) -> None:
    """All rows, table by table, into a store without any; ids are given out after the highest ever given."""
    for table in metadata.sorted_tables:
        found = source.execution_options(yield_per=_BATCH).execute(select(table))
        if target.dialect.name == "postgresql":
            _copy_in(target, table, found.partitions())
        else:
            statement = str(insert(table).compile(dialect=sqlite.dialect()))
            for part in found.partitions():
                target.exec_driver_sql(statement, [tuple(row) for row in part])
    for table in _NUMBERED:
        _number_after(target, table.name, _last_number(source, table))


def sound(path: Path, expected: dict[str, int]) -> int:
    """Looks through the copy and compares its rows with those expected; how many bytes it has.

    Raises StoreError where it is not what it should be.
    """
    with _told(path), contextlib.closing(sqlite3.connect(path)) as copy:
        damage = [line for (line,) in copy.execute("PRAGMA quick_check") if line != "ok"]
        found = {name: copy.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in expected}
    if damage or found != expected:
        told = damage[0] if damage else f"{sum(found.values())} of {sum(expected.values())} rows"
        raise StoreError(f"The copy came out wrong ({told}); check the disk of {path.parent}.")
    return path.stat().st_size


def put_in_place(part: Path, path: Path, *, replace: bool) -> None:
    """Gives a finished copy its name, on the disk for good. Raises StoreError where the name is taken."""
    with _told(path):
        with part.open("rb+") as written:
            os.fsync(written.fileno())
        if replace:
            part.replace(path)
        else:
            try:
                os.link(part, path)
            except FileExistsError:
                raise StoreError(f"{path} is there already; give another name, or --force.") from None
        if os.name == "posix":
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _copy_in(target: Connection, table: Table, parts: Iterator[Sequence[Any]]) -> None:
    """By PostgreSQL's COPY, ten times as fast as INSERT."""
    quoted = target.dialect.identifier_preparer.quote
    columns = ", ".join(quoted(column.name) for column in table.columns)
    texts = [place for place, column in enumerate(table.columns) if isinstance(column.type, String | Text)]
    raw: Any = target.connection.driver_connection
    try:
        with raw.cursor() as cursor, cursor.copy(f"COPY {table.name} ({columns}) FROM STDIN") as copy:
            for row in (row for part in parts for row in part):
                copy.write_row(_without_nul(row, texts) if texts else row)
    except target.dialect.loaded_dbapi.Error as error:
        reason = str(error).strip().splitlines()[0]
        raise StoreError(f"The rows of {table.name} cannot be copied: {reason}.") from error


def _without_nul(row: Sequence[Any], texts: Sequence[int]) -> list[Any]:
    """SQLite keeps U+0000 in a text, PostgreSQL does not."""
    values = list(row)
    for place in texts:
        if values[place] is not None:
            values[place] = values[place].replace("\0", "�")
    return values


def _last_number(connection: Connection, table: Table) -> int:
    """The highest id ever given, also where its row is deleted."""
    if connection.dialect.name == "postgresql":
        last = text("SELECT pg_sequence_last_value(CAST(pg_get_serial_sequence(:name, 'id') AS regclass))")
    else:
        last = text("SELECT seq FROM sqlite_sequence WHERE name = :name")
    highest = connection.scalar(select(func.max(table.c.id)))
    return max(highest or 0, connection.scalar(last, {"name": table.name}) or 0)


def _number_after(connection: Connection, name: str, last: int) -> None:
    if last == 0:
        return
    if connection.dialect.name == "postgresql":
        given = text("SELECT setval(CAST(pg_get_serial_sequence(:name, 'id') AS regclass), :last)")
        connection.execute(given, {"name": name, "last": last})
    elif name != metric_keys.name:  # whose ids may be given again: nothing outlives them
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": name})
        given = text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)")
        connection.execute(given, {"name": name, "last": last})


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            f"The copy {path} cannot be written ({error}); check its folder and disk."
        ) from error


# The file of a SQLite store, deleted or replaced while the store is open (docs/adr/0016).
#
# The system keeps a deleted file for the connections that have it open. So whoever uses the store next puts
# a
# complete copy where the file was; where another file has taken its place, the copy is saved beside it.


_Identity = tuple[int, int]  # device and number of a file, which no other has as long as it is open
_PATIENCE_S = 60
# A row of `settings` in a copy: which file it was made of, by whoever did it first.
_MADE_OF = "put back in place of {0}:{1}"

_log = logging.getLogger(__name__)


class StoreFile:
    """Watches that the connections of an engine have the file open that has the store's name."""

    def __init__(self, path: Path, engine: Engine) -> None:
        self._path = path
        self._known: _Identity | None = None
        self._replaced: str | None = None
        event.listen(engine, "do_connect", self._before_connect)
        event.listen(engine, "connect", self._after_connect)

    def is_in_place(self, connection: Connection) -> bool:
        """Whether the file of this connection still has the store's name. Raises StoreReplaced for good
        where it was found to be another's.
        """
        if self._replaced is not None:
            raise StoreReplaced(self._replaced)
        return connection.info.get("file") == _identity(self._path)

    def put_back(self, connection: Connection) -> bool:
        """Puts a copy of the file that this connection has open in its place, unless another process did.

        Returns whether it is our own copy, which has all that this connection has written. The connections
        of the engine are then to be made anew. Raises StoreReplaced where another file has taken the place,
        StoreError where no copy can be made.
        """
        was, opened = connection.info["file"], connection.info["opened"]
        with FileLock(self._path.with_name(f".{self._path.name}.put-back"), timeout=_PATIENCE_S):
            if _identity(self._path) is not None:
                if not _is_made_of(self._path, was, opened):
                    self._save_beside(connection)
                self._known = _identity(self._path)
                return False
            copy = self._copied(connection)
            # What is left of the deleted file's log would be taken for the new one's.
            for rest in ("-journal", "-wal", "-shm"):
                self._path.with_name(self._path.name + rest).unlink(missing_ok=True)
            try:
                put_in_place(copy, self._path, replace=False)
            except StoreError:
                if _identity(self._path) is not None:
                    self._save_beside(connection)
                raise
            copy.unlink()
            self._known = _identity(self._path)
        _log.warning("%s was deleted while the store was open. It was put back, with all rows.", self._path)
        return True

    def _save_beside(self, connection: Connection) -> None:
        was, opened = connection.info["file"], connection.info["opened"]
        beside = sorted(self._path.parent.glob(f"{self._path.name}.rescued-*"))
        saved = next((copy for copy in beside if _is_made_of(copy, was, opened)), None)
        self._replaced = (
            f"The file {self._path} was replaced by another while the store was open. All that it held is "
            f"saved in {saved or self._copied(connection)}; choose between the two, and start again."
        )
        raise StoreReplaced(self._replaced)

    def _copied(self, connection: Connection) -> Path:
        """A copy beside the store's place that says what it is made of."""
        moment = time.strftime("%Y%m%d-%H%M%S")
        path = self._path.with_name(f"{self._path.name}.rescued-{moment}-{os.getpid()}")
        try:
            copy_file(connection, path)
        except StoreError:
            # A journal that stayed behind forbids all reading of a file without a name.
            journal = self._path.with_name(f"{self._path.name}-journal")
            if _identity(self._path) is not None or not journal.exists():
                raise
            journal.unlink()
            copy_file(connection, path)
        with contextlib.closing(sqlite3.connect(path)) as copy, copy:
            row = (_MADE_OF.format(*connection.info["file"]), time.time())
            copy.execute("INSERT OR REPLACE INTO settings (name, value, changed_at) VALUES (?, '', ?)", row)
        sound(path, {})
        return path

    def _before_connect(self, *_: Any) -> None:
        # A new connection would make a new, empty file, and the old one could not be put back.
        if self._known is not None and _identity(self._path) != self._known:
            raise StoreError(
                f"The file {self._path} was deleted or replaced while the store was open; try again."
            )

    def _after_connect(self, _connection: Any, record: Any) -> None:
        record.info.update(file=_identity(self._path), opened=time.time())
        self._known = record.info["file"]


def _identity(path: Path) -> _Identity | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _is_made_of(path: Path, file: _Identity, opened: float) -> bool:
    """Whether that store is a copy of that file, made since we opened it (numbers of files are reused)."""
    statement = "SELECT 1 FROM settings WHERE name = ? AND changed_at >= ?"
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as copy:
            return copy.execute(statement, (_MADE_OF.format(*file), opened)).fetchone() is not None
    except sqlite3.DatabaseError:
        return False  # no store at all
