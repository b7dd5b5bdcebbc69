"""Every test gets a laboratory of its own, and no test reaches for the network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.postgres import postgres_server as postgres_server
from tests.postgres import postgres_url as postgres_url

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

REAL_DATA = Path(os.environ.get("MRNLAB_TEST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


@pytest.fixture(autouse=True)
def laboratory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty MRNLAB_HOME for this test alone."""
    folder = tmp_path / "laboratory"
    folder.mkdir()
    monkeypatch.setenv("MRNLAB_HOME", str(folder))
    monkeypatch.delenv("MRNLAB_DB", raising=False)
    monkeypatch.delenv("MRNLAB_DATA", raising=False)
    return folder


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real corpora, or a skip that says where they are looked for."""
    if not REAL_DATA.is_dir():
        pytest.skip("the real corpora are not here; set MRNLAB_TEST_DATA to their folder to run this test")
    return REAL_DATA
