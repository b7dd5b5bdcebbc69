"""mrnlab study transfer: its small version really trained, its report, and the published training."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from itertools import permutations
from pathlib import Path

import pytest

from core.store import RunState
from core.studies import STUDIES
from core.studies.study import with_runs
from core.studies.transfer import STUDY, TASKS
from core.transfer.features import FEATURES
from core.transfer.predictors import AMI, CORRELATION, COSINE, coefficients, judge
from jobs.studies import evidence
from tests.unit.cli.conftest import Laboratory

DEMO = ("pos", "chunk", "ner")


@pytest.mark.slow
@pytest.mark.usefixtures("studies_are_trained")
def test_the_small_version_from_end_to_end(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = [setting for setting in STUDY.settings if setting.part == STUDY.small["part"]]
    few = tuple(replace(setting, base={**setting.base, "epochs": 3}) for setting in settings)
    monkeypatch.setitem(STUDIES, "transfer", replace(STUDY, settings=few))
    monkeypatch.setattr(evidence, "judge", partial(judge, repeats=2))
    monkeypatch.setattr(evidence, "coefficients", partial(coefficients, draws=50))
    call = ("study", "transfer", "--part", "demo", "--seeds", "2")
    # Of each seed every task alone, every pair, the joint run and that of MRN.
    assert lab.json(*call, "--dry-run")["final"] == 2 * (3 + 3 + 2)

    document = json.loads(lab.answer(*call, "--json"))["demo"]
    runs = {run.id: run for run in lab.store.runs()}
    assert {run.state for run in runs.values()} == {RunState.SUCCEEDED}
    scores = {
        (runs[score.run_id].config.tasks, runs[score.run_id].config.seed, score.task): score.score
        for score in lab.store.scores(list(runs), "test")
        if runs[score.run_id].config.paradigm != "mrn"
    }
    pairs = {(pair["main"], pair["aux"]): pair for pair in document["pairs"]}
    assert set(pairs) == set(permutations(DEMO, 2))
    for (main, aux), pair in pairs.items():
        both = tuple(task for task in DEMO if task in (main, aux))
        gains = [100 * (scores[both, seed, main] - scores[(main,), seed, main]) for seed in (1, 2)]
        assert pair["gain"] == pytest.approx(sum(gains) / 2)
        assert pair["seeds"] == 2
        assert pair["low"] <= pair["gain"] <= pair["high"]
        assert -1 <= pair[COSINE] == pairs[aux, main][COSINE] <= 1
        assert -1 <= pair[CORRELATION] == pairs[aux, main][CORRELATION] <= 1
        # The demo corpus labels all words for all tasks, before `apart` deals them.
        assert 0 < pair[AMI] == pairs[aux, main][AMI] < 1
    assert document["features"].keys() == set(DEMO)
    assert all(features.keys() == FEATURES.keys() for features in document["features"].values())
    assert document["features"]["ner"]["labels"] >= 5
    names = {judgement["predictor"] for judgement in document["judgements"]}
    assert names >= {"majority", "data features", "all features", AMI, CORRELATION, COSINE}
    assert document["seconds"]["curve features"] > 0

    lines = lab.answer(*call, "--report", "markdown").splitlines()
    assert lines[0] == "## demo"
    assert "6 pairs" in lines[2]
    assert any("paired by seed (2 seeds)" in line for line in lines)
    (head,) = [line for line in lines if line.startswith("| main task |")]
    assert head.count("|") == 2 + 1 + len(DEMO)
    assert any(line.startswith("| majority (reported) | 0.555 | 0.615 |") for line in lines)

    (group,) = lab.json("transfer", "--json")
    assert (group["tasks"], group["ordered pairs"]) == (3, 6)
    assert lab.json("transfer", group["group"], "--json")["pairs"] == document["pairs"]
    assert "### Gains" in lab.answer("transfer", group["group"], "--markdown").splitlines()
    assert "no group 'other'; `mrnlab transfer` lists" in lab.refusal("transfer", "other")


def test_a_study_of_pairs_without_runs_says_so(lab: Laboratory) -> None:
    refusal = lab.refusal("study", "transfer", "--part", "demo", "--report", "markdown")
    assert "The study 'transfer' has no finished pair of tasks in this store yet." in refusal


def test_every_pair_of_the_twelve_tasks_is_trained_as_published() -> None:
    """Bingel and Søgaard 2017, but for the number of batches: as many as 60 epochs have."""
    scarce = [setting for setting in STUDY.settings if setting.part == "scarce"]
    pairs = [setting.targets for setting in scarce if len(setting.targets) == 2]
    assert len(pairs) == len(set(pairs)) == 12 * 11 / 2
    assert {task for pair in pairs for task in pair} == set(TASKS)
    run = with_runs(STUDY, scarce[0]).candidates["mtl"][0].runs[1][0]
    published = {
        "encoder": "bilstm",
        "lstm_layers": 1,
        "bilstm_hidden": 100,
        "vectors": "glove",
        "draw_tasks": "uniform",
        "batch_size": 32,
        "optimiser": "adadelta",
        "head": "linear",
        "select_by": "last",
        "paradigm": "mtl",
    }
    values = run.values()
    assert {field: values[field] for field in published} == published


def test_curves_of_others_have_features_too(lab: Laboratory, tmp_path: Path) -> None:
    log = tmp_path / "losses.txt"
    losses = [(step, 3 - 0.5 * math.log(0.2 * step + 1)) for step in range(10, 1010, 10)]
    log.write_text("".join(f"Iter {step}, task ner, loss {loss}\n" for step, loss in losses))
    features = lab.json("transfer", "--loss-log", str(log), "--json")["ner"]
    assert features["curve_a"] == pytest.approx(-0.5, rel=1e-3)
    assert features["curve_c"] == pytest.approx(0.2, rel=1e-3)
    assert features["gradient_10"] == pytest.approx(-0.5 * 0.2 / (0.2 * 100 + 1), rel=0.02)
    restarted = "".join(f"Iter {step}, task ner, loss 9\n" for step in range(10, 110, 10)) + log.read_text()
    log.write_text(restarted)
    result = lab.call("transfer", "--loss-log", str(log), "--json")
    assert json.loads(result.stdout)["ner"] == features
    assert result.stderr == (
        "ner: 10 losses left out; a later line of the log has the same step, as after a restart.\n"
    )
    log.write_text("Iter 1, task ner, loss 2.5\nEpoch 2\n")
    refusal = lab.refusal("transfer", "--loss-log", str(log))
    assert "line 2: expected `Iter N, task T, loss L`, not 'Epoch 2'" in refusal


def test_seeds_until_decided_are_for_studies_of_pairs(lab: Laboratory) -> None:
    assert "studies of pairs of tasks" in lab.refusal("study", "regimes", "--until-decided")
    assert "goes with --until-decided" in lab.refusal("study", "transfer", "--hours", "2")
    assert "above 0" in lab.refusal("study", "transfer", "--until-decided", "--hours", "0")
