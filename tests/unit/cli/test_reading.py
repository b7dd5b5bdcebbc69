"""mrnlab runs, show, metrics, results, relations: what the recorded outputs (tests/pins) do not show."""

from __future__ import annotations

import csv
import dataclasses
import io
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from core.corpora.repeats import Repeat
from core.events import Snapshot, SplitResult, TaskFacts, Usage
from core.metrics import StepMetrics, relation_metrics
from core.mrn.relations import covariance_statistics
from core.store import RunState
from core.transfer.cosines import embedding_curve
from tests.making import (
    OWNER,
    claimed,
    config,
    epoch_metrics,
    finished,
    relations,
    run_facts,
    snapshot,
    split_result,
    task_score,
)
from tests.unit.cli.conftest import Laboratory


def _scored(lab: Laboratory, run_id: int, *tasks: str, score: float = 0.7) -> None:
    scores = tuple(task_score(task, score) for task in tasks)
    lab.store.add_result(run_id, SplitResult("test", 1, scores, {}, {}))
    lab.store.finish(run_id, RunState.SUCCEEDED, best_epoch=1, owner=OWNER)


def test_an_empty_store_says_what_to_do(lab: Laboratory) -> None:
    empty = lab.call("runs")
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert "`mrnlab launch --corpus demo" in empty.stderr
    assert lab.json("runs") == []
    assert "No run has test scores" in lab.refusal("results")
    claimed(lab.store, RunState.QUEUED, seed=5)
    assert "No run is failed or lost" in lab.call("runs", "--state", "failed,lost").stderr
    assert "No run matches" in lab.call("runs", "--filter", "paradigm:mrn lambda>0.1").stderr
    assert [run["seed"] for run in lab.json("runs", "--state", "queued,running")] == [5]


def test_the_list_of_runs_says_what_show_says(lab: Laboratory) -> None:
    lab.finished(alignment="exact")
    claimed(lab.store, RunState.QUEUED, seed=5)
    both = lab.json("runs")
    assert [sorted(run["test"]) for run in both] == [[], ["ner", "pos"]]
    for listed in both:
        shown = lab.json("show", str(listed["id"]))
        del listed["best_dev_score"]
        assert listed == {name: shown[name] for name in listed}


def test_states_are_read_by_word_and_by_stored_value(lab: Laboratory) -> None:
    stopped, queued = (claimed(lab.store, state) for state in (RunState.CANCELLED, RunState.QUEUED))
    for states, ids in (
        ("stopped", [stopped]),
        ("cancelled", [stopped]),
        ("Stopped, queued", [queued, stopped]),
        ("active", [queued]),
        ("ended", [stopped]),
    ):
        assert [run["id"] for run in lab.json("runs", "--state", states)] == ids
    refused = lab.refusal("runs", "--state", "stoped")
    assert "states are queued, running, stopping, succeeded, failed, stopped, lost, active, ended." in refused


def test_the_dev_score_of_a_correlation_is_no_percentage(lab: Laboratory) -> None:
    mixed = (
        TaskFacts("alike", "number", ("0", "5"), "pearson", train_sentences=40, train_tokens=40),
        TaskFacts("mood", "text", ("good", "bad"), "accuracy", train_sentences=40, train_tokens=40),
    )
    shown = {"89.80": mixed, "89.81": mixed[:1], "89.82%": mixed[1:]}
    for percent, tasks in shown.items():
        dev = epoch_metrics(2, 1, float(percent.rstrip("%")) / 100)
        finished(lab.store, config(), run_facts(tasks=tasks), dev)
    rows = lab.answer("runs").splitlines()[1:]
    assert [word for row in rows for word in row.split() if "89." in word] == list(shown)[::-1]


