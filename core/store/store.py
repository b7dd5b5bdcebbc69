"""Store: the one place where runs and all that they record are kept."""

from __future__ import annotations

import time
from collections.abc import Callable

from core.errors import StoreError
from core.paths import database_url, home
from core.store.curation import CurationPart
from core.store.engine import BUSY_TIMEOUT_S, make_engine, parse_url
from core.store.faults import translated_errors
from core.store.health import HealthPart
from core.store.life import LifePart
from core.store.migrations import upgrade
from core.store.transfer import TransferPart

__all__ = ["Store"]


class Store(LifePart, CurationPart, TransferPart, HealthPart):
    """Runs, their lives, curves, scores, predictions, relations and history, in one SQL database.

    Safe to share among threads, and among processes that each open their own. Methods raise StoreError
    where the database cannot be reached, read or written.
    """

    @classmethod
    def open(cls, url: str | None = None, *, clock: Callable[[], float] = time.time) -> Store:
        """Opens the store, making it or bringing its tables up to date where needed.

        `url` is any SQLAlchemy URL (default: `core.paths.database_url()`); `clock` gives seconds since 1970.
        Raises StoreError.
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
        store = cls(make_engine(parsed), parsed, clock)
        try:
            with translated_errors(store.name, BUSY_TIMEOUT_S):
                upgrade(store._engine, store.name)
        except BaseException:
            store.close()
            raise
        return store
