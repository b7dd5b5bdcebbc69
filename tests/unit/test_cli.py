"""The command line: every verb, and every bad input answered in one sentence with the store unharmed."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from core.corpora import load
from core.paths import checkpoint_dir, log_path
from core.store import RunState, Store
from core.training.events import RunFacts
from jobs.cli import app, launch
from jobs.cli.waiting import wait_for_runs
from jobs.engines import local
from tests.making import (
    OWNER,
    claimed,
    config,
    epoch_metrics,
    relations,
    run_facts,
    snapshot,
    split_result,
    step_metrics,
)

VERBS = ["launch", "runs", "show", "metrics", "results", "relations", "tag"]
VERBS += ["stop", "resume", "retry", "delete", "worker", "doctor"]
_CONLL = "EU B-ORG X\nrejects O Y\nGerman B-MISC X\n. O Y\n\nIt O X\nwas O Y\nso O Y\n\n"


class Laboratory:
    """A store in the test's own MRNLAB_HOME, and a terminal."""

    def __init__(self) -> None:
        self.store = Store.open()
        self.started = 0

    def call(self, *arguments: str) -> Any:
        return CliRunner().invoke(app, list(arguments), catch_exceptions=False)

    def answer(self, *arguments: str) -> str:
        """Standard output of a call that must succeed."""
        result = self.call(*arguments)
        assert result.exit_code == 0, result.stderr
        return str(result.stdout)

    def json(self, *arguments: str) -> Any:
        return json.loads(self.answer(*arguments, "--json"))

    def refusal(self, *arguments: str) -> str:
        """The one sentence of a call that must be refused, and must change nothing."""
        before = self.store.runs()
        result = self.call(*arguments)
        assert result.exit_code == 2, (result.stdout, result.stderr)
        assert result.stdout == ""
        (sentence,) = result.stderr.splitlines()
        assert self.store.runs() == before
        return str(sentence)

    def finished(self, **values: Any) -> int:
        """A run that succeeded, with all that one leaves behind."""
        run_id = claimed(self.store, **values)
        self.store.set_facts(run_id, run_facts())
        self.store.add_metrics(run_id, [step_metrics(1), step_metrics(2), epoch_metrics(2, 1, 0.5)])
        self.store.add_snapshot(run_id, snapshot(1, seed=1))
        self.store.add_snapshot(run_id, snapshot(2, seed=2))
        score = 0.7 + values.get("seed", 1) / 100
        self.store.add_result(run_id, split_result("dev", score))
        self.store.add_result(run_id, split_result("test", score))
        self.store.finish(run_id, RunState.SUCCEEDED, best_epoch=1, owner=OWNER)
        return run_id


@pytest.fixture
def lab(laboratory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laboratory]:
    """A laboratory in which no worker is started."""
    made = Laboratory()

    def count(*_arguments: object) -> object:
        made.started += 1
        return subprocess.Popen([sys.executable, "-c", ""])

    monkeypatch.setattr(local, "_start", count)
    yield made
    made.store.close()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder of CoNLL files with the columns tokens, ner and toy."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        (folder / f"{split}.conll").write_text(_CONLL * 5)
    return folder


def launch_arguments(corpus: Path, *more: str) -> tuple[str, ...]:
    return ("launch", "--corpus", str(corpus), "--columns", "tokens,ner,toy", "--tasks", "ner,toy", *more)


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

    def test_a_preset(self, lab: Laboratory, corpus: Path) -> None:
        lab.answer(
            *launch_arguments(
                corpus, "--preset", "dissertation", "--encoder", "minilm", "--paradigm", "mtl,mrn"
            )
        )
        mrn, mtl = lab.store.runs()
        assert (mrn.config.prior, mrn.config.lambda_, mrn.config.select_by) == ("paper", 0.05, "loss")
        assert (mtl.config.prior, mtl.config.lr_heads, mtl.config.encoder) == (None, 5e-5, "minilm")

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

    def test_another_store(self, lab: Laboratory, corpus: Path, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path / 'other.db'}"
        lab.answer("--db", url, *launch_arguments(corpus))
        assert lab.store.runs() == []
        other = Store.open(url)
        assert len(other.runs()) == 1
        other.close()


