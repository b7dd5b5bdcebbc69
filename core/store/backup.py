"""A copy of the whole store at one moment, while others write to it: a file, or another database."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, func, select, text

from core.errors import StoreError
from core.paths import given_path
from core.store.engine import parse_url, store_file
from core.store.schema import events, metadata, metric_keys, runs
from core.store.store import Store

_BATCH = 10_000  # rows
_NUMBERED = (runs, events, metric_keys)
# Anything meant as a URL, well-formed or not, is not taken for a file name: it may hold a password.
_URL = re.compile(r"://|:[^/]*@|:/[^/]*:")


@dataclass(frozen=True)
class Backup:
    """What was copied, and where to; `size` is in bytes."""

    place: str
    runs: int
    rows: int
    size: int


def back_up(store: Store, target: str, *, replace: bool = False) -> Backup:
    """Copies the store as it is at this moment.

    `target` is a file, which gets its name when it is complete and checked, or the URL of a database without
    runs. An existing file is kept unless `replace`. Raises StoreError.
    """
    if _URL.search(target) and not target.startswith("sqlite:///"):
        with contextlib.closing(Store.open(target)) as other:
            rows = _copy_rows(store, other)
            return Backup(other.name, rows["runs"], sum(rows.values()), other.health().size or 0)
    path = _checked_target(store, target, replace)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        rows = _copy_to_file(store, part)
        size = part.stat().st_size
        part.replace(path)
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            f"The copy {part} cannot be written ({error}); check its folder and disk."
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return Backup(str(path), rows["runs"], sum(rows.values()), size)


def _checked_target(store: Store, target: str, replace: bool) -> Path:
    file = store_file(parse_url(target)) if target.startswith("sqlite:///") else given_path(target)
    if file is None:
        raise StoreError("A database in memory is gone at once; name a file.")
    path = file.resolve()
    if path == store.file:
        raise StoreError(f"{path} is the store itself; give another name.")
    if path.exists() and not path.is_file():
        raise StoreError(f"{path} is not a file; give another name.")
    if path.exists() and not replace:
        raise StoreError(f"{path} is there already; give another name, or --force.")
    if not path.parent.is_dir():
        raise StoreError(f"{path} cannot be written: there is no folder {path.parent}.")
    return path


def _copy_to_file(store: Store, path: Path) -> dict[str, int]:
    """A checked SQLite file with all rows; how many each table has."""
    with store.transaction(write=False) as connection:
        rows = store.rows()
        if connection.dialect.name == "sqlite":
            raw: Any = connection.connection.driver_connection
            with contextlib.closing(sqlite3.connect(path)) as copy:
                # All pages at once: in steps it would begin anew whenever another process writes.
                raw.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")  # no second file beside it
        else:
            with contextlib.closing(Store.open(f"sqlite:///{path}")) as other:
                _copy_rows(store, other)
    with contextlib.closing(sqlite3.connect(path)) as copy:
        (first,) = copy.execute("PRAGMA quick_check").fetchone()
    if first != "ok":
        raise StoreError(f"The copy came out wrong ({first}); check the disk of {path.parent}.")
    return rows


def _copy_rows(store: Store, other: Store) -> dict[str, int]:
    """All rows, table by table, into a store that must have none; how many each table has.

    Raises StoreError where it has rows, or where rows were lost. New ids follow the highest ever given.
    """
    with store.transaction(write=False) as source, other.transaction() as target:
        existing = sum(other.rows().values())
        if existing:
            raise StoreError(f"The store {other.name} has {existing} rows already; name an empty one.")
        for table in metadata.sorted_tables:
            rows = source.execution_options(yield_per=_BATCH).execute(select(table))
            for part in rows.mappings().partitions():
                other.insert(target, table, [dict(row) for row in part])
        for table in _NUMBERED:
            _number_after(target, table, _last_number(source, table))
        if other.rows() != store.rows():
            raise StoreError(f"The copy in {other.name} came out wrong; nothing of it was kept.")
        return store.rows()


def _last_number(connection: Connection, table: Table) -> int:
    """The highest id ever given, even where its row is deleted."""
    last = text("SELECT seq FROM sqlite_sequence WHERE name = :name")
    if connection.dialect.name == "postgresql":
        last = text("SELECT pg_sequence_last_value(CAST(pg_get_serial_sequence(:name, 'id') AS regclass))")
    highest = connection.scalar(select(func.max(table.c.id)))
    return max(highest or 0, connection.scalar(last, {"name": table.name}) or 0)


def _number_after(connection: Connection, table: Table, last: int) -> None:
    values = {"name": table.name, "last": last}
    if last and connection.dialect.name == "postgresql":
        statement = text("SELECT setval(CAST(pg_get_serial_sequence(:name, 'id') AS regclass), :last)")
        connection.execute(statement, values)
    elif last and table.dialect_options["sqlite"]["autoincrement"]:
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": table.name})
        connection.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)"), values)
