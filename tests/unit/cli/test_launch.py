"""mrnlab launch: what it queues, and how it waits."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from core.errors import MRNLabError
from core.store import RunState
from jobs.cli import launch
from jobs.cli.launch import wait_for_runs
from jobs.queue import maintenance
from tests.making import claimed
from tests.unit.cli.conftest import Laboratory, launch_arguments


class TestLaunch:
    def test_a_sweep(self, lab: Laboratory, corpus: Path) -> None:
        document = lab.json(
            *launch_arguments(
                corpus, "--paradigm", "stl,mtl,mrn", "--lambda", "0.01,0.1", "--seeds", "1-2",
                "--sweep", "all", "--set", "batch_size=8",
                "--set", "encoder-training=frozen", "--set", "learn=task,label",
            )
        )  # fmt: skip
        assert [run["id"] for run in document["runs"]] == list(range(1, 11))
        assert [run["state"] for run in document["runs"]] == ["queued"] * 10
        assert lab.started == 1
        runs = lab.store.runs()
        assert {run.sweep for run in runs} == {"all"}
        configs = [run.config for run in reversed(runs)]
        assert {(config.batch_size, config.encoder_training) for config in configs} == {(8, "frozen")}
        assert {config.learn for config in configs if config.paradigm == "mrn"} == {("task", "label")}
        assert [(config.paradigm, config.lambda_, config.seed) for config in configs] == [
            *[("stl", None, 1), ("stl", None, 2)] * 2,
            ("mtl", None, 1), ("mtl", None, 2),
            ("mrn", 0.01, 1), ("mrn", 0.01, 2), ("mrn", 0.1, 1), ("mrn", 0.1, 2),
        ]  # fmt: skip

    def test_groups_of_tasks_on_corpora_whose_options_are_lists(self, lab: Laboratory) -> None:
        arguments = ["launch", "--paradigm", "stl,mtl", "--encoder-training", "frozen", "--seeds", "1,2"]
        lab.answer(*arguments, "--corpus", "demo?train={100|200}", "--task-groups", "pairs")
        made = [(run.config.corpus, run.config.paradigm, run.config.tasks) for run in lab.store.runs()]
        pairs = [("pos", "chunk"), ("pos", "ner"), ("chunk", "ner")]
        assert Counter(made) == {
            (f"demo?train={number}", paradigm, group): 2
            for number in (100, 200)
            for paradigm, groups in (("stl", [("pos",), ("chunk",), ("ner",)]), ("mtl", pairs))
            for group in groups
        }

    def test_without_tasks_all_of_the_corpus_are_taken_and_named(self, lab: Laboratory, corpus: Path) -> None:
        """On standard error: standard output is the ids, or one JSON document."""
        launch_words = ("launch", "--corpus", str(corpus), "--columns", "tokens,ner,toy", "--paradigm", "mtl")
        result = lab.call(*launch_words, "--json")
        assert json.loads(result.stdout)["runs"][0]["config"]["tasks"] == ["ner", "toy"]
        assert f"Takes all tasks of {corpus}: ner, toy." in result.stderr.splitlines()
        result = lab.call("launch", "--corpus", "demo?train={100|200}", "--paradigm", "stl,mtl")
        assert result.stdout == "2,3,4,5,6,7,8,9\n"
        assert [line for line in result.stderr.splitlines() if line.startswith("Takes")] == [
            f"Takes all tasks of demo?train={number}: pos, chunk, ner." for number in (100, 200)
        ]
        named = lab.call(*launch_words, "--tasks", "toy,ner")
        assert "Takes" not in named.stderr
        lab.answer(*launch_words[:-1], "stl", "--task-groups", "each")
        assert [run.config.tasks for run in lab.store.runs()][:3] == [("toy",), ("ner",), ("toy", "ner")]

    def test_encoders_over_words_and_lists_that_are_one_value(self, lab: Laboratory, corpus: Path) -> None:
        settings = ["--set", "head=linear,crf", "--set", "task_weights=3,1", "--set", "task_order=toy,ner"]
        lists = ["--encoder", "lstm-d", "--paradigm", "stl,mtl", "--epochs", "2", "--seeds", "1"]
        lab.answer(*launch_arguments(corpus, *lists, *settings))
        configs = [run.config for run in lab.store.runs()]
        assert sorted((config.paradigm, config.head) for config in configs) == [
            ("mtl", "crf"), ("mtl", "linear"), *[("stl", "crf")] * 2, *[("stl", "linear")] * 2,
        ]  # fmt: skip
        assert {
            (config.task_weights, config.task_order) for config in configs if config.paradigm == "mtl"
        } == {((3.0, 1.0), ("toy", "ner"))}
        assert {config.task_weights for config in configs if config.paradigm == "stl"} == {None}

    def test_the_sc_lstm_preset_and_its_rivals(self, lab: Laboratory, corpus: Path) -> None:
        lab.answer(*launch_arguments(corpus, "--preset", "sc-lstm", "--encoder", "bilstm,sc-lstm"))
        stacks, shared = sorted((run.config for run in lab.store.runs()), key=lambda config: config.encoder)
        assert (stacks.encoder, stacks.lstm_layers, stacks.paradigm) == ("bilstm", 3, "mtl")
        assert shared == stacks.with_(encoder="sc-lstm")

    def test_reuse_queues_only_what_is_missing(self, lab: Laboratory, corpus: Path) -> None:
        lab.answer(*launch_arguments(corpus, "--seeds", "1,2"))
        result = lab.call(*launch_arguments(corpus, "--seeds", "1-3", "--reuse", "--json"))
        document = json.loads(result.stdout)
        assert ([run["id"] for run in document["runs"]], document["reused"]) == ([1, 2, 3], [1, 2])
        assert "Uses 2 runs: 1 to 2, already in the store." in result.stderr
        assert "Queued run 3." in result.stderr
        again = lab.call(*launch_arguments(corpus, "--seeds", "1-3", "--reuse"))
        assert again.stdout.strip() == "1,2,3"
        assert "Nothing is left to queue." in again.stderr
        assert len(lab.store.runs()) == 3

    def test_a_dry_run_queues_nothing(self, lab: Laboratory, corpus: Path) -> None:
        lab.answer(*launch_arguments(corpus, "--seeds", "1"))
        result = lab.call(*launch_arguments(corpus, "--seeds", "1-3", "--reuse", "--dry-run"))
        assert result.stdout.startswith("2 runs: no estimate")
        assert len(lab.store.runs()) == 1


class TestWaiting:
    def test_follows_runs_to_their_end(self, lab: Laboratory, capsys: pytest.CaptureFixture[str]) -> None:
        first, second = claimed(lab.store), claimed(lab.store)
        steps: Iterator[Callable[[], object]] = iter(
            [
                lambda: lab.store.set_progress(first, 5, 1.0, 20),
                lambda: lab.store.finish(first, RunState.SUCCEEDED),
                lambda: lab.store.mark_lost(second, "The worker of run 2 stopped answering 70 s ago."),
            ]
        )
        wait_for_runs(lab.store, [first, second], sleep=lambda _: next(steps)())
        printed = capsys.readouterr()
        assert printed.out == ""
        assert f"Run {first} running: epoch 1.0 of 5, step 5 of 20" in printed.err
        assert f"Run {second} lost after" in printed.err
        assert "stopped answering 70 s ago" in printed.err

    def test_workers_that_end_at_once_are_not_waited_for_for_ever(
        self, lab: Laboratory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(maintenance, "FIRST_REST_S", 0.01)
        run_id = claimed(lab.store, RunState.QUEUED)
        with pytest.raises(MRNLabError, match=r"5 workers ended .*workers\.log says why"):
            wait_for_runs(lab.store, [run_id], sleep=lambda _: time.sleep(0.02))
        assert lab.started == 5
        assert lab.store.state(run_id) is RunState.QUEUED

    def test_ctrl_c_leaves_the_runs_alive(
        self, lab: Laboratory, corpus: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupt(_seconds: float) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(launch, "wait_for_runs", partial(wait_for_runs, sleep=interrupt))
        result = lab.call(*launch_arguments(corpus, "--wait"))
        assert result.exit_code == 130
        assert "go on in the background" in result.stderr
        assert lab.store.state(1) is RunState.QUEUED
