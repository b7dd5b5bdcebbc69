"""Store: the one place where runs and all that they record are kept."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, func, select, text

from core.errors import StoreError
from core.paths import database_url, given_path, home
from core.store import engine
from core.store.base import StoreBase
from core.store.copies import Backup, copy_file, copy_rows, counted, put_in_place, sound
from core.store.engine import check_connection, make_engine, parse_url, store_file, translated_errors
from core.store.life import LifePart
from core.store.migrations import upgrade
from core.store.runs import CurationPart
from core.store.schema import metadata
from core.store.transfer import TransferPart

# What `mrnlab doctor` asks of the store.


_CROWDED = 0.85  # of a server's connections


@dataclass(frozen=True)
class StoreHealth:
    """The database and its state. `problems` is empty where all is well; `size` is in bytes, if known."""

    database: str
    journal_mode: str | None
    size: int | None
    problems: tuple[str, ...]


class HealthPart(StoreBase):
    """Whether the store is sound."""

    @property
    def file(self) -> Path | None:
        """The file that the store is, if it is one."""
        return self._path

    def rescued(self) -> list[Path]:
        """Copies beside the store's file that were saved when another had taken its place (adr/0016)."""
        if self._path is None:
            return []
        return sorted(self._path.parent.glob(f"{self._path.name}.rescued-*"))

    def rows(self) -> dict[str, int]:
        """How many rows each table has."""
        with self.transaction(write=False) as connection:
            return {
                table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for table in metadata.sorted_tables
            }

    def health(self) -> StoreHealth:
        """Looks through the whole database for damage (SQLite; a server looks after its own)."""
        with self.transaction(write=False) as connection:
            dialect = connection.dialect
            version = ".".join(map(str, dialect.server_version_info or ()))
            if dialect.name != "sqlite":
                size = connection.scalar(text("SELECT pg_database_size(current_database())"))
                return StoreHealth(f"{dialect.name} {version}", None, size, _server_problems(connection))
            damage = connection.execute(text("PRAGMA quick_check")).scalars().all()
            orphans = connection.execute(text("PRAGMA foreign_key_check")).all()
            pages = connection.execute(text("PRAGMA page_count")).scalar_one()
            page_size = connection.execute(text("PRAGMA page_size")).scalar_one()
            problems = [str(line) for line in damage if line != "ok"]
            if orphans:
                problems.append(f"{len(orphans)} rows belong to runs that are not there.")
            return StoreHealth(
                f"sqlite {version}",
                connection.execute(text("PRAGMA journal_mode")).scalar_one(),
                pages * page_size,
                tuple(problems),
            )


def _server_problems(connection: Connection) -> tuple[str, ...]:
    problems = []
    encoding = connection.scalar(text("SHOW server_encoding"))
    if encoding != "UTF8":
        problems.append(f"The database has the encoding {encoding}; words of most languages need UTF8.")
    used = connection.scalar(text("SELECT count(*) FROM pg_stat_activity WHERE datname IS NOT NULL")) or 0
    most = int(connection.scalar(text("SHOW max_connections")) or 0)
    if used > _CROWDED * most:
        problems.append(f"{used} of the {most} connections of the server are taken; raise max_connections.")
    return tuple(problems)


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
