"""The whole store as it is at one moment, copied into a file or another database while others write to it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, String, Table, Text, func, insert, select, text
from sqlalchemy.dialects import sqlite

from core.errors import StoreError
from core.store.tables import events, metadata, metric_keys, runs

__all__ = ["Backup", "copy_file", "copy_rows", "counted", "put_in_place", "sound"]

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
