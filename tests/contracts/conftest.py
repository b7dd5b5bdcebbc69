"""The stores on which the contract is tested."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.store import Store
from tests.making import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Store]:
    """An empty store, in memory and on disk."""
    url = "sqlite://" if request.param == "memory" else f"sqlite:///{tmp_path / 'contract.db'}"
    opened = Store.open(url, clock=clock)
    yield opened
    opened.close()