class TestBadInput:
    """Each is answered in one sentence with exit code 2, and the store is unharmed."""

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (("--lambda", "-1"), ["lambda", "-1", "> 0"]),
            (("--lambda", "much"), ["lambda", "much"]),
            (("--seeds", ""), ["seed", "empty"]),
            (("--seeds", "0"), ["seeds", "1,2,3"]),
            (("--seeds", "-3"), ["seed", "-3"]),
            (("--epochs", "0"), ["epochs", "≥ 1"]),
            (("--fraction", "1.5"), ["fraction", "≤ 1"]),
            (("--paradigm", "mtm"), ["paradigm", "mtm", "stl", "mrn"]),
            (("--prior", "strong"), ["prior", "strong", "relational"]),
            (("--alignment", "loose"), ["alignment", "loose", "exact"]),
            (("--tasks", "ner,height"), ["height", "ner, toy"]),
            (("--tasks", "ner"), ["MRN", "two tasks"]),
            (("--paradigm", "mtl", "--lambda", "0.1"), ["lambda", "MRN"]),
            (("--set", "colour=red"), ["colour", "batch_size"]),
            (("--set", "epochs"), ["FIELD=VALUE"]),
            (("--preset", "mine"), ["mine", "dissertation"]),
            (("--columns", "ner,toy"), ["tokens"]),
        ],
    )
    def test_options(self, lab: Laboratory, corpus: Path, options: tuple[str, ...], words: list[str]) -> None:
        sentence = lab.refusal(*launch_arguments(corpus), *options)
        for word in words:
            assert word in sentence
        assert lab.started == 0

    @pytest.mark.parametrize(
        ("spoil", "words"),
        [
            (lambda folder: (folder / "train.conll").unlink(), ["train"]),
            (lambda folder: _replace_line(folder, 7, b"It O"), ["train.conll", "line 7"]),
            (lambda folder: _with_tabs(folder, 5, b"  "), ["train.conll", "line 5"]),
            (
                lambda folder: _replace_line(folder, 1, "Ü B-ORG X".encode("latin-1")),
                ["train.conll", "UTF-8"],
            ),
            (lambda folder: (folder / "train.conll").write_text(""), ["train"]),
        ],
        ids=["missing file", "a column too few", "spaces in a tab file", "Latin-1", "empty train split"],
    )
    def test_corpora(
        self, lab: Laboratory, corpus: Path, spoil: Callable[[Path], object], words: list[str]
    ) -> None:
        spoil(corpus)
        sentence = lab.refusal(*launch_arguments(corpus))
        for word in words:
            assert word in sentence

    def test_no_corpus(self, lab: Laboratory) -> None:
        assert "corpus" in lab.refusal("launch", "--tasks", "pos,ner")
        assert "no corpus 'nowhere'" in lab.refusal("launch", "--corpus", "nowhere", "--tasks", "pos,ner")

    def test_an_unknown_encoder(self, lab: Laboratory, corpus: Path) -> None:
        assert "no-such/encoder" in lab.refusal(*launch_arguments(corpus, "--encoder", "no-such/encoder"))

    def test_a_store_that_is_none(self, lab: Laboratory, tmp_path: Path) -> None:
        notes = tmp_path / "notes.db"
        notes.write_text("My notes. " * 200)
        assert "not a store" in lab.refusal("--db", f"sqlite:///{notes}", "runs")
        assert "not a database URL" in lab.refusal("--db", "runs.db", "runs")
        assert notes.read_text().startswith("My notes.")

    @pytest.mark.parametrize("verb", ["show", "metrics", "relations"])
    def test_unknown_runs(self, lab: Laboratory, verb: str) -> None:
        assert "no run 7" in lab.refusal(verb, "7")

    def test_unknown_verbs_and_values(self, lab: Laboratory) -> None:
        assert lab.call("train").exit_code == 2
        assert lab.call("show", "one").exit_code == 2
        assert "no state" in lab.refusal("runs", "--state", "asleep")


