"""From `mrnlab launch` to `mrnlab tag` with real workers, encoder and training, on a tiny scale."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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


def mrnlab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from jobs.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=PATIENCE_S,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def documents(ended: subprocess.CompletedProcess[str]) -> Any:
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.slow
def test_launch_to_tag(laboratory: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for split in ("train", "dev", "test"):
        (corpus / f"{split}.conll").write_text(_SENTENCES * 8)
    encoder = tiny_bert(tmp_path / "encoder")
    launched = mrnlab(
        "launch", "--corpus", str(corpus), "--columns", "tokens,pos,ner", "--tasks", "pos,ner",
        "--encoder", str(encoder), "--paradigm", "mtl,mrn", "--alignment", "cooccurrence", "--epochs", "3",
        "--set", "lr_encoder=0.01", "--set", "batch_size=4",
        "--set", "max_length=32", "--wait", "--json",
    )  # fmt: skip
    mtl, mrn = documents(launched)["runs"]
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

    shown = mrnlab("relations", str(mrn["id"]), "--mode", "task", "--step", "last", "--csv")
    rows = list(csv.reader(io.StringIO(shown.stdout)))
    assert [row[0] for row in rows] == ["task", "pos", "ner"]
    assert float(rows[1][1]) == pytest.approx(1.0)

    tagged = documents(mrnlab("tag", str(mrn["id"]), "German lamb rejects EU.", "--json"))
    assert tagged["tokens"] == ["German", "lamb", "rejects", "EU", "."]
    assert {len(tags) for tags in tagged["tags"].values()} == {5}

    results = documents(mrnlab("results", "--json"))
    assert {row["configuration"].split()[0] for row in results} == {"MTL", "MRN"}
    log = (laboratory / "logs" / f"run-{mrn['id']}.log").read_text()
    assert "Epoch 3" in log
    assert "Succeeded." in log
