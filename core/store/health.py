"""What `mrnlab doctor` asks of the store."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from core.store.base import StoreBase

__all__ = ["HealthPart", "StoreHealth"]


@dataclass(frozen=True)
class StoreHealth:
    """The database and its state. `problems` is empty where all is well; `size` is in bytes, if known."""

    database: str
    journal_mode: str | None
    size: int | None
    problems: tuple[str, ...]


class HealthPart(StoreBase):
    """Whether the store is sound."""

    def health(self) -> StoreHealth:
        """Looks through the whole database for damage (SQLite; a server looks after itself)."""
        with self.transaction(write=False) as connection:
            dialect = connection.dialect
            version = ".".join(map(str, dialect.server_version_info or ()))
            if dialect.name != "sqlite":
                return StoreHealth(f"{dialect.name} {version}", None, None, ())
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
