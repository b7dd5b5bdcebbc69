"""Copies of datasets that other people made: no script runs, and nothing outside of their folder is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.corpora import load
from core.errors import CorpusError


def test_scripts_and_other_files_are_refused(tmp_path: Path) -> None:
    script = tmp_path / "mine"
    script.mkdir()
    (script / "mine.py").write_text("raise SystemExit")
    with pytest.raises(CorpusError, match=r"is a script \(mine.py\).*revision=refs/convert/parquet"):
        load(f"hub:{script}")
    texts = tmp_path / "notes"
    texts.mkdir()
    for split in ("train", "test"):
        (texts / f"{split}.txt").write_text("some words\n")
    with pytest.raises(
        CorpusError, match="holds files of the kind text; those of parquet, arrow, csv and json"
    ):
        load(f"hub:{texts}")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(CorpusError, match="cannot be read"):
        load(f"hub:{empty}")


def test_nothing_outside_of_a_copy_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("text,label\na b,x\nc d,y\n")
    folder = tmp_path / "mine"
    folder.mkdir()
    lines = ["---", "configs:", "- config_name: default", f"  data_files: {secret}", "---"]
    (folder / "README.md").write_text("\n".join(lines))
    with pytest.raises(CorpusError, match="names a file outside of it"):
        load(f"hub:{folder}")
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_dict({"text": ["a b", "c d"], "label": ["x", "y"]})
    saved = tmp_path / "saved"
    datasets.DatasetDict(train=table, test=table).save_to_disk(saved)
    state = json.loads((saved / "train" / "state.json").read_text())
    state["_data_files"][0]["filename"] = "../../secret.arrow"
    (saved / "train" / "state.json").write_text(json.dumps(state))
    with pytest.raises(CorpusError, match="names a file outside of its folder"):
        load(f"hub:{saved}")
    monkeypatch.setenv("MRNLAB_DATA_ROOTS", str(tmp_path / "allowed"))
    monkeypatch.setenv("MRNLAB_HOME", str(tmp_path / "home"))
    with pytest.raises(CorpusError, match="neither a folder here nor"):
        load(f"hub:{saved}")
