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
from tests.making import (
    claimed,
)
from tests.unit.cli.terminal import Laboratory, launch_arguments
from tests.unit.test_published_protocol import PUBLISHED


class TestLaunch:
    def test_one_run(self, lab: Laboratory, corpus: Path) -> None:
        assert lab.answer(*launch_arguments(corpus)) == "1\n"
        run = lab.store.run(1)
        assert run.state is RunState.QUEUED
        assert run.config.tasks == ("ner", "toy")
        assert lab.started == 1

    def test_a_sweep(self, lab: Laboratory, corpus: Path) -> None:
        document = lab.json(
            *launch_arguments(
                corpus, "--paradigm", "stl,mtl,mrn", "--lambda", "0.01,0.1", "--seeds", "1,2",
                "--sweep", "all", "--set", "batch_size=8", "--set", "encoder-training=frozen",
            )
        )  # fmt: skip
        assert [run["id"] for run in document["runs"]] == list(range(1, 11))
        assert [run["state"] for run in document["runs"]] == ["queued"] * 10
        found = lab.store.runs()
        assert {run.sweep for run in found} == {"all"}
        assert {run.config.batch_size for run in found} == {8}
        assert {run.config.encoder_training for run in found} == {"frozen"}
        told = [(run.config.paradigm, run.config.lambda_, run.config.seed) for run in reversed(found)]
        assert told == [
            *[("stl", None, 1), ("stl", None, 2)] * 2,
            ("mtl", None, 1), ("mtl", None, 2),
            ("mrn", 0.01, 1), ("mrn", 0.01, 2), ("mrn", 0.1, 1), ("mrn", 0.1, 2),
        ]  # fmt: skip

    def test_the_dissertation_preset_prints_every_published_value(
        self, lab: Laboratory, corpus: Path
    ) -> None:
        asked = launch_arguments(
            corpus, "--preset", "dissertation", "--encoder", "minilm+bilstm", "--paradigm", "mrn"
        )
        (run,) = lab.json(*asked)["runs"]
        published = {field: value for field, value, _ in PUBLISHED if field != "encoder"}
        printed = {field: run["config"][field] for field in published}
        assert printed == published | {"learn": list(published["learn"])}

    def test_a_mapping_beside_another_alignment(self, lab: Laboratory, corpus: Path) -> None:
        file = corpus / "labels.csv"
        file.write_text("task,label,general\nner,B-ORG,thing\ntoy,X,thing\nsrl,A0,thing\n")
        document = lab.json(*launch_arguments(corpus, "--alignment", f"exact,mapping:{file}"))
        assert any("also has rows of srl" in note for note in document["notes"])
        mapped, exact = lab.store.runs()
        assert exact.config.alignment == "exact"
        assert Path(str(mapped.config.alignment).removeprefix("mapping:")).read_bytes() == file.read_bytes()

    def test_folders_are_stored_by_their_whole_path(
        self, lab: Laboratory, corpus: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(corpus.parent)
        lab.answer(*launch_arguments(Path("corpus")))
        assert lab.store.run(1).config.corpus == str(corpus)

    def test_what_only_dev_or_test_have_is_told(self, lab: Laboratory, corpus: Path) -> None:
        with (corpus / "test.conll").open("a") as file:
            file.write("Mars B-PLANET X\n\n")
        result = lab.call(*launch_arguments(corpus, "--json"))
        assert result.exit_code == 0
        (note,) = [note for note in json.loads(result.stdout)["notes"] if "B-PLANET" in note]
        assert note in result.stderr


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
        told = capsys.readouterr()
        assert told.out == ""
        assert f"Run {first} running: epoch 1.0 of 5, step 5 of 20" in told.err
        assert f"Run {second} lost after" in told.err
        assert "stopped answering 70 s ago" in told.err

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


class TestSweepsAndReuse:
    def test_lists_of_any_field_and_ranges_of_seeds(self, lab: Laboratory, corpus: Path) -> None:
        lab.answer(
            *launch_arguments(corpus, "--seeds", "1-2", "--epochs", "1,2", "--set", "dropout=0.1,0.2"),
            *("--set", "learn=task,label"),
        )
        runs = [run.config for run in lab.store.runs()]
        assert {(run.seed, run.epochs, run.dropout) for run in runs} == {
            (seed, epochs, dropout) for seed in (1, 2) for epochs in (1, 2) for dropout in (0.1, 0.2)
        }
        assert {run.learn for run in runs} == {("task", "label")}
        lab.answer(*launch_arguments(corpus, "--set", "seed=0"))
        assert lab.store.runs()[0].config.seed == 0

    def test_reuse_queues_only_what_is_missing(self, lab: Laboratory, corpus: Path) -> None:
        lab.answer(*launch_arguments(corpus, "--seeds", "1,2"))
        result = lab.call(*launch_arguments(corpus, "--seeds", "1-3", "--reuse", "--json"))
        document = json.loads(result.stdout)
        assert [run["id"] for run in document["runs"]] == [1, 2, 3]
        assert document["reused"] == [1, 2]
        assert "Uses 2 runs: 1 to 2, there already." in result.stderr
        assert "Queued run 3." in result.stderr
        again = lab.call(*launch_arguments(corpus, "--seeds", "1-3", "--reuse"))
        assert again.stdout.strip() == "1,2,3"
        assert "Nothing is left to queue." in again.stderr
        assert len(lab.store.runs()) == 3
