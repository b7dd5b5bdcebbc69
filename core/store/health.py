"""What `mrnlab doctor` asks of the store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, func, select, text

from core.store.base import StoreBase
from core.store.tables import metadata

__all__ = ["HealthPart", "StoreHealth"]

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