def _replace_line(folder: Path, number: int, content: bytes) -> None:
    path = folder / "train.conll"
    lines = path.read_bytes().split(b"\n")
    lines[number - 1] = content
    path.write_bytes(b"\n".join(lines))


def _with_tabs(folder: Path, number: int, content: bytes) -> None:
    path = folder / "train.conll"
    path.write_bytes(path.read_bytes().replace(b" ", b"\t"))
    _replace_line(folder, number, content)


class TestReading:
    def test_runs(self, lab: Laboratory) -> None:
        assert lab.answer("runs").splitlines()[0].split()[:2] == ["run", "state"]
        done, waiting_ = lab.finished(), claimed(lab.store, RunState.QUEUED, seed=5)
        lines = lab.answer("runs").splitlines()
        assert lines[1].split()[:2] == [str(waiting_), "queued"]
        assert lines[2].split()[:2] == [str(done), "succeeded"]
        assert lines[2].endswith("0.5000")
        listed = lab.json("runs", "--state", "queued,running")
        assert [(run["id"], run["seed"]) for run in listed] == [(waiting_, 5)]

    def test_show(self, lab: Laboratory) -> None:
        run_id = lab.finished()
        log_path(run_id).write_text("first\nlast line\n")
        told = lab.answer("show", str(run_id), "--log", "1")
        for words in ("succeeded", "lambda", "0.7100", "Started by process 4242", "last line"):
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
        assert "72.00 ± 1.00 (3)" in table[1]
        assert "71.00 (1)" in table[2]
        assert table[2].startswith("MTL")
        markdown = lab.answer("results", "--format", "markdown").splitlines()
        assert markdown[1].startswith("| --- | ---: |")
        assert all(line.count("|") == 4 for line in markdown)
        latex = lab.answer("results", "--format", "latex")
        assert r"$72.00 \pm 1.00$ (3)" in latex
        assert r"f1\_conll" not in latex
        assert "_" not in latex.replace(r"\_", "")
        rows = list(csv.DictReader(io.StringIO(lab.answer("results", "--format", "csv"))))
        assert {(row["task"], row["n"]) for row in rows} == {
            ("pos", "3"),
            ("ner", "3"),
            ("pos", "1"),
            ("ner", "1"),
        }
        assert float(rows[0]["sd"]) == pytest.approx(0.01)
        assert [row["configuration"] for row in lab.json("results", str(mtl))] == ["MTL", "MTL"]

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
        facts: RunFacts = run_facts(alignment="disjoint", impossible=("task",))
        lab.store.set_facts(run_id, facts)
        lab.store.add_snapshot(run_id, snapshot(1))
        result = lab.call("relations", str(run_id), "--csv")
        assert result.exit_code == 0
        assert "cannot be other than zero" in result.stderr
        assert "disjoint" in result.stderr
        assert lab.call("relations", str(run_id), "--csv", "--mode", "label").stderr == ""

    def test_refusals(self, lab: Laboratory) -> None:
        run_id, mtl = str(lab.finished()), str(claimed(lab.store, paradigm="mtl"))
        assert "MTL" in lab.refusal("relations", mtl)
        assert "task, label, feature" in lab.refusal("relations", run_id, "--mode", "colour")
        assert "step 9" in lab.refusal("relations", run_id, "--step", "9")
        assert "'first'" in lab.refusal("relations", run_id, "--step", "first")


