"""The pages take a run that a notebook trained, and one that was trained in another laboratory, as one of a
worker's.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import core
from core.store import Store
from jobs.transfer import export_run, import_run
from tests.pages.conftest import Open, words
from tests.pages.test_tag import drawn, lanes, texts
from tests.trained import toy_config


def test_a_run_of_a_notebook_and_of_another_laboratory(
    open_page: Open, laboratory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = toy_config(laboratory, paradigm="mrn", alignment="cooccurrence")
    run = str(core.train(config, lab=core.Laboratory(), progress=False).id)

    runs = words(open_page("runs", run=run))
    assert "Succeeded" in runs
    assert "The best epoch on dev is" in runs
    assert "**Training loss**, total" in words(open_page("curves", runs=run))
    assert "**pos** and **ner** over training" in words(open_page("relations", run=run))

    export_run(Store.open(), int(run), tmp_path / "export", [])
    laboratory.rename(tmp_path / "gone")
    monkeypatch.setenv("MRNLAB_HOME", str(tmp_path / "another"))
    taken = str(import_run(Store.open(), tmp_path / "export").run_id)
    assert "imported" in words(open_page("runs", run=taken))
    (sentence,) = drawn(open_page("tag", run=taken, text="German lamb ."))
    (entities,) = lanes(sentence, "ner")
    assert texts(entities)[:2] == ["MISC", "MISC"]
