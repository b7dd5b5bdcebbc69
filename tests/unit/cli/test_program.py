"""mrnlab stop, resume, retry, delete and queue; and the program as a process."""

from __future__ import annotations

import contextlib
import errno
import subprocess
import sys
from pathlib import Path

import pytest

from core.paths import checkpoint_dir, log_path
from core.recording.owner import this_process
from core.store import RunState, Store
from jobs.engines import default_engine
from jobs.engines.local import LocalEngine
from tests.making import OWNER, claimed, config, step_metrics
from tests.patience import PATIENCE_S
from tests.supervised import wait_for
from tests.unit.cli.conftest import Laboratory
from tests.unit.conftest import error_of

ROOT = Path(__file__).resolve().parents[3]


class TestControl:
    def test_resumed_runs_keep_what_they_have(self, lab: Laboratory) -> None:
        for state in (RunState.LOST, RunState.CANCELLED, RunState.FAILED):
            run_id = claimed(lab.store)
            lab.store.add_metrics(run_id, [step_metrics(1), step_metrics(2)])
            lab.store.set_saved_step(run_id, 1)
            kept = checkpoint_dir(run_id).with_name(f"{run_id}.states") / "step-00000001"
            kept.mkdir(parents=True)
            if state is RunState.CANCELLED:
                lab.store.request_stop(run_id)
            lab.store.finish(run_id, state)
            assert lab.answer("resume", str(run_id)) == f"Run {run_id} goes on from step 1.\n"
            assert lab.store.state(run_id) is RunState.QUEUED
            assert lab.store.last_metric_steps([run_id]) == {run_id: 2}
            assert kept.is_dir()
            lab.store.request_stop(run_id)
            lab.answer("retry", str(run_id))
            assert lab.store.last_metric_steps([run_id]) == {}
            assert not kept.exists()
            assert lab.store.run(run_id).saved_step is None

    def test_failed_runs_that_saved_nothing_are_retried_not_resumed(self, lab: Laboratory) -> None:
        run_id = claimed(lab.store, RunState.FAILED)
        checkpoint_dir(run_id).mkdir(parents=True)
        other = checkpoint_dir(100 + run_id)
        other.with_name(f"{other.name}.new").mkdir()
        half_written = checkpoint_dir(run_id).with_name(f"{run_id}.new")
        half_written.mkdir()
        assert "retry" in lab.refusal("resume", str(run_id))
        lab.answer("retry", str(run_id))
        assert lab.store.state(run_id) is RunState.QUEUED
        assert [path.name for path in checkpoint_dir(run_id).parent.iterdir()] == [f"{other.name}.new"]
        done = lab.finished()
        assert "succeeded" in lab.refusal("retry", str(done))

    def test_a_whole_sweep_is_stopped(self, lab: Laboratory) -> None:
        ids = lab.store.add_runs([config(seed=seed) for seed in range(3)], "seeds")
        (other,) = lab.store.add_runs([config(seed=9)], "others")
        lab.store.claim(OWNER)
        assert "stopped: 2. Runs that stop at their next step: 1." in lab.answer("stop", "--sweep", "seeds")
        states = [lab.store.state(run_id) for run_id in (*ids, other)]
        assert states == [RunState.CANCELLING, *[RunState.CANCELLED] * 2, RunState.QUEUED]
        assert "'none' is in progress" in lab.refusal("stop", "--sweep", "none")
        assert "Name the runs" in lab.refusal("stop")
        assert "Name the runs" in lab.refusal("stop", str(other), "--sweep", "others")

    def test_the_queue_is_shown_in_its_order(self, lab: Laboratory) -> None:
        first, second, third = lab.store.add_runs([config(seed=seed) for seed in (1, 2, 3)], "seeds")
        lab.answer("priority", "5", str(third))
        lab.answer("priority", "--", "-1", str(first))
        assert "no run 99" in lab.call("priority", "5", "99").stderr
        assert [run["id"] for run in lab.json("queue")["waiting"]] == [third, second, first]
        assert "Queued: 3; the first 1" in lab.answer("queue", "--limit", "1")

    def test_pause_and_drain_hold_runs_back(self, lab: Laboratory) -> None:
        lab.store.add_runs([config()])
        for hold, release in (("pause", "resume"), ("drain", "undrain")):
            lab.answer("queue", hold)
            started = lab.started
            assert LocalEngine().ensure_workers(lab.store) == 0
            lab.answer("queue", release)
            wait_for(lambda: default_engine().live_workers(lab.store) == 0)
            assert lab.started == started + 1  # nobody else would have started one
        lab.answer("queue", "drain", "--host", "gpu3", "--now")
        assert lab.store.is_evicted("gpu3")
        assert not lab.store.is_evicted(this_process().host)

    def test_one_refusal_does_not_keep_the_others_back(self, lab: Laboratory) -> None:
        first, second = claimed(lab.store, RunState.SUCCEEDED), claimed(lab.store, RunState.QUEUED)
        result = lab.call("stop", str(first), str(second))
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
        assert lab.store.state(second) is RunState.CANCELLED

    def test_a_number_of_no_run_keeps_all_back(self, lab: Laboratory) -> None:
        done, queued = str(lab.finished()), str(claimed(lab.store, RunState.QUEUED))
        calls = [
            *(["archive", done], ["delete", done, "--yes"], ["delete", done, "--yes", "--now"]),
            *(["keyword", done, "--add", "old"], ["priority", "5", queued], ["stop", queued]),
            *(["retry", queued], ["resume", queued]),
        ]
        for call in calls:
            assert lab.refusal(*call, "999").startswith("There is no run 999;")
        lab.answer("archive", done)
        deleted = str(lab.finished(seed=4))
        lab.answer("delete", deleted)
        assert lab.refusal("restore", done, deleted, "999").startswith("There is no run 999;")
        assert [run["id"] for run in lab.json("runs", "--archived")] == [int(done)]
        assert lab.answer("restore", done, deleted).count("\n") == 2

    def test_delete(self, lab: Laboratory) -> None:
        run_id, running = lab.finished(), claimed(lab.store)
        folder = checkpoint_dir(run_id)
        folder.mkdir(parents=True)
        log_path(run_id).write_text("log")
        assert "being trained" in lab.refusal("delete", str(running))
        lab.answer("delete", str(run_id))
        assert [run.id for run in lab.store.runs()] == [running]
        assert folder.exists()
        lab.answer("restore", str(run_id))
        assert [run.id for run in lab.store.runs()] == [running, run_id]
        lab.answer("delete", "--now", str(run_id))
        assert [run.id for run in lab.store.runs()] == [running]
        assert not folder.exists()
        assert not log_path(run_id).exists()
        assert "no run" in lab.refusal("delete", str(run_id))

    def test_a_checkpoint_that_stays_is_told(self, lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
        """A delete names it, and a run that would find the old states does not start again."""

        def refuse(*_arguments: object, **_options: object) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

        deleted, restarted = lab.finished(), claimed(lab.store, RunState.FAILED)
        folders = [checkpoint_dir(run_id) for run_id in (deleted, restarted)]
        for folder in folders:
            folder.mkdir(parents=True)
            (folder / "weights").write_text("")
        monkeypatch.setattr("os.rmdir", refuse)
        assert f"{folders[0]} (Permission denied)" in lab.answer("delete", "--now", str(deleted))
        assert f"{folders[1]} (Permission denied)" in lab.refusal("retry", str(restarted))
        assert [run.id for run in lab.store.runs()] == [restarted]


def run_python(program: str, *arguments: str) -> str:
    """Standard output of a program in a process of its own, which must succeed."""
    command = [sys.executable, "-c", program, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=PATIENCE_S)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


_FULL = "No space left on device"


@pytest.mark.parametrize(
    ("redirected", "call", "code", "told"),
    [
        (">/dev/full", "study --json", 2, _FULL),
        (">/dev/full", "--help", 2, _FULL),
        (">&-", "study --json", 2, "it is closed"),
        ("<&- >&- 2>&-", "study", 2, ""),
        ("2>/dev/full", "show 99", 2, ""),
        ("2>&-", "study", 0, ""),
    ],
)
def test_standard_streams_that_are_full_or_closed(redirected: str, call: str, code: int, told: str) -> None:
    command = f"{sys.executable} -c 'from jobs.cli import main; main()' {call} {redirected}"
    ended = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=False, cwd=ROOT, timeout=PATIENCE_S
    )
    assert ended.returncode == code, ended.stderr
    assert told in ended.stderr
    assert len(ended.stderr.splitlines()) == bool(told)


def test_help_imports_nothing_heavy() -> None:
    heavy = ("torch", "transformers", "datasets", "seqeval", "pandas", "streamlit")
    program = f"import sys, jobs.cli; print([name for name in {heavy} if name in sys.modules])"
    assert run_python(program) == "[]\n"


def test_a_worker_in_the_terminal(laboratory: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    with contextlib.closing(Store.open(url)) as store:
        (run_id,) = store.add_runs([config(corpus="no-such-corpus")])
        run_python("from jobs.cli import main; main()", "--db", url, "worker")
        assert "no corpus 'no-such-corpus'" in error_of(store, run_id).message
