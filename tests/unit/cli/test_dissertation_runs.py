"""mrnlab study dissertation, really trained: a tiny encoder on tiny corpora of the paper's names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.store import RunState
from tests.tiny import tiny_bert
from tests.unit.cli.conftest import Laboratory

LAMBDAS = (1.0, 0.5, 0.05)
_WORDS = {
    "EU": ("NNP", "B-NP", "B-ORG"),
    "rejects": ("VBZ", "B-VP", "O"),
    "German": ("JJ", "B-NP", "B-MISC"),
    "call": ("NN", "I-NP", "O"),
    "to": ("TO", "B-VP", "O"),
    "boycott": ("VB", "I-VP", "O"),
    "British": ("JJ", "B-NP", "B-MISC"),
    "lamb": ("NN", "I-NP", "O"),
    ".": (".", "O", "O"),
}


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tiny corpora under the names of the paper's, and a tiny encoder. Returns the encoder's folder."""
    for name, splits, columns in (
        ("conll2003", ("train", "validation", "test"), 3),
        ("conll2000", ("train", "test"), 2),
    ):
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        sentence = "\n".join(" ".join([word, *labels[:columns]]) for word, labels in _WORDS.items())
        for split in splits:
            (folder / f"{split}.conll").write_text(f"{sentence}\n\n" * 20)
    monkeypatch.setenv("MRNLAB_DATA", str(tmp_path / "data"))
    return tiny_bert(tmp_path / "tiny", positions=256)


@pytest.mark.slow
@pytest.mark.usefixtures("studies_are_trained")
def test_the_study_from_end_to_end(lab: Laboratory, corpora: Path) -> None:
    """Really trained: the plan, the runs, the report with a cost for each model, and nothing left to do."""
    call = ("study", "dissertation", "--encoder", str(corpora), "--seeds", "1")
    some = (*call, "--setting", "table1,table2")
    plan = lab.json(*some, "--dry-run")
    assert (plan["search"], plan["final"]) == (4 + 4, 4 + 4)
    assert [run["config"]["lambda"] for run in plan["runs"] if run["chosen_on_dev"]] == [None]
    listed = lab.answer(*some, "--dry-run", "--runs")
    assert listed.count("  to run\n") == 16
    assert "chosen on dev" in listed
    assert "hold out a tenth" in listed

    document = json.loads(lab.answer(*some, "--json"))
    assert {run.state for run in lab.store.runs()} == {RunState.SUCCEEDED}
    assert len(lab.store.runs()) == 16
    methods = {
        (setting["name"], method["name"]): method
        for setting in document["settings"]
        for method in setting["families"]
    }
    assert set(methods["table2", "mrn"]["test"]) >= {"chunk", "pos"}
    assert methods["table2", "mrn"]["arm"]["lambda"] in (*LAMBDAS, 0.005)
    assert methods["table2", "mrn"]["dev"]["n"] == 1
    assert methods["table2", "mtl"]["dev"] is None
    assert all(method["published"] == {} for method in methods.values())
    stl, mtl = methods["table1", "stl"]["cost"], methods["table1", "mtl"]["cost"]
    assert (stl["models"], mtl["models"]) == (3, 1)
    assert 2 * mtl["parameters"] < stl["parameters"] < 3 * mtl["parameters"]
    assert [row["model"] for row in document["papers"]["table 1"]["reported"]] == ["BiLSTM-CRF", "BERT"]
    again = lab.json(*some, "--dry-run")
    assert (again["search"], again["final"]) == (0, 0)
    assert {run["state"] for run in again["runs"]} == {"succeeded"}
    table = lab.answer(*call, "--report", "table", "--part", "table 1,table 2")
    assert "tiny (STL)" in table
    (quoted,) = [line for line in table.splitlines() if line.startswith("GCDT with BERT (Li")]
    assert "  reported  " in quoted
    assert "96.81" in quoted
