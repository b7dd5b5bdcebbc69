"""The file of a SQLite store, deleted or replaced while the store is open (docs/adr/0016).

The system keeps a deleted file for the connections that have it open. So whoever uses the store next puts a
complete copy where the file was; where another file has taken its place, the copy is saved beside it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

from filelock import FileLock
from sqlalchemy import Connection, Engine, event

from core.errors import StoreError, StoreReplaced
from core.store.backup import copy_file, put_in_place, sound

__all__ = ["StoreFile"]

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
