"""The two laboratories of the pins: runs trained on a toy corpus, and the pages' store of made-up runs."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, update
from typer.testing import CliRunner, Result

from core.store import Store
from core.store.schema import runs
from jobs.cli import app
from tests.pages.conftest import as_served as as_served
from tests.pages.conftest import templates as templates
from tests.pages.conftest import workers as workers
from tests.pages.filled_store import TASKS, Filled

Call = Callable[..., Result]
_FINE_TUNED = {"lr_encoder": 2e-3, "lr_heads": 2e-2}
_TRAINED: dict[str, dict[str, Any]] = {
    "stl": {"paradigm": "stl", "tasks": "pos", **_FINE_TUNED},
    "mtl": {"paradigm": "mtl", **_FINE_TUNED},
    "mrn relational": {"paradigm": "mrn", "prior": "relational", **_FINE_TUNED},
    "mrn paper": {"paradigm": "mrn", "prior": "paper", **_FINE_TUNED},
    "mrn map": {"paradigm": "mrn", "prior": "map", **_FINE_TUNED},
    "mrn frozen": {"paradigm": "mrn", "encoder_training": "frozen", "lr_encoder": None},
}
RUNS = {name: number for number, name in enumerate(_TRAINED, start=1)}


@pytest.fixture(scope="session")
def trained_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A laboratory with the runs of `RUNS`, each of 20 steps in five epochs."""
    from tests.trained import toy_config, train_runs  # torch takes seconds, and few files need it

    home = tmp_path_factory.mktemp("pins")
    common = {"epochs": 5, "batch_size": 16, "update_every": 4, "device": "cpu", "precision": "fp32"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(home))
        patch.delenv("MRNLAB_DB", raising=False)
        configs = []
        for values in _TRAINED.values():
            chosen = common | values
            if values["paradigm"] != "mrn":
                del chosen["update_every"]
            configs.append(toy_config(home, **chosen))
        with contextlib.closing(Store.open()) as store:
            assert train_runs(store, configs) == list(RUNS.values())
    return home


@pytest.fixture(scope="session")
def filled_home(
    templates: Callable[..., tuple[Path, Filled]], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A laboratory with finished, live, waiting, failed, lost and stopped runs."""
    template, _ = templates((1, 2), True)
    home = tmp_path_factory.mktemp("pins") / "filled"
    shutil.copytree(template, home, ignore=shutil.ignore_patterns("*.pickle"))
    with (
        contextlib.closing(Store.open(f"sqlite:///{home / 'runs.db'}")) as store,
        store.transaction() as rows,
    ):
        for column in (runs.c.log, runs.c.checkpoint):
            rows.execute(update(runs).values({column: func.replace(column, str(template), str(home))}))
        store.task_places([TASKS])  # as a page does that is opened
    return home


@pytest.fixture
def call(workers: list[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls `mrnlab` in a laboratory, in this process and without worker processes."""

    def call_(home: Path, *arguments: str) -> Result:
        monkeypatch.setenv("MRNLAB_HOME", str(home))
        return CliRunner().invoke(app, list(arguments), catch_exceptions=False)

    return call_
