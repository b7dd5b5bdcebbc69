"""From `mrnlab launch` to `mrnlab tag` with real workers, encoder and training, on a tiny scale."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jobs.cli import app
from tests.patience import PATIENCE_S
from tests.tiny import tiny_bert

ROOT = Path(__file__).resolve().parents[3]

_SENTENCES = """\
EU NNP B-ORG
rejects VB O
German JJ B-MISC
call NN O
. . O

a DT O
British JJ B-MISC
lamb NN O
. . O

"""


def mrnlab(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.slow
def test_launch_to_tag(laboratory: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for split in ("train", "dev", "test"):
        (corpus / f"{split}.conll").write_text(_SENTENCES * 8)
    encoder = tiny_bert(tmp_path / "encoder")
    program = [sys.executable, "-c", "from jobs.cli import main; main()"]
    launched = subprocess.run(
        [*program, "launch", "--corpus", str(corpus), "--columns", "tokens,pos,ner", "--tasks", "pos,ner",
        "--encoder", str(encoder), "--paradigm", "mtl,mrn", "--alignment", "cooccurrence", "--epochs", "3",
        "--set", "lr_encoder=0.01", "--set", "batch_size=4",
        "--set", "max_length=32", "--wait", "--json"],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=PATIENCE_S,
    )  # fmt: skip
    assert launched.returncode == 0, launched.stderr
    mtl, mrn = json.loads(launched.stdout)["runs"]
    assert [(run["paradigm"], run["state"]) for run in (mtl, mrn)] == [
        ("mtl", "succeeded"),
        ("mrn", "succeeded"),
    ]
    assert mrn["alignment"] == "cooccurrence"
    assert mrn["best_epoch"] in (1, 2, 3)
    assert mrn["seconds"] > 0
    assert set(mrn["test"]) == set(mrn["dev"]) == {"pos", "ner"}
    assert mrn["test"]["pos"]["score"] > 0.5  # nine words seen in training
    assert "Epoch" not in launched.stdout

    matrix = mrnlab("relations", str(mrn["id"]), "--mode", "task", "--step", "last", "--csv")
    rows = list(csv.reader(io.StringIO(matrix)))
    assert [row[0] for row in rows] == ["task", "pos", "ner"]
    assert float(rows[1][1]) == pytest.approx(1.0)

    tagged = json.loads(mrnlab("tag", str(mrn["id"]), "German lamb rejects EU.", "--json"))
    assert tagged["tokens"] == ["German", "lamb", "rejects", "EU", "."]
    assert {len(tags) for tags in tagged["tags"].values()} == {5}

    results = json.loads(mrnlab("results", "--json"))
    assert {row["configuration"].split()[0] for row in results} == {"MTL", "MRN"}
    log = (laboratory / "logs" / f"run-{mrn['id']}.log").read_text()
    assert "Epoch 3" in log
    assert "Succeeded." in log
