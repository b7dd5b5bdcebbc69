"""mrnlab study sc-lstm: its small version really trained, and what its report says."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from core.store import RunState
from core.studies import STUDIES
from core.studies.sc_lstm import STUDY
from tests.unit.cli.conftest import Laboratory

EPOCHS = 3


@pytest.mark.slow
@pytest.mark.usefixtures("studies_are_trained")
def test_the_small_version_from_end_to_end(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every method, the report with the answer first, dev by epoch, and nothing left to do."""
    (small,) = [setting for setting in STUDY.settings if setting.name == STUDY.small["setting"]]
    few = replace(small, base={**small.base, "epochs": EPOCHS})
    monkeypatch.setitem(STUDIES, "sc-lstm", replace(STUDY, settings=(few,)))
    call = ("study", "sc-lstm", "--setting", "demo", "--seeds", "1")
    plan = lab.json(*call, "--dry-run")
    # Six orders of LSTM-d and two λ of each prior, of which one counts; STL has a run for each task.
    assert (plan["search"], plan["final"]) == (6 + 2 + 2, 3 + 1 + 1)

    document = json.loads(lab.answer(*call, "--json"))
    runs = lab.store.runs()
    assert {run.state for run in runs} == {RunState.SUCCEEDED}
    assert len(runs) == 15
    (demo,) = document["settings"]
    methods = {method["name"]: method for method in demo["families"]}
    assert sorted(methods["lstm-d"]["arm"]["task_order"]) == ["chunk", "ner", "pos"]
    assert methods["lstm-s"]["from_base"] == methods["stl"]["from_base"] == {}
    for name in ("lstm-d", "sc-lstm", "relational", "paper"):
        by_task = methods[name]["from_base"]
        for task in ("pos", "mean"):
            expected = methods[name]["test"][task]["mean"] - methods["lstm-s"]["test"][task]["mean"]
            assert by_task[task]["mean"] == pytest.approx(expected)
    # STL's curve is the mean of three runs; the best epoch of a joint run is the one that was kept.
    assert list(methods["stl"]["dev_curve"]) == list(map(str, range(1, EPOCHS + 1)))
    for name in ("lstm-s", "sc-lstm"):
        curve = [epoch["mean"] for epoch in methods[name]["dev_curve"].values()]
        assert max(curve) == pytest.approx(methods[name]["dev"]["mean"])
        assert max(curve) > curve[0]

    lines = lab.answer(*call, "--report", "markdown").splitlines()
    assert lines[0] == "## The answer"
    assert lines[2].startswith("- POS + chunks + NER of the demo corpus: Against STL, ")
    assert "Against LSTM-s, " in lines[2]
    rows = list(csv.DictReader(io.StringIO(lab.answer(*call, "--report", "curves"))))
    assert len(rows) == EPOCHS * len(methods)
    assert {(row["setting"], row["seeds"]) for row in rows} == {("demo", "1")}
    again = lab.json(*call, "--dry-run")
    assert (again["search"], again["final"]) == (0, 0)


def test_published_tables_stand_beside_as_reported(lab: Laboratory) -> None:
    """Without a run, and without a verdict: they have no spread."""
    small = lab.answer("study", "sc-lstm", "--part", "10%", "--report", "markdown")
    assert "| SC-LSTM (Table 3) | reported | 95.51 | 96.04 | 89.96 |" in small
    assert "| ours (SC-LSTM) |  | – | – | – |" in small
    assert "Tables 4 to 6" not in small
    assert "ours of UD English LinES" in small
    assert "No run of yours" not in small
    whole = lab.answer("study", "sc-lstm", "--part", "all data", "--report", "markdown")
    row = "| Ma and Hovy (2016) (Tables 4 to 6, pos†, chunk†) | reported | 95.80 | 94.81 |"
    assert row in whole
