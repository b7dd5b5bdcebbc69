"""The pages take a run that was trained in another laboratory as one of their own."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from core.store import Store
from jobs.transfer import export_run, import_run
from tests.pages.conftest import Open, words
from tests.pages.test_tag import drawn, lanes, texts
from tests.trained import toy_config, train_runs


def test_an_imported_run(open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(tmp_path / "elsewhere"))
        config = toy_config(tmp_path / "elsewhere", paradigm="mrn", alignment="cooccurrence")
        with contextlib.closing(Store.open()) as store:
            (run_id,) = train_runs(store, [config])
            export_run(store, run_id, tmp_path / "export", [])
    (tmp_path / "elsewhere").rename(tmp_path / "gone")
    with contextlib.closing(Store.open()) as store:
        taken = str(import_run(store, tmp_path / "export").run_id)

    assert "imported" in words(open_page("runs", run=taken))
    (sentence,) = drawn(open_page("tag", run=taken, text="German lamb ."))
    (entities,) = lanes(sentence, "ner")
    assert texts(entities)[:2] == ["MISC", "MISC"]
