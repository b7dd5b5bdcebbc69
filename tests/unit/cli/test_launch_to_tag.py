"""From `mrnlab launch` to `mrnlab tag` with real workers, encoder and training, on a tiny scale."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.engines import default_engine
from tests.supervised import wait_for
from tests.tiny import tiny_bert
from tests.trained import toy_config, toy_corpus, train_runs
from tests.unit.cli.conftest import Laboratory


@pytest.mark.slow
def test_launch_to_tag(laboratory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRNLAB_LINGER_S", "0.1")
    corpus, encoder = toy_corpus(tmp_path / "corpus"), tiny_bert(tmp_path / "encoder")
    terminal = Laboratory()
    launched = terminal.answer(
        "launch", "--corpus", str(corpus), "--columns", "tokens,pos,ner", "--tasks", "pos,ner",
        "--encoder", str(encoder), "--paradigm", "mtl,mrn", "--alignment", "cooccurrence", "--epochs", "3",
        "--set", "lr_encoder=0.01", "--set", "max_length=32", "--wait", "--json",
    )  # fmt: skip
    mtl, mrn = json.loads(launched)["runs"]
    assert [run["paradigm"] for run in (mtl, mrn)] == ["mtl", "mrn"]
    assert mtl["state"] == mrn["state"] == "succeeded"
    assert (mrn["alignment"], mrn["best_epoch"] in (1, 2, 3)) == ("cooccurrence", True)
    assert mrn["seconds"] > 0
    assert set(mrn["test"]) == set(mrn["dev"]) == {"pos", "ner"}
    assert mrn["test"]["pos"]["score"] > 0.5  # nine words seen in training
    assert "Epoch" not in launched

    run = str(mrn["id"])
    rows = terminal.answer("relations", run, "--mode", "task", "--step", "last", "--csv").splitlines()
    assert [row.split(",")[0] for row in rows] == ["task", "pos", "ner"]
    assert float(rows[1].split(",")[1]) == pytest.approx(1.0)
    tagged = terminal.json("tag", run, "German lamb rejects EU.")
    assert tagged["tokens"] == ["German", "lamb", "rejects", "EU", "."]
    assert {len(tags) for tags in tagged["tags"].values()} == {5}
    assert {row["configuration"].split()[0] for row in terminal.json("results")} == {"MTL", "MRN"}
    log = (laboratory / "logs" / f"run-{run}.log").read_text()
    assert "Epoch 3" in log
    assert "Succeeded." in log
    wait_for(lambda: default_engine().live_workers(terminal.store) == 0)
    terminal.store.close()


GOLD = "German J B-MISC\nlamb N I-MISC\nrejects V O\nEU N O\n. . O\n"


@pytest.fixture
def run(lab: Laboratory, laboratory: Path) -> str:
    """A run that has learned its corpus."""
    (run_id,) = train_runs(lab.store, [toy_config(laboratory)])
    return str(run_id)


def test_sentences_and_files(lab: Laboratory, run: str, tmp_path: Path) -> None:
    first = lab.answer("tag", run, "German lamb rejects EU.").splitlines()[1]
    assert first.split() == ["German", "J", "B-MISC"]
    head, first, *_ = lab.answer("tag", run, "German lamb rejects EU.", "--confidence").splitlines()
    assert head.split() == ["word", "pos", "pos_confidence", "ner", "ner_confidence"]
    assert all(0.0 < float(first.split()[column]) <= 1.0 for column in (2, 4))
    text = tmp_path / "news.txt"
    text.write_text("German lamb rejects EU.\nBritish lamb can't call .\n")
    result = lab.call("tag", run, "--file", str(text))
    assert result.stdout.splitlines()[:2] == ["German\tJ\tB-MISC", "lamb\tN\tI-MISC"]
    assert "2 sentences; columns: tokens, pos, ner." in result.stderr
    assert "ca\t" in result.stdout
    assert "can't\t" in lab.answer("tag", run, "--file", str(text), "--split")
    gold = tmp_path / "gold.conll"
    gold.write_text(GOLD)
    result = lab.call("tag", run, "--file", str(gold), "--confidence")
    row = result.stdout.splitlines()[0].split("\t")
    assert (len(row), row[1], row[2]) == (7, "J", "J")
    assert "pos: accuracy 100.00% on 5 words." in result.stderr
    assert "ner: f1_conll 66.67% on 5 words." in result.stderr
    columns = tmp_path / "gold.txt"
    columns.write_text(GOLD)
    detected = lab.call("tag", run, "--file", str(columns), "--confidence")
    assert detected.stdout == result.stdout
    assert "gold.txt is read as columns: 1 word, 2 pos, 3 ner; --layout" in detected.stderr
    named = ("--columns", "tokens,pos,ner")
    assert lab.answer("tag", run, "--file", str(columns), "--confidence", *named) == result.stdout
    assert "B-MISC\t" in lab.answer("tag", run, "--file", str(columns), "--layout", "text")  # as a word
    assert "is not one of text, split" in lab.refusal("tag", run, "--file", str(gold), "--layout", "x")
    document = json.loads(lab.answer("tag", run, "--file", str(gold), "--format", "json"))
    assert document["sentences"][0]["gold"]["ner"] == ["B-MISC", "I-MISC", "O", "O", "O"]
    assert document["sentences"][0]["tags"]["ner"][3]["label"] == "B-ORG"
    assert document["scores"]["pos"] == {"accuracy": 1.0, "words": 5}
    skipped = json.loads(lab.answer("tag", run, "--file", str(gold), "--json", "--columns", "tokens,pos,_"))
    assert list(skipped["scores"]) == ["pos"]

    gold.write_text(f"{GOLD}\n" * 300)  # tagged in parts, and scored as a whole
    result = lab.call("tag", run, "--file", str(gold))
    lines = result.stdout.splitlines()
    assert len(lines) == 300 * 6
    assert {line.count("\t") for line in lines if line} == {4}
    assert "pos: accuracy 100.00% on 1,500 words." in result.stderr

    gold.write_text(GOLD + "lamb N\n")
    assert "line 6: expected 3 columns" in lab.refusal("tag", run, "--file", str(gold))
    assert "not both" in lab.refusal("tag", run, "EU", "--file", str(gold))
    assert "There is no file" in lab.refusal("tag", run, "--file", str(tmp_path / "none.txt"))
    assert "is not one of conll, json" in lab.refusal("tag", run, "--file", str(gold), "--format", "xml")
