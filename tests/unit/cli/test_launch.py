"""mrnlab launch: what it queues, and how it waits."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from core.errors import MRNLabError
from core.store import RunState
from jobs.cli import launch
from jobs.cli.launch import wait_for_runs
from tests.making import claimed
from tests.unit.cli.conftest import Laboratory, launch_arguments
from tests.unit.test_published_protocol import PUBLISHED


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

    def test_lists_of_any_field(self, lab: Laboratory, corpus: Path) -> None:
        lab.answer(
            *launch_arguments(corpus, "--epochs", "1,2", "--set", "dropout=0.1,0.2", "--set", "seed=0")
        )
        configs = [run.config for run in lab.store.runs()]
        assert {(config.epochs, config.dropout, config.seed) for config in configs} == {
            (epochs, dropout, 0) for epochs in (1, 2) for dropout in (0.1, 0.2)
        }

    def test_the_dissertation_preset_prints_every_published_value(
        self, lab: Laboratory, corpus: Path
    ) -> None:
        arguments = launch_arguments(
            corpus, "--preset", "dissertation", "--encoder", "minilm+bilstm", "--paradigm", "mrn"
        )
        (run,) = lab.json(*arguments)["runs"]
        published = {field: value for field, value, _ in PUBLISHED if field != "encoder"}
        printed = {field: run["config"][field] for field in published}
        assert printed == published | {"learn": list(published["learn"])}

    def test_a_mapping_beside_another_alignment(self, lab: Laboratory, corpus: Path) -> None:
        file = corpus / "labels.csv"
        file.write_text("task,label,general\nner,B-ORG,thing\ntoy,X,thing\nsrl,A0,thing\n")
        result = lab.call(*launch_arguments(corpus, "--alignment", f"exact,mapping:{file}", "--json"))
        (note,) = [note for note in json.loads(result.stdout)["notes"] if "also has rows of srl" in note]
        assert note in result.stderr
        mapped, exact = lab.store.runs()
        assert exact.config.alignment == "exact"
        assert Path(str(mapped.config.alignment).removeprefix("mapping:")).read_bytes() == file.read_bytes()

    def test_reuse_queues_only_what_is_missing(self, lab: Laboratory, corpus: Path) -> None:
        lab.answer(*launch_arguments(corpus, "--seeds", "1,2"))
        result = lab.call(*launch_arguments(corpus, "--seeds", "1-3", "--reuse", "--json"))
        document = json.loads(result.stdout)
        assert ([run["id"] for run in document["runs"]], document["reused"]) == ([1, 2, 3], [1, 2])
        assert "Uses 2 runs: 1 to 2, there already." in result.stderr
        assert "Queued run 3." in result.stderr
        again = lab.call(*launch_arguments(corpus, "--seeds", "1-3", "--reuse"))
        assert again.stdout.strip() == "1,2,3"
        assert "Nothing is left to queue." in again.stderr
        assert len(lab.store.runs()) == 3


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

    def test_workers_that_end_at_once_are_not_waited_for_for_ever(self, lab: Laboratory) -> None:
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