def test_a_run_with_a_value_that_is_no_longer_known_is_told(lab: Laboratory) -> None:
    """`lora:8` was once a way to train the encoder. The run keeps its scores, but is not compared."""
    run_id = lab.finished(seed=2)
    with lab.store.transaction() as connection:
        connection.execute(text("UPDATE runs SET config = replace(config, '\"full\"', '\"lora:8\"')"))
    lab.finished(paradigm="mtl")
    assert "minilm (lora:8)" in lab.answer("runs")
    assert "Made by another version: encoder_training must be full" in lab.call("runs").stderr
    shown = lab.answer("show", str(run_id))
    assert "Made by another version: encoder_training must be full, frozen or top:K" in shown
    assert "72.00%" in shown
    results = lab.call("results")
    assert "72.00" not in results.stdout
    assert f"Left out: run {run_id}, made by another version" in results.stderr
    assert "Left out" in lab.answer("appendix", *(str(run["id"]) for run in lab.json("runs")))
    assert "made by another version" in lab.refusal("appendix", str(run_id))
    assert lab.json("relations", str(run_id))["run"] == run_id


class TestResults:
    def test_the_same_seed_again_is_no_further_sample(self, lab: Laboratory) -> None:
        for seed in (1, 2, 3, 3):
            lab.finished(seed=seed)
        mtl = lab.finished(paradigm="mtl", seed=1)
        table = lab.answer("results").splitlines()
        assert "71.00 (1)" in table[1]
        assert "72.00 ± 1.00 (3)" in table[2]
        assert [line.split("  ")[0] for line in table[1:]] == ["MTL", "MRN λ=0.001"]
        assert [row["configuration"] for row in lab.json("results", str(mtl))] == ["MTL", "MTL"]

    def test_published_figures_stand_beside_what_was_trained_as_there(self, lab: Laboratory) -> None:
        same: dict[str, Any] = {"corpus": "conll2003", "tasks": ("pos", "chunk", "ner"), "paradigm": "mtl"}
        same |= {"encoder": "bert-base-cased", "pos_score": "seqeval_f1"}
        for training in ("full", "frozen"):
            run_id = claimed(lab.store, **same, encoder_training=training)
            _scored(lab, run_id, "pos", "chunk", "ner", score=0.9)
        assert "published" not in lab.answer("results")
        (row,) = [line for line in lab.answer("results", "--published").splitlines() if "published" in line]
        assert row.startswith("MTL, published (table 1) · bert-base-cased, fine-tuned")
        assert "92.90 ± 0.17" in row
        latex = lab.answer("results", "--published", "--cost", "--format", "latex")
        (row,) = [line for line in latex.splitlines() if "published (table 1)" in line]
        assert row.count("&") == 3 + 4

    def test_the_cost_of_stl_is_summed_over_its_models(self, lab: Laboratory) -> None:
        """A run of before costs were recorded has dashes."""
        for seed in (1, 2):
            for task, seconds in (("pos", 10.0), ("ner", 30.0)):
                run_id = claimed(lab.store, paradigm="stl", tasks=(task,), seed=seed)
                usage = Usage(seconds, 2**30, "process")
                facts = run_facts(parameters=22_000_000, trained_parameters=22_000_000, usage=usage)
                lab.store.set_facts(run_id, facts)
                _scored(lab, run_id, task)
        lab.finished(paradigm="mtl")
        _, stl, mtl = lab.answer("results", "--cost").splitlines()
        assert stl.split("  ")[0] == "STL"  # one row for the runs of both tasks
        assert stl.split()[-7:] == ["44.0M", "44.0M", "1.00", "GB", "(cpu)", "40", "s"]
        assert mtl.split()[-4:] == ["–", "–", "–", "–"]
        records = {(row["configuration"], row["task"]): row for row in lab.json("results", "--cost")}
        ner = records["STL", "ner"]
        assert (ner["parameters"], ner["models"], ner["seconds"]) == (44_000_000, 2, 40)
        assert ner["peak_memory"] == 2**30
        assert records["MTL", "pos"]["parameters"] is None
        rows = list(csv.DictReader(io.StringIO(lab.answer("results", "--cost", "--format", "csv"))))
        assert {row["trained_parameters"] for row in rows} == {"44000000", ""}

    def test_named_runs_that_do_not_exist_or_have_no_scores_are_told(self, lab: Laboratory) -> None:
        done, stopped = str(lab.finished()), str(claimed(lab.store, RunState.CANCELLED, seed=5))
        for verb in ("results", "appendix"):
            assert "There is no run 99;" in lab.refusal(verb, done, "99")
            result = lab.call(verb, done, stopped)
            assert (result.exit_code, result.stdout) == (0, lab.answer(verb, done))
            why = {"results": "without test scores", "appendix": "not finished"}[verb]
            assert f"Left out, {why}: run {stopped} (stopped)." in result.stderr.splitlines()
        assert f"None of these runs has test scores: run {stopped} (stopped)." in lab.refusal(
            "results", stopped
        )
        assert f"run {stopped} (stopped)." in lab.call("results", done, stopped, "--json").stderr

    def test_by_label_needs_runs_with_scores(self, lab: Laboratory) -> None:
        assert "name them" in lab.refusal("results", "--by-label")
        waiting = claimed(lab.store, RunState.QUEUED, seed=5)
        assert f"Run {waiting} is queued" in lab.refusal("results", str(waiting), "--by-label")

    @pytest.mark.parametrize(
        ("field", "facts", "rows", "note"),
        [
            (
                "auto_alignment",
                [{}, {}, {"alignment": "exact", "alignment_reason": "an older version chose it"}],
                [
                    ("MRN λ=0.001 · cooccurrence", ["cooccurrence"], "1 2"),
                    ("MRN λ=0.001 · exact", ["exact"], "3"),
                ],
                "cooccurrence in 2 runs: 1 to 2; exact in run 3",
            ),
            (
                "text",
                [{"text_hash": "aaaabbbb"}, {"text_hash": "bbbbcccc"}],
                [("MRN λ=0.001", "aaaabbbb", "1"), ("MRN λ=0.001", "bbbbcccc", "2")],
                "text bbbbcc in run 2; text aaaabb in run 1",
            ),
            (
                "text",
                [{"text_hash": "aaaabbbb"}, {"text_hash": "bbbbcccc-2"}],
                [("MRN λ=0.001", "aaaabbbb", "1"), ("MRN λ=0.001", "bbbbcccc-2", "2")],
                "Earlier versions hashed a text without deprel and features",
            ),
            (
                "text",
                [{"text_hash": "a", "repeats": (Repeat("test", "train", 15, 20),)}, {"text_hash": "a"}],
                [("MRN λ=0.001", "a", "1 2")],
                "15 of 20 test sentences are in train, word for word.",
            ),
            (
                "precision",
                [{"precision": "fp32"}, {"precision": "fp32"}, {"precision": "bf16"}],
                [("MRN λ=0.001 · fp32", "fp32", "1 2"), ("MRN λ=0.001 · bf16", "bf16", "3")],
                "fp32 in 2 runs: 1 to 2; bf16 in run 3",
            ),
            (
                "text",
                [{}, {"text_hash": "abc"}],
                [("MRN λ=0.001", "abc", "1 2")],
                "We assume that run 1 used the same text",
            ),
        ],
    )
    def test_runs_under_other_conditions_are_not_pooled(
        self, lab: Laboratory, field: str, facts: list[dict[str, Any]], rows: list[Any], note: str
    ) -> None:
        for seed, values in enumerate(facts, start=1):
            run_id = claimed(lab.store, seed=seed)
            lab.store.set_facts(run_id, run_facts(**values))
            lab.store.add_result(run_id, split_result("test"))
            lab.store.finish(run_id, RunState.SUCCEEDED)
        records = [(row["configuration"], row[field], row["runs"]) for row in lab.json("results")]
        assert all(row in records for row in rows)
        assert all(row in rows for row in records)
        assert note in lab.call("results").stderr


