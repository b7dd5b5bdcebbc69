"""A hostile store, made once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.pages.filled_store import Filled
from tests.security.hostile import fill_hostile


@pytest.fixture(scope="session")
def hostile_home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Filled]:
    """A laboratory whose store is full of hostile text; no test changes it."""
    home = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(home))
        return home, fill_hostile(f"sqlite:///{home / 'runs.db'}", seeds=(1,))


@pytest.fixture
def hostile_store(hostile_home: tuple[Path, Filled], laboratory: Path) -> Filled:
    """This test's laboratory with that store."""
    home, filled = hostile_home
    for path in home.glob("runs.db*"):
        shutil.copy(path, laboratory / path.name)
    return filled
