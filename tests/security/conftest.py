"""A hostile store, made once; a pickle and code that do harm."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages.filled_store import Filled
from tests.security.hostile import Payload, fill_hostile


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


@pytest.fixture
def foreign_files() -> None:
    """Foreign files are read in a child process, as by a user."""


@pytest.fixture
def marker(tmp_path: Path) -> Iterator[Path]:
    """The folder that a payload would make; it must not be there when the test ends."""
    folder = tmp_path / "executed"
    yield folder
    assert not folder.exists(), "a payload was executed"


@pytest.fixture
def evil(marker: Path) -> bytes:
    """A pickle that does harm; that it would is tried first."""
    pickled = pickle.dumps(Payload(marker), protocol=2)
    pickle.loads(pickled)
    marker.rmdir()
    return pickled


@pytest.fixture
def code(marker: Path) -> str:
    """Python that does harm when it is imported."""
    return f"import os\nos.mkdir({str(marker)!r})\n"
