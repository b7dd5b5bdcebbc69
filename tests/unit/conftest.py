"""Fixtures that several unit tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.store import Store
from tests.making import Clock
from tests.tiny import tiny_bert


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny BERT. It is shared: a test that changes an encoder makes its own."""
    return str(tiny_bert(tmp_path_factory.mktemp("encoder")))


@pytest.fixture
def clock() -> Clock:
    """The clock of `store`."""
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Iterator[Store]:
    """An empty store in memory, whose time stands still until the test moves it."""
    opened = Store.open("sqlite://", clock=clock)
    yield opened
    opened.close()
