"""Twenty steps of training under every paradigm and prior: curves, scores and learned relations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pins.conftest import RUNS, Call
from tests.pins.recorded import pinned


@pytest.mark.parametrize("name", RUNS)
def test_training(name: str, trained_home: Path, call: Call) -> None:
    run = str(RUNS[name])
    curves: dict[str, list[float]] = {}
    is_mrn = name.startswith("mrn")
    for metric in ("loss", "score", "penalty") if is_mrn else ("loss", "score"):
        for row in json.loads(call(trained_home, "metrics", run, metric, "--json").stdout):
            curves.setdefault(f"{row['split']} {row['task']} {metric}", []).append(row[metric])
    assert len(curves["train total loss"]) == 20
    assert len(curves["dev total score"]) == 5
    shown = json.loads(call(trained_home, "show", run, "--json").stdout)
    document = {"curves": curves, "dev": shown["dev"], "test": shown["test"], "epoch": shown["best_epoch"]}
    if is_mrn:
        labels = call(trained_home, "relations", run, "--mode", "label", "--json").stdout
        document["labels"] = json.loads(labels)["matrix"]
        document["modes"] = json.loads(call(trained_home, "relations", run, "--numbers", "--json").stdout)[
            "modes"
        ]
    pinned(f"training {name}", document)
