"""The stores on which the contract is tested."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from core.store import Store
from core.store.schema import metadata
from tests.making import Clock
from tests.postgres import PostgresServer


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["disk", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Store]:
    """An empty store: on disk, on a PostgreSQL server. (Stores in memory serve unit tests.)"""
    if request.param == "postgres":
        url = request.getfixturevalue("emptied_postgres_url")
    else:
        url = f"sqlite:///{tmp_path / 'contract.db'}"
    opened = Store.open(url, clock=clock)
    yield opened
    opened.close()


@pytest.fixture(params=["disk", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store that several processes can open."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path}/many.db"


@pytest.fixture
def open_store() -> Iterator[Callable[..., Store]]:
    """Opens stores by their URLs, and closes them when the test ends."""
    with contextlib.ExitStack() as opened:
        yield lambda url, **options: opened.enter_context(contextlib.closing(Store.open(url, **options)))


@pytest.fixture(scope="session")
def contract_postgres(postgres_server: PostgresServer) -> Iterator[Store]:
    """A database whose tables are made once for all tests."""
    with postgres_server.database() as made:
        opened = Store.open(made)
        yield opened
        opened.close()


@pytest.fixture
def emptied_postgres_url(contract_postgres: Store) -> str:
    """That database without a row, its numbers counted from 1."""
    tables = ", ".join(metadata.tables)
    with contract_postgres.transaction() as connection:
        connection.execute(text(f"TRUNCATE {tables} RESTART IDENTITY"))
    return contract_postgres.url