def test_a_run_without_its_model_says_so(lab: Laboratory) -> None:
    """As one that was restored from a record of a study."""
    run_id = str(lab.finished())
    assert f"Run {run_id} has succeeded, but this store has no model" in lab.refusal("tag", run_id, "EU .")


def test_a_curve_that_is_not_of_the_task_is_told(lab: Laboratory) -> None:
    run_id = str(lab.finished())
    call = ("metrics", run_id, "loss", "--task", "foo")
    has = "it has that of total (train), ner (train), pos (train)."
    assert lab.refusal(*call) == f"Run {run_id} has no loss of foo; {has}"
    assert "has no loss of foo (dev);" in lab.refusal(*call, "--split", "dev")
    assert "has no such metric 'los'" in lab.refusal("metrics", run_id, "los", "--task", "foo")


class TestRelations:
    def test_the_stored_steps_are_named(self, lab: Laboratory) -> None:
        run_id = str(lab.finished())
        refused = lab.refusal("relations", run_id, "--step", "9")
        assert refused == f"Run {run_id} has no relations stored at step 9, but at 1, 2."
        assert "MRN runs store them" in lab.refusal("relations", str(claimed(lab.store)), "--step", "9")

    def test_labels_that_cannot_be_related_are_named(self, lab: Laboratory) -> None:
        run_id = claimed(lab.store, alignment="disjoint")
        lab.store.set_facts(run_id, run_facts(alignment="disjoint", impossible=("task", "label")))
        lab.store.add_snapshot(run_id, snapshot(1))
        result = lab.call("relations", str(run_id), "--csv", "--mode", "label")
        assert "labels of different tasks are always zero" in result.stderr
        assert result.stdout.splitlines()[0] == "label,pos:NN,pos:VB,ner:O,ner:B-PER"

    def test_groups_of_tasks_that_cannot_be_related_are_named(self, lab: Laboratory) -> None:
        run_id = claimed(lab.store, alignment="exact", tasks=("pos", "ner", "chunk"))
        plain = run_facts().tasks
        tasks = (*plain, dataclasses.replace(plain[0], name="chunk"))
        meet = ((True, False, True), (False, True, False), (True, False, True))
        lab.store.set_facts(run_id, run_facts(alignment="exact", tasks=tasks, meet=meet))
        lab.store.add_snapshot(run_id, Snapshot(1, 0.1, relations(tasks=3)))
        notes = lab.call("relations", str(run_id)).stderr
        assert "between these groups of tasks, which share no label row: pos, chunk; ner." in notes
        assert lab.call("relations", str(run_id), "--csv", "--mode", "feature").stderr == ""

    def test_numbers_are_those_that_were_logged(self, lab: Laboratory) -> None:
        run_id = lab.finished(learn=("task", "label"))
        learned = relations(seed=2)
        spoilt = dataclasses.replace(learned, task=np.ones((2, 2)))
        lab.store.add_metrics(run_id, [relation_metrics(2, 1.0, 1.0, spoilt, objective=-7.5)])
        document = lab.json("relations", str(run_id), "--numbers")
        assert (document["step"], document["objective"], document["penalty"]) == (2, -7.5, None)
        modes = document["modes"]
        # As logged, to the last digit; JSON has no infinity.
        assert (modes["task"]["condition"], modes["task"]["strongest"]) == (None, 1.0)
        assert modes["label"]["effective_rank"] == covariance_statistics(learned, "label").effective_rank
        assert [name for name, mode in modes.items() if not mode["learned"]] == ["feature"]
        shown = lab.answer("relations", str(run_id), "--numbers").splitlines()
        assert shown[1].split() == ["task", "2", "yes", "1", "2", "inf", "1"]
        earlier = lab.json("relations", str(run_id), "--numbers", "--step", "1")
        trace = float(np.trace(relations(seed=1).task))
        assert earlier["modes"]["task"]["trace"] == pytest.approx(trace, rel=1e-5)
        assert (earlier["objective"], earlier["penalty"]) == (None, None)

    def test_a_mode_that_is_not_learned_is_said(self, lab: Laboratory) -> None:
        run_id = str(lab.finished(learn=("task",)))
        assert "label covariance is not learned" in lab.call("relations", run_id, "--mode", "label").stderr
        assert "not learned" not in lab.call("relations", run_id).stderr

    def test_several_runs_have_verdicts_over_seeds(self, lab: Laboratory) -> None:
        facts = run_facts(alignment="exact", meet=((True, True), (True, True)))
        runs = [
            finished(lab.store, config(seed=seed, alignment="exact"), facts, snapshot(3, seed=seed))
            for seed in (1, 2, 3)
        ]
        (table,) = lab.json("relations", *map(str, runs))["configurations"]
        assert table["configuration"] == "MRN λ=0.001 · 3 seeds"
        assert table["mode"] == "task"
        (pair,) = table["pairs"]
        assert (pair["first"], pair["second"], pair["seeds"]) == ("pos", "ner", 3)
        assert pair["low"] < pair["mean"] < pair["high"]
        # One run: its configuration's seeds. As a table and as CSV the same pairs.
        assert lab.json("relations", str(runs[0]), "--verdicts")["configurations"] == [table]
        assert lab.answer("relations", *map(str, runs)).startswith("MRN λ=0.001 · 3 seeds. ")
        lines = lab.answer("relations", *map(str, runs), "--csv").splitlines()
        assert lines[0].startswith("configuration,mode,first,second,mean,low,high,seeds,p_holm,verdict")
        refused = lab.refusal("relations", *map(str, runs), "--numbers")
        assert refused == "--numbers and --step are of one run; verdicts are on the last step."
        assert "has no verdicts; name one of task, label" in lab.refusal(
            "relations", *map(str, runs), "--mode", "feature"
        )

    def test_controls_are_queued_once_for_each_task_and_seed(self, lab: Laboratory) -> None:
        runs = [str(lab.finished(seed=seed, encoder_training="frozen")) for seed in (1, 2)]
        queued = lab.json("relations", *runs, "--launch-controls", "ner,pos")["runs"]
        configs = [lab.store.run(run).config for run in queued]
        assert sorted((each.seed, each.permuted) for each in configs) == [
            (1, "ner"),
            (1, "pos"),
            (2, "ner"),
            (2, "pos"),
        ]
        assert lab.json("relations", *runs, "--launch-controls", "pos,ner")["runs"] == [
            queued[place] for place in (1, 0, 3, 2)
        ]
        refused = lab.refusal("relations", runs[0], "--launch-controls", "chunk")
        assert refused == f"Run {runs[0]} has no task 'chunk' to permute; its tasks are pos, ner."
        assert "is a control itself" in lab.refusal("relations", str(queued[0]), "--launch-controls", "ner")
        assert "name the tasks to permute" in lab.refusal("relations", runs[0], "--launch-controls", ",")


