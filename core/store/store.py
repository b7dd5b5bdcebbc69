"""Store: the one place where runs and all that they record are kept."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable

from sqlalchemy import Connection

from core.errors import StoreError
from core.paths import database_url, given_path, home
from core.store import engine
from core.store.backup import Backup, copy_file, copy_rows, counted, put_in_place, sound
from core.store.curation import CurationPart
from core.store.engine import check_connection, make_engine, parse_url, store_file
from core.store.faults import translated_errors
from core.store.health import HealthPart
from core.store.life import LifePart
from core.store.migrations import upgrade
from core.store.transfer import TransferPart

__all__ = ["Store"]

# What is meant as one, well-formed or not, and is not taken for the name of a file: it may hold a password.
_URL = re.compile(r"://|:[^/]*@|:/[^/]*:")


class Store(LifePart, CurationPart, TransferPart, HealthPart):
    """Runs, their lives, curves, scores, predictions, relations and history, in one SQL database.

    Safe to share among threads, and among processes that each open their own. Methods raise StoreError
    where the database cannot be reached, read or written.
    """

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        clock: Callable[[], float] = time.time,
        patience_s: float | None = None,
    ) -> Store:
        """Opens the store, making it or bringing its tables up to date where needed.

        `url` is any SQLAlchemy URL (default: `core.paths.database_url()`); `clock` gives seconds since 1970;
        a busy store is waited for `patience_s` (default: BUSY_TIMEOUT_S). Raises StoreError.
        """
        if url is None:
            try:
                home().mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(
                    f"The laboratory's folder {home()} cannot be made ({error.strerror}); set MRNLAB_HOME to "
                    "one that can."
                ) from error
        parsed = parse_url(url or database_url())
        if patience_s is None:
            patience_s = engine.BUSY_TIMEOUT_S
        store = cls(make_engine(parsed, patience_s), parsed, clock, patience_s)
        try:
            with translated_errors(store.name, patience_s):
                check_connection(store._engine, parsed)
                upgrade(store._engine, store.name)
        except BaseException:
            store.close()
            raise
        return store

    def backup(self, target: str, *, replace: bool = False) -> Backup:
        """Copies the store as it is at this moment, while others write to it; what was copied.

        `target` is a file, which gets its name when it is whole and has been looked through, or the URL of a
        database without runs. A file that is there is kept unless `replace`. Raises StoreError.
        """
        if _URL.search(target) and not target.startswith("sqlite:///"):
            return self._copy_to_database(target)
        named = store_file(parse_url(target)) if target.startswith("sqlite:///") else given_path(target)
        if named is None:
            raise StoreError("A database in memory is gone at once; name a file.")
        path = named.resolve()
        if path == self._path:
            raise StoreError(f"{path} is the store itself; give another name.")
        if path.exists() and not path.is_file():
            raise StoreError(f"{path} is not a file; give another name.")
        if path.exists() and not replace:
            raise StoreError(f"{path} is there already; give another name, or --force.")
        if not path.parent.is_dir():
            raise StoreError(f"{path} cannot be written: there is no folder {path.parent}.")
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with self.transaction(write=False) as connection:
                expected = counted(connection)
                if connection.dialect.name == "sqlite":
                    copy_file(connection, part)
                else:
                    with contextlib.closing(Store.open(f"sqlite:///{part}")) as other:
                        _fill(connection, other)
            size = sound(part, expected)
            put_in_place(part, path, replace=replace)
        finally:
            part.unlink(missing_ok=True)
        return Backup(str(path), expected["runs"], sum(expected.values()), size)

    def _copy_to_database(self, url: str) -> Backup:
        with contextlib.closing(Store.open(url)) as other, self.transaction(write=False) as connection:
            expected = counted(connection)
            _fill(connection, other)
            return Backup(other.name, expected["runs"], sum(expected.values()), other.health().size or 0)


def _fill(source: Connection, store: Store) -> None:
    """All rows into a store that must have none. Raises StoreError where it has, or where rows got lost."""
    with store.transaction() as target:
        there = sum(counted(target).values())
        if there:
            raise StoreError(f"The store {store.name} has {there} rows already; name an empty one.")
        copy_rows(source, target)
        if counted(target) != counted(source):
            raise StoreError(f"The copy in {store.name} came out wrong; nothing of it was kept.")
