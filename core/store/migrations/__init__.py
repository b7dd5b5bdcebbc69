"""Brings a store's tables up to date when it is opened (Alembic, embedded as a package)."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, func, inspect, select, text

from core.errors import StoreError

__all__ = ["HEAD", "upgrade"]

HEAD = "0003"
"""The newest revision; a test compares it with the files in `versions`."""
# Any number that no other program on the same database would think of.
_LOCK = 0x4D524E4C  # "MRNL"


def upgrade(engine: Engine, name: str) -> None:
    """Creates or upgrades the tables. Processes that race on a new file wait for one another.

    `name` is the store's as it may be shown. Raises StoreError where a newer MRN Lab made the store.
    """
    with engine.connect() as connection:
        current = _revision(connection)
    if current == HEAD:
        return  # the usual case, without importing Alembic
    if current is not None and current > HEAD:
        raise StoreError(
            f"The store {name} was made by a newer MRN Lab (revision {current}); update this one."
        )

    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "core.store:migrations")
    with engine.connect().execution_options(write=True) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return None if found is None else str(found)
