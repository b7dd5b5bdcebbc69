"""Store: the one place where runs and all that they record are kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from sqlalchemy import func, select, text

from core.errors import StoreError
from core.paths import database_url, home
from core.store import engine
from core.store.exchange import Exchange
from core.store.life import Life
from core.store.migrations import upgrade
from core.store.plans import Plans
from core.store.queue import Queue
from core.store.schema import metadata


@dataclass(frozen=True)
class StoreHealth:
    """The state of the database. `problems` is empty where all is well; `size` is in bytes, if known."""

    database: str
    journal_mode: str | None
    size: int | None
    problems: tuple[str, ...]


class Store(Queue, Life, Exchange, Plans):
    """Runs, their lives, curves, scores, predictions, relations, history and plans, in one SQL database.

    Its methods stand in `runs`, `queue`, `life`, `metrics`, `results`, `exchange` and `plans`, classes that
    know only `Database`, not each other; `Exchange` alone uses `runs`, `metrics` and `results`. Safe to share
    among threads, and among processes that each open their own. Methods raise StoreError where the database
    cannot be reached, read or written.
    """

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        clock: Callable[[], float] = time.time,
        patience_s: float | None = None,
        shared: bool = False,
    ) -> Self:
        """Opens the store; creates it or brings its tables up to date where needed.

        `url` is any SQLAlchemy URL (default: `core.paths.database_url()`); `clock` gives seconds since 1970;
        a busy store is waited for `patience_s` (default: BUSY_TIMEOUT_S). `shared`, as the default store is:
        other processes use it too, so that a store in memory is refused, and the laboratory's folder is made.
        Raises StoreError.
        """
        parsed = engine.parse_url(url or database_url())
        if shared or url is None:
            engine.check_shared(parsed)
            try:
                home().mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(
                    f"The laboratory's folder {home()} cannot be made ({error.strerror}); set MRNLAB_HOME to "
                    "one that can."
                ) from error
        if patience_s is None:
            patience_s = engine.BUSY_TIMEOUT_S
        with engine.translated_errors(engine.shown(parsed), patience_s):
            store = cls(engine.connect(parsed, patience_s), parsed, clock, patience_s)
            try:
                upgrade(store._engine, store.name)
            except BaseException:
                store.close()
                raise
        return store

    def rows(self) -> dict[str, int]:
        """The number of rows of each table."""
        with self.transaction(write=False) as connection:
            return {
                table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for table in metadata.sorted_tables
            }

    def health(self) -> StoreHealth:
        """Checks the whole database for damage (SQLite; a server checks its own)."""
        with self.transaction(write=False) as connection:
            dialect = connection.dialect
            version = ".".join(map(str, dialect.server_version_info or ()))
            if dialect.name != "sqlite":
                size = connection.scalar(text("SELECT pg_database_size(current_database())"))
                return StoreHealth(f"{dialect.name} {version}", None, size, ())
            problems = [line for line in connection.scalars(text("PRAGMA quick_check")) if line != "ok"]
            orphans = connection.execute(text("PRAGMA foreign_key_check")).all()
            if orphans:
                problems.append(f"{len(orphans)} rows belong to runs that are not there.")
            pages = connection.execute(text("PRAGMA page_count")).scalar_one()
            page_size = connection.execute(text("PRAGMA page_size")).scalar_one()
            journal_mode = connection.scalar(text("PRAGMA journal_mode"))
            return StoreHealth(f"sqlite {version}", journal_mode, pages * page_size, tuple(problems))
