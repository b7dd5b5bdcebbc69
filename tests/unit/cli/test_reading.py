"""mrnlab runs, show, metrics, results, relations: what is in the store, in every form."""

from __future__ import annotations

import csv
import dataclasses
import io
from typing import Any

import numpy as np
import pytest

from core.evaluation import score_task
from core.mrn.relations import covariance_statistics
from core.paths import log_path
from core.records import RunFacts, Snapshot, SplitResult, Usage, relation_metrics
from core.store import RunState
from tests.making import (
    OWNER,
    claimed,
    relations,
    run_facts,
    snapshot,
    split_result,
    task_score,
)
from tests.unit.cli.terminal import Laboratory


class TestReading:
    def test_runs(self, lab: Laboratory) -> None:
        nothing = lab.call("runs")
        assert (nothing.exit_code, nothing.stdout) == (0, "")
        assert "`mrnlab launch --corpus demo" in nothing.stderr
        assert lab.json("runs") == []
        done, waiting_ = lab.finished(), claimed(lab.store, RunState.QUEUED, seed=5)
        assert "No run is failed or lost" in lab.call("runs", "--state", "failed,lost").stderr
        lines = lab.answer("runs").splitlines()
        assert lines[0].split()[:2] == ["run", "state"]
        assert lines[1].split()[:2] == [str(waiting_), "queued"]
        assert lines[2].split()[:2] == [str(done), "succeeded"]
        assert lines[2].endswith("50.00%")
        listed = lab.json("runs", "--state", "queued,running")
        assert [(run["id"], run["seed"]) for run in listed] == [(waiting_, 5)]

    def test_runs_found_by_a_filter(self, lab: Laboratory) -> None:
        done = lab.finished()
        claimed(lab.store, RunState.FAILED, paradigm="mtl")
        assert [run["id"] for run in lab.json("runs", "--filter", "paradigm:mrn lambda<0.1")] == [done]
        assert "No run matches" in lab.call("runs", "--filter", "paradigm:mrn lambda>0.1").stderr
        assert "no field 'lamda'" in lab.refusal("runs", "--filter", "lamda<0.1")

    def test_show(self, lab: Laboratory) -> None:
        run_id = lab.finished()
        log_path(run_id).write_text("first\nlast line\n")
        told = lab.answer("show", str(run_id), "--log", "1")
        reason = "Alignment cooccurrence: the tasks share sentences."
        for words in ("succeeded", "lambda", "71.00%", "Started by process 4242", "last line", reason):
            assert words in told
        assert "first" not in told
        document = lab.json("show", str(run_id))
        assert document["config"]["lambda"] == 0.01
        assert document["test"]["pos"]["score"] == 0.71
        assert document["alignment"] == "cooccurrence"
        assert [event["kind"] for event in document["history"]] == ["running", "succeeded"]

    def test_show_a_failure(self, lab: Laboratory) -> None:
        run_id = claimed(lab.store, RunState.LOST)
        assert "It went away." in lab.answer("show", str(run_id))

    def test_metrics(self, lab: Laboratory) -> None:
        run_id = str(lab.finished())
        assert "penalty" not in lab.answer("metrics", run_id)
        rows = list(csv.DictReader(io.StringIO(lab.answer("metrics", run_id, "loss", "--csv"))))
        assert len(rows) == 2 * 3
        assert {(row["task"], row["split"]) for row in rows} == {
            ("total", "train"),
            ("pos", "train"),
            ("ner", "train"),
        }
        assert [float(row["loss"]) for row in rows if row["task"] == "ner"] == [0.5, 0.5]
        only = lab.json("metrics", run_id, "score", "--task", "pos", "--split", "dev")
        assert only == [
            {"step": 2, "epoch": 1.0, "seconds": 1.0, "task": "pos", "split": "dev", "score": 0.5}
        ]
        sentence = lab.refusal("metrics", run_id, "height")
        assert "'height'" in sentence
        assert "it has score, loss, lr" in sentence

    def test_results(self, lab: Laboratory) -> None:
        assert "No run has test scores" in lab.refusal("results")
        for seed in (1, 2, 3):
            lab.finished(seed=seed)
        lab.finished(seed=3)  # the same seed again is no further sample
        mtl = lab.finished(paradigm="mtl", seed=1)
        table = lab.answer("results").splitlines()
        assert table[0].split("  ")[0] == "configuration"
        assert "71.00 (1)" in table[1]
        assert "72.00 ± 1.00 (3)" in table[2]
        assert [line.split("  ")[0] for line in table[1:]] == ["MTL", "MRN λ 0.01"]
        markdown = lab.answer("results", "--format", "markdown").splitlines()
        assert markdown[1].startswith("| --- | ---: |")
        assert all(line.count("|") == 4 for line in markdown[:-2])
        assert markdown[-1].startswith("demo, test sentences, in percent: mean ± standard")
        latex = lab.answer("results", "--format", "latex")
        assert r"72.00 $\pm$ 1.00 (3)" in latex
        assert r"MRN $\lambda$ 0.01" in latex
        rows = list(csv.DictReader(io.StringIO(lab.answer("results", "--format", "csv"))))
        assert {(row["task"], row["n"]) for row in rows} == {
            ("pos", "3"),
            ("ner", "3"),
            ("pos", "1"),
            ("ner", "1"),
        }
        (pos,) = [row for row in rows if (row["task"], row["n"]) == ("pos", "3")]
        assert float(pos["sd"]) == pytest.approx(0.01)
        assert [row["configuration"] for row in lab.json("results", str(mtl))] == ["MTL", "MTL"]

    def test_results_with_published_figures(self, lab: Laboratory) -> None:
        """Beside what was trained as there; not beside the same over a frozen encoder."""
        same = {"corpus": "conll2003", "tasks": ("pos", "chunk", "ner"), "pos_score": "seqeval_f1"}
        same |= {"paradigm": "mtl", "encoder": "bert-base-cased"}
        for training in ("full", "frozen"):
            run_id = claimed(lab.store, **same, encoder_training=training)
            scores = tuple(task_score(task, 0.9) for task in ("pos", "chunk", "ner"))
            lab.store.add_result(run_id, SplitResult("test", 1, scores, {}, {}))
            lab.store.finish(run_id, RunState.SUCCEEDED, best_epoch=1, owner=OWNER)
        assert "published" not in lab.answer("results")
        (row,) = [line for line in lab.answer("results", "--published").splitlines() if "published" in line]
        assert row.startswith("MTL, published (table 1) · bert-base-cased, fine-tuned")
        assert "92.90 ± 0.17" in row
        latex = lab.answer("results", "--published", "--cost", "--format", "latex")
        (row,) = [line for line in latex.splitlines() if "published (table 1)" in line]
        assert row.count("&") == 3 + 4

    def test_results_with_their_cost(self, lab: Laboratory) -> None:
        """STL is a model per task: summed; a run of before its cost was told has dashes."""
        for seed in (1, 2):
            for task, seconds in (("pos", 10.0), ("ner", 30.0)):
                run_id = claimed(lab.store, paradigm="stl", tasks=(task,), seed=seed)
                usage = Usage(seconds, 2**30, "process")
                facts = run_facts(parameters=22_000_000, trained_parameters=22_000_000, usage=usage)
                lab.store.set_facts(run_id, facts)
                lab.store.add_result(run_id, SplitResult("test", 1, (task_score(task, 0.7),), {}, {}))
                lab.store.finish(run_id, RunState.SUCCEEDED, best_epoch=1, owner=OWNER)
        lab.finished(paradigm="mtl")
        head, stl, mtl = lab.answer("results", "--cost").splitlines()
        assert head.endswith("Time per seed")
        assert stl.split("  ")[0] == "STL"
        assert stl.split()[-7:] == ["44.0M", "44.0M", "1.00", "GB", "(cpu)", "40", "s"]
        assert mtl.split()[-4:] == ["–", "–", "–", "–"]
        assert "summed over tasks" in lab.answer("results", "--cost", "--format", "markdown")
        records = {(row["configuration"], row["task"]): row for row in lab.json("results", "--cost")}
        assert records["STL", "ner"]["parameters"] == 44_000_000
        assert records["STL", "ner"]["models"] == 2
        assert records["STL", "ner"]["seconds"] == 40
        assert records["STL", "ner"]["peak_memory"] == 2**30
        assert records["MTL", "pos"]["parameters"] is None
        rows = list(csv.DictReader(io.StringIO(lab.answer("results", "--cost", "--format", "csv"))))
        assert {row["trained_parameters"] for row in rows} == {"44000000", ""}
        assert "parameters" not in lab.json("results")[0]

    def test_results_by_label(self, lab: Laboratory) -> None:
        assert "name them" in lab.refusal("results", "--by-label")
        waiting_ = claimed(lab.store, RunState.QUEUED, seed=5)
        assert f"Run {waiting_} is queued" in lab.refusal("results", str(waiting_), "--by-label")
        run_id = claimed(lab.store)
        scores = (
            score_task("pos", "plain", [["NN", "NN", "VB"]], [["NN", "VB", "VB"]]),
            score_task("ner", "iob2", [["B-PER", "O", "B-LOC"]], [["B-PER", "O", "B-PER"]]),
        )
        lab.store.add_result(run_id, SplitResult("test", 1, scores, {}, {}))
        lab.store.finish(run_id, RunState.SUCCEEDED)
        asked = ("results", str(run_id), "--by-label")
        table = lab.answer(*asked).splitlines()
        assert [line.split() for line in table] == [
            ["type", "Precision", "Recall", "F1", "Support"],
            ["LOC", "0.00", "0.00", "0.00", "1"],
            ["PER", "50.00", "100.00", "66.67", "1"],
            ["micro", "average", "50.00", "50.00", "50.00", "2"],
            ["macro", "average", "25.00", "50.00", "33.33", "2"],
            ["weighted", "average", "25.00", "50.00", "33.33", "2"],
            [],
            ["label", "Precision", "Recall", "F1", "Support"],
            ["NN", "100.00", "50.00", "66.67", "2"],
            ["VB", "50.00", "100.00", "66.67", "1"],
            ["micro", "average", "66.67", "66.67", "66.67", "3"],
            ["macro", "average", "75.00", "75.00", "66.67", "3"],
            ["weighted", "average", "83.33", "66.67", "66.67", "3"],
        ]
        assert f"ner of run {run_id} · MRN" in lab.call(*asked).stderr
        rows = list(csv.DictReader(io.StringIO(lab.answer(*asked, "--format", "csv"))))
        assert [row["label"] for row in rows if row["row"] == "type"] == ["LOC", "PER"]
        assert [(float(row["f1"]), row["support"]) for row in rows if row["label"] == "macro"] == [
            (pytest.approx(1 / 3), "2"),
            (pytest.approx(2 / 3), "3"),
        ]
        assert lab.json(*asked)[0] == {
            "run": run_id, "task": "ner", "split": "test", "row": "type", "label": "LOC",
            "precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1,
        }  # fmt: skip
        assert r"macro average & 25.00 & 50.00 & 33.33 & 2 \\" in lab.answer(*asked, "--format", "latex")
        assert "| PER | 50.00 | 100.00 | 66.67 | 1 |" in lab.answer(*asked, "--format", "markdown")

    def test_results_tell_what_auto_was(self, lab: Laboratory) -> None:
        first, second = (lab.finished() for _ in range(2))
        told = lab.call("results").stderr
        assert f"Alignment cooccurrence in 2 runs: {first} to {second}: the tasks share sentences." in told
        other = claimed(lab.store, seed=9)
        lab.store.set_facts(other, run_facts(alignment="exact", alignment_reason="an older version chose it"))
        lab.store.add_result(other, split_result("test"))
        lab.store.finish(other, RunState.SUCCEEDED)
        told = lab.call("results").stderr
        assert f"Alignment exact in run {other}: an older version chose it." in told
        rows = lab.json("results")
        assert {(row["configuration"], *row["auto_alignment"], row["n"]) for row in rows} == {
            ("MRN λ 0.01 · cooccurrence", "cooccurrence", 1), ("MRN λ 0.01 · exact", "exact", 1),
        }  # fmt: skip
        assert f"cooccurrence in 2 runs: {first} to {second}; exact in run {other}" in told

    def test_runs_on_changed_text_are_not_pooled(self, lab: Laboratory) -> None:
        first, second = (
            self._on(lab, seed, text_hash=text) for seed, text in ((1, "aaaabbbb"), (2, "bbbbcccc"))
        )
        table = lab.answer("results", "--format", "markdown")
        assert sum(line.startswith("| MRN") for line in table.splitlines()) == 2
        told = lab.call("results").stderr
        assert f"text bbbbcc in run {second}; text aaaabb in run {first}" in told
        rows = lab.json("results")
        assert {(row["text"], row["n"], row["runs"]) for row in rows} == {
            ("aaaabbbb", 1, str(first)), ("bbbbcccc", 1, str(second)),
        }  # fmt: skip

    def test_runs_in_several_precisions_are_not_pooled(self, lab: Laboratory) -> None:
        runs = [self._on(lab, seed, precision=name) for seed, name in ((1, "fp32"), (2, "fp32"), (3, "bf16"))]
        rows = lab.json("results")
        assert {(row["configuration"], row["precision"], row["n"]) for row in rows} == {
            ("MRN λ 0.01 · fp32", "fp32", 2), ("MRN λ 0.01 · bf16", "bf16", 1),
        }  # fmt: skip
        told = lab.call("results").stderr
        assert f"fp32 in 2 runs: {runs[0]} to {runs[1]}; bf16 in run {runs[2]}" in told

    def test_a_run_of_unknown_text_stands_with_the_others_and_is_named(self, lab: Laboratory) -> None:
        old, _new = self._on(lab, 1), self._on(lab, 2, text_hash="abc")
        assert {row["n"] for row in lab.json("results")} == {2}
        assert f"The text of run {old} was not recorded" in lab.call("results").stderr

    def _on(self, lab: Laboratory, seed: int, **facts: Any) -> int:
        run_id = claimed(lab.store, seed=seed)
        lab.store.set_facts(run_id, run_facts(**facts))
        lab.store.add_result(run_id, split_result("test"))
        lab.store.finish(run_id, RunState.SUCCEEDED)
        return run_id

    def test_single_task_runs_make_one_row(self, lab: Laboratory) -> None:
        run_ids = [claimed(lab.store, paradigm="stl", tasks=(task,)) for task in ("pos", "ner")]
        for run_id, task in zip(run_ids, ("pos", "ner"), strict=True):
            result = split_result("test")
            (score,) = [one for one in result.scores if one.task == task]
            lab.store.add_result(run_id, type(result)("test", 1, (score,), {}, {}))
            lab.store.finish(run_id, RunState.SUCCEEDED)
        rows = lab.json("results")
        assert [(row["configuration"], row["n"]) for row in rows] == [("STL", 1), ("STL", 1)]
        assert len(lab.answer("results").splitlines()) == 2