class TestControl:
    def test_stop_and_start_again(self, lab: Laboratory) -> None:
        run_id = str(claimed(lab.store, RunState.QUEUED))
        assert "cancelled" in lab.answer("stop", run_id)
        result = lab.call("stop", run_id)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "already ended" in result.stderr
        assert "from its beginning" in lab.answer("resume", run_id)
        assert lab.store.run(int(run_id)).attempt == 2
        assert lab.started == 1
        running = str(claimed(lab.store))
        assert "next step" in lab.answer("stop", running)
        assert lab.store.state(int(running)) is RunState.CANCELLING

    def test_failed_runs_are_retried_not_resumed(self, lab: Laboratory) -> None:
        run_id = claimed(lab.store, RunState.FAILED)
        checkpoint_dir(run_id).mkdir(parents=True)
        assert "retry" in lab.refusal("resume", str(run_id))
        lab.answer("retry", str(run_id))
        assert lab.store.state(run_id) is RunState.QUEUED
        assert not checkpoint_dir(run_id).exists()
        done = lab.finished()
        assert "succeeded" in lab.refusal("retry", str(done))

    def test_one_refusal_does_not_keep_the_others_back(self, lab: Laboratory) -> None:
        first, second = claimed(lab.store, RunState.SUCCEEDED), claimed(lab.store, RunState.QUEUED)
        result = lab.call("stop", str(first), str(second), "99")
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 2
        assert lab.store.state(second) is RunState.CANCELLED

    def test_delete(self, lab: Laboratory) -> None:
        run_id, running = lab.finished(), claimed(lab.store)
        folder = checkpoint_dir(run_id)
        folder.mkdir(parents=True)
        log_path(run_id).write_text("log")
        assert "being trained" in lab.refusal("delete", str(running))
        lab.answer("delete", str(run_id))
        assert [run.id for run in lab.store.runs()] == [running]
        assert not folder.exists()
        assert not log_path(run_id).exists()
        assert "no run" in lab.refusal("delete", str(run_id))


class TestTag:
    def test_refusals(self, lab: Laboratory) -> None:
        run_id = claimed(lab.store)
        assert "no finished model" in lab.refusal("tag", str(run_id), "A sentence.")
        lab.store.finish(run_id, RunState.SUCCEEDED, checkpoint="nowhere")
        assert "no word" in lab.refusal("tag", str(run_id), "  ")
        assert lab.refusal("tag", str(run_id), "A sentence.")


class TestWaiting:
    def test_follows_runs_to_their_end(self, lab: Laboratory, capsys: pytest.CaptureFixture[str]) -> None:
        first, second = claimed(lab.store), claimed(lab.store)
        steps = iter(
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


class TestService:
    def test_doctor(self, lab: Laboratory) -> None:
        found = lab.json("doctor")
        assert found["problems"] == []
        assert found["database"].startswith("sqlite 3.")
        assert found["versions"]["torch"][0].isdigit()
        claimed(lab.store, RunState.QUEUED)
        result = lab.call("doctor")
        assert result.exit_code == 1
        assert "no worker is alive" in result.stdout

    def test_every_verb_has_help(self, lab: Laboratory) -> None:
        told = lab.answer("--help")
        for verb in VERBS:
            assert verb in told
            assert lab.answer(verb, "--help").startswith("Usage:")


class TestProgram:
    """The program as a researcher starts it."""

    def run(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        program = "from jobs.cli import main; main()"
        return subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).resolve().parents[2],
            **options,
        )

    def test_help_imports_nothing_heavy(self) -> None:
        program = (
            "import sys, jobs.cli; "
            "print([name for name in ('torch', 'transformers', 'datasets', 'seqeval', 'pandas', 'streamlit') "
            "if name in sys.modules])"
        )
        told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert told.stdout == "[]\n"

    def test_one_json_document(self, laboratory: Path) -> None:
        ended = self.run("runs", "--json")
        assert (ended.returncode, json.loads(ended.stdout), ended.stderr) == (0, [], "")

    def test_an_error_is_one_sentence(self, laboratory: Path) -> None:
        ended = self.run("show", "3")
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr == "There is no run 3; `mrnlab runs` lists those there are.\n"

    def test_a_worker_in_the_terminal(self, laboratory: Path, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
        store = Store.open(url)
        (run_id,) = store.add_runs([config(corpus="no-such-corpus")])
        environment = os.environ | {"MRNLAB_HOME": str(laboratory)}
        started = time.monotonic()
        ended = self.run("--db", url, "worker", env=environment, timeout=60)
        assert ended.returncode == 0, ended.stderr
        assert time.monotonic() - started < 30
        error = store.run(run_id).error
        assert error is not None
        assert "no corpus 'no-such-corpus'" in error.message
        store.close()


def test_the_corpus_of_these_tests_is_sound(corpus: Path) -> None:
    assert [task.name for task in load(str(corpus), ("tokens", "ner", "toy")).tasks] == ["ner", "toy"]
