"""A copy of a store in a SQLite file at one moment, while others write to it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import StoreError
from core.paths import given_path
from core.store.store import Store


@dataclass(frozen=True)
class Backup:
    """The result of a backup: the copied store and the copy; `size` is in bytes."""

    file: Path
    runs: int
    rows: int
    size: int


def back_up(store: Store, target: str, *, replace: bool = False) -> Backup:
    """Copies the store at this moment to a file, which gets its name after a check.

    An existing file is kept unless `replace`. Raises StoreError, also for a store on a server.
    """
    if store.file is None:
        raise StoreError(
            f"The store {store.name} is no file; its server's own program (`pg_dump`, say) can copy it."
        )
    path = _checked_target(store, target, replace)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with store.transaction(write=False) as connection, contextlib.closing(sqlite3.connect(part)) as copy:
            rows = store.rows()
            raw: Any = connection.connection.driver_connection
            raw.backup(copy)  # all pages at once: in steps it would begin anew when another process writes
            copy.execute("PRAGMA journal_mode = DELETE")  # no second file beside it
            (first,) = copy.execute("PRAGMA quick_check").fetchone()
        if first != "ok":
            raise StoreError(f"The copy came out wrong ({first}); check the disk of {path.parent}.")
        size = part.stat().st_size
        part.replace(path)
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            f"The copy {part} cannot be written ({error}); check its folder and disk."
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return Backup(path, rows["runs"], sum(rows.values()), size)


def _checked_target(store: Store, target: str, replace: bool) -> Path:
    if "://" in target or "@" in target:  # not quoted: it may hold a password
        raise StoreError("A backup is a file; name a file, not a database.")
    path = given_path(target).resolve()
    if path == store.file:
        raise StoreError(f"{path} is the store itself; give another name.")
    if path.exists() and not path.is_file():
        raise StoreError(f"{path} is not a file; give another name.")
    if path.exists() and not replace:
        raise StoreError(f"{path} already exists; give another name, or --force.")
    if not path.parent.is_dir():
        raise StoreError(f"{path} cannot be written: there is no folder {path.parent}.")
    return path
