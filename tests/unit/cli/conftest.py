"""A laboratory in which no worker is started, and a small corpus."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.engines import local
from tests.unit.cli.terminal import Laboratory

_CONLL = "EU B-ORG X\nrejects O Y\nGerman B-MISC X\n. O Y\n\nIt O X\nwas O Y\nso O Y\n\n"


@pytest.fixture
def lab(laboratory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laboratory]:
    """A laboratory in which no worker is started."""
    made = Laboratory()

    def count(*_arguments: object) -> object:
        made.started += 1
        return subprocess.Popen([sys.executable, "-c", ""])

    monkeypatch.setattr(local, "start", count)
    yield made
    made.store.close()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder of CoNLL files with the columns tokens, ner and toy."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        (folder / f"{split}.conll").write_text(_CONLL * 5)
    return folder