class TestRelations:
    def test_a_labelled_matrix(self, lab: Laboratory) -> None:
        run_id = str(lab.finished())
        result = lab.call("relations", run_id, "--mode", "task", "--step", "last", "--csv")
        assert (result.exit_code, result.stderr) == (0, "")
        rows = list(csv.reader(io.StringIO(result.stdout)))
        assert rows[0] == ["task", "pos", "ner"]
        assert [row[0] for row in rows[1:]] == ["pos", "ner"]
        expected = relations(seed=2).correlation("task")
        assert float(rows[1][2]) == pytest.approx(expected[0, 1], abs=1e-3)
        first = lab.json("relations", run_id, "--step", "1", "--mode", "label")
        assert first["labels"] == ["pos:NN", "pos:VB", "ner:O", "ner:B-PER"]
        assert first["matrix"][0][0] == pytest.approx(1.0)
        assert len(lab.answer("relations", run_id, "--mode", "feature", "--csv").splitlines()) == 17

    def test_what_the_alignment_makes_impossible_is_said(self, lab: Laboratory) -> None:
        run_id = claimed(lab.store, alignment="disjoint")
        facts: RunFacts = run_facts(alignment="disjoint", impossible=("task", "label"))
        lab.store.set_facts(run_id, facts)
        lab.store.add_snapshot(run_id, snapshot(1))
        result = lab.call("relations", str(run_id), "--csv")
        assert result.exit_code == 0
        assert "cannot be other than zero" in result.stderr
        assert "disjoint" in result.stderr
        labels = lab.call("relations", str(run_id), "--csv", "--mode", "label").stderr
        assert "labels of different tasks cannot be other than zero" in labels

    def test_groups_of_tasks_that_cannot_be_related_are_named(self, lab: Laboratory) -> None:
        run_id = claimed(lab.store, alignment="exact", tasks=("pos", "ner", "chunk"))
        plain = run_facts().tasks
        tasks = (*plain, dataclasses.replace(plain[0], name="chunk"))
        meet = ((True, False, True), (False, True, False), (True, False, True))
        lab.store.set_facts(run_id, run_facts(alignment="exact", tasks=tasks, meet=meet))
        lab.store.add_snapshot(run_id, Snapshot(1, 0.1, relations(tasks=3)))
        told = lab.call("relations", str(run_id)).stderr
        assert "'exact'" in told
        assert "between these groups of tasks, which share no label row: pos, chunk; ner." in told
        assert "groups" not in lab.call("relations", str(run_id), "--mode", "feature", "--csv").stderr
        assert lab.call("relations", str(run_id), "--csv", "--mode", "feature").stderr == ""

    def test_numbers_of_every_mode(self, lab: Laboratory) -> None:
        run_id = lab.finished(learn=("task", "label"))
        learned = relations(seed=2)
        logged = relation_metrics(
            2, 1.0, 1.0, dataclasses.replace(learned, task=np.ones((2, 2))), objective=-7.5
        )
        lab.store.add_metrics(run_id, [logged])
        document = lab.json("relations", str(run_id), "--numbers")
        assert (document["step"], document["objective"], document["penalty"]) == (2, -7.5, None)
        # As logged, to the last digit; JSON has no infinity.
        assert document["modes"]["task"]["condition"] is None
        assert document["modes"]["task"]["strongest"] == 1.0
        label = document["modes"]["label"]
        assert label["effective_rank"] == covariance_statistics(learned, "label").effective_rank
        assert label["pairs"][0]["correlation"] == pytest.approx(label["strongest"], abs=1e-3)
        assert {label["pairs"][0][name].split(":")[0] for name in ("first", "second")} <= {"pos", "ner"}
        assert [mode for mode, one in document["modes"].items() if not one["learned"]] == ["feature"]
        told = lab.call("relations", str(run_id), "--numbers")
        assert "objective J -7.5" in told.stderr
        lines = told.stdout.splitlines()
        assert lines[1].split() == ["task", "2", "yes", "1", "2", "inf", "1"]
        assert not any(line.startswith("feature feature") for line in lines)
        (first,) = csv.DictReader(io.StringIO(lab.answer("metrics", str(run_id), "task_condition", "--csv")))
        assert (first["step"], first["task"], first["task_condition"]) == ("2", "total", "inf")

    def test_numbers_of_a_step_without_logged_ones(self, lab: Laboratory) -> None:
        run_id = str(lab.finished())
        document = lab.json("relations", run_id, "--numbers", "--step", "1")
        trace = float(np.trace(relations(seed=1).task))
        assert document["modes"]["task"]["trace"] == pytest.approx(trace, rel=1e-5)
        assert (document["objective"], document["penalty"]) == (None, None)
        rows = list(csv.DictReader(io.StringIO(lab.answer("relations", run_id, "--numbers", "--csv"))))
        assert [row["mode"] for row in rows] == ["task", "label", "feature"]

    def test_a_mode_that_is_not_learned_is_said(self, lab: Laboratory) -> None:
        run_id = str(lab.finished(learn=("task",)))
        assert "label covariance is not learned" in lab.call("relations", run_id, "--mode", "label").stderr
        assert "not learned" not in lab.call("relations", run_id).stderr

    def test_refusals(self, lab: Laboratory) -> None:
        run_id, mtl = str(lab.finished()), str(claimed(lab.store, paradigm="mtl"))
        assert "MTL" in lab.refusal("relations", mtl)
        assert "task, label, feature" in lab.refusal("relations", run_id, "--mode", "colour")
        assert "step 9" in lab.refusal("relations", run_id, "--step", "9")
        assert "'first'" in lab.refusal("relations", run_id, "--step", "first")
