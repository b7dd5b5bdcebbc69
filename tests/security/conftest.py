"""A hostile store, made once; and the pages' fixtures, which serve here too."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.pages.conftest import open_page, workers
from tests.pages.filled_store import Filled
from tests.security.hostile import fill_hostile

__all__ = ["open_page", "workers"]


@pytest.fixture(scope="session")
def hostile_home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Filled]:
    """A laboratory whose store is full of hostile text, for those who only look."""
    home = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(home))
        return home, fill_hostile(f"sqlite:///{home / 'runs.db'}", seeds=(1, 2))


@pytest.fixture
def hostile_store(hostile_home: tuple[Path, Filled], laboratory: Path) -> Filled:
    """This test's laboratory with that store."""
    home, filled = hostile_home
    for path in home.glob("runs.db*"):
        shutil.copy(path, laboratory / path.name)
    return filled