class TestTaskEmbeddings:
    def test_cosines_of_an_mtl_run_at_any_step(self, lab: Laboratory) -> None:
        run = claimed(lab.store, paradigm="mtl", task_embedding="attention")
        lab.store.set_facts(run, run_facts())
        for step, value in ((3, 0.125), (6, -0.5)):
            metrics = StepMetrics(step, step / 10, 1.0, {embedding_curve("pos", "ner"): value})
            lab.store.add_metrics(run, [metrics])
        result = lab.call("relations", str(run), "--mode", "embedding")
        assert "step 6, epoch 0.6: cosines of the task embeddings (attention)." in result.stderr
        assert [line.split() for line in result.stdout.splitlines()] == [
            ["embedding", "pos", "ner"],
            ["pos", "1.000", "-0.500"],
            ["ner", "-0.500", "1.000"],
        ]
        document = lab.json("relations", str(run), "--mode", "embedding", "--step", "3")
        assert (document["step"], document["task_embedding"]) == (3, "attention")
        assert document["matrix"] == [[1, 0.125], [0.125, 1]]
        csv_text = lab.answer("relations", str(run), "--mode", "embedding", "--csv")
        assert csv_text.splitlines()[1] == "pos,1.0,-0.5"

    def test_refused_where_there_is_nothing_to_show(self, lab: Laboratory) -> None:
        embedded = claimed(lab.store, paradigm="mtl", task_embedding="input")
        none_yet = lab.refusal("relations", str(embedded), "--mode", "embedding", "--step", "3")
        assert f"Run {embedded} has no cosines of task embeddings stored at step 3." in none_yet
        assert "only MRN runs learn relations" in lab.refusal("relations", str(embedded))
        plain = str(lab.finished())
        assert "has no task embeddings; launch one with" in lab.refusal(
            "relations", plain, "--mode", "embedding"
        )
        assert "not one of task, label, feature, embedding." in lab.refusal(
            "relations", plain, "--mode", "pos"
        )
