"""Every test gets a laboratory of its own, and no test reaches for the network."""

from __future__ import annotations

import functools
import gc
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Engine
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache
from typer.main import get_command

from core.foreign import child, inside
from tests.postgres import postgres_server as postgres_server
from tests.postgres import postgres_url as postgres_url
from tests.side_by_side import pytest_collection_modifyitems as pytest_collection_modifyitems
from tests.side_by_side import pytest_ignore_collect as pytest_ignore_collect
from tests.side_by_side import pytest_xdist_auto_num_workers as pytest_xdist_auto_num_workers
from tests.side_by_side import pytest_xdist_make_scheduler as pytest_xdist_make_scheduler

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Tests run side by side, one a core: threads that wait for one another would make each several times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Hundreds of processes import the same modules, which are compiled once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Workers end soon after their last run, and none is started before there is one.
os.environ.setdefault("MRNLAB_LINGER_S", "2")
# The same numbers on every processor; `make other-precision` has the other value.
os.environ.setdefault("MRNLAB_BF16", "no")

MEMORY = Path("/dev/shm")
ENOUGH_MEMORY = 8 * 10**9


def memory_is_usable(folder: Path = MEMORY) -> bool:
    """Whether temporary folders fit into memory, and programs in them may be started."""
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return False
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize > ENOUGH_MEMORY and not disk.f_flag & os.ST_NOEXEC


# On a disk, tests wait at every commit of a store.
if memory_is_usable():
    os.environ.setdefault("TMPDIR", str(MEMORY))
    tempfile.tempdir = None  # it is looked up again

# How long an example takes is the machine's business: on a busy one a property holds no less.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_collection_finish() -> None:
    """The modules that all test files import are not looked through for garbage after every page and run.

    What a test makes is looked through less often: that takes a twentieth of a page's time off.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


@pytest.fixture(autouse=True, scope="session")
def made_once() -> Iterator[None]:
    """What a process of its own does once, and all the tests of one process do together: build the command
    line, and compile statements for SQLite.
    """
    compiled: Any = LRUCache(2000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", functools.cache(get_command))
        patch.setattr(SQLiteDialect_pysqlite, "__eq__", lambda one, other: type(one) is type(other))
        patch.setattr(SQLiteDialect_pysqlite, "__hash__", lambda one: hash(type(one)))
        patch.setattr(Engine, "_compiled_cache", property(lambda _: compiled, lambda *_: None), raising=False)
        yield


REAL_DATA = Path(os.environ.get("MRNLAB_TEST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


@pytest.fixture(autouse=True)
def laboratory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty MRNLAB_HOME for this test alone."""
    folder = tmp_path / "laboratory"
    folder.mkdir()
    # A page under test takes the name of the main module, which processes that a later test starts would run.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setenv("MRNLAB_HOME", str(folder))
    monkeypatch.delenv("MRNLAB_DB", raising=False)
    monkeypatch.delenv("MRNLAB_DATA", raising=False)
    monkeypatch.delenv("MRNLAB_MODELS", raising=False)
    return folder


@pytest.fixture(autouse=True)
def foreign_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Foreign files are read in this process, by way of JSON as in a child process, which takes a second to
    start. What a child does more is tested in tests/security, which has children.
    """

    def run(task: str, given: Mapping[str, Any], content: bytes = b"", **_limits: Any) -> Any:
        return json.loads(json.dumps(inside.run_here(task, json.loads(json.dumps(given)), content)))

    monkeypatch.setattr(child, "run", run)


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder that all processes of this test run share."""
    folder = tmp_path_factory.getbasetemp()
    return folder if worker_id == "master" else folder.parent


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real corpora, or a skip that says where they are looked for."""
    if not REAL_DATA.is_dir():
        pytest.skip("the real corpora are not here; set MRNLAB_TEST_DATA to their folder to run this test")
    return REAL_DATA
