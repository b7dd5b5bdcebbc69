"""Workers as jobs of a real Slurm of one node with two cores, and what is said where there is none."""

from __future__ import annotations

import contextlib
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from core.errors import MRNLabError
from core.recording.owner import this_process
from core.store import MetricKey, RunState, Store
from tests.clusters.slurm import SlurmServer, started
from tests.making import config
from tests.patience import PATIENCE_S

pytest.importorskip("submitit", reason="submitit is not installed: pip install 'mrnlab[slurm]'")

from jobs.engines.slurm import JOB, SlurmEngine, SlurmSettings

ROOT = Path(__file__).resolve().parents[2]
LOSS = MetricKey("", "train", "loss")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmServer]:
    """Slurm, for all tests of this file."""
    with started(tmp_path_factory.mktemp("slurm")) as server:
        yield server


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with contextlib.closing(Store.open(f"sqlite:///{tmp_path / 'runs.db'}")) as opened:
        yield opened


@pytest.fixture
def engine(slurm: SlurmServer, laboratory: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmEngine:
    """Two workers at most, which train without a model."""
    monkeypatch.setenv("SLURM_CONF", str(slurm.settings))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # the jobs import the worker of these tests
    (laboratory / "slurm.toml").write_text('workers = 2\nminutes = 5\nlinger_s = 0.5\nsetup = ["true"]\n')
    return SlurmEngine("tests.clusters.training:worker", look_every_s=0.0)


def until(store: Store, engine: SlurmEngine, what: Callable[[], object]) -> None:
    """Waits for that, looking after the queue as pages do. Fails where it does not come."""
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline, [
            (run.id, run.state.value, run.step, run.waiting_for, run.engine_job) for run in store.runs()
        ]
        engine.ensure_workers(store)
        time.sleep(0.2)


def job_of(store: Store, run_id: int) -> str:
    """The Slurm job that trains a run."""
    return (store.run(run_id).engine_job or "").removeprefix(JOB)


@pytest.mark.slow
def test_two_jobs_train_the_queue(store: Store, engine: SlurmEngine, laboratory: Path) -> None:
    ids = store.add_runs([config(seed=seed, epochs=2) for seed in range(1, 6)])
    assert engine.ensure_workers(store) == 2
    assert engine.ensure_workers(store) == 0
    assert stat.S_IMODE((laboratory / "slurm").stat().st_mode) == 0o700
    reasons: set[str] = set()

    def done() -> bool:
        reasons.update(run.waiting_for for run in store.runs(ids=ids) if run.waiting_for)
        return all(store.state(run_id) is RunState.SUCCEEDED for run_id in ids)

    until(store, engine, done)
    assert "Waits for its turn: 2 of 2 Slurm workers are busy." in reasons
    jobs = {job_of(store, run_id) for run_id in ids}
    assert len(jobs) == 2
    assert len({job.partition("_")[0] for job in jobs}) == 1  # one array: one submission
    until(store, engine, lambda: engine.live_workers(store) == 0)  # they end by themselves


@pytest.mark.slow
def test_a_job_must_leave(store: Store, engine: SlurmEngine, slurm: SlurmServer, laboratory: Path) -> None:
    """Slurm's warning that time is up: the state is saved, the job queued again, the run resumed exactly."""
    (laboratory / "slurm.toml").write_text("minutes = 5\nlinger_s = 0.5\n")
    (run_id,) = store.add_runs([config(epochs=8)])
    until(store, engine, lambda: store.run(run_id).step >= 15)
    job = job_of(store, run_id)
    slurm.ask("scancel", "--signal=USR2", job)
    until(store, engine, lambda: store.run(run_id).attempt == 2)
    # Slurm lets a job that was queued again wait for two minutes; that is not what is tested here.
    until(
        store,
        engine,
        lambda: f"{job}|PENDING" in slurm.ask("squeue", "--noheader", "--array", "--format=%i|%T"),
    )
    slurm.ask("scontrol", "update", f"jobid={job}", "starttime=now")
    until(store, engine, lambda: store.state(run_id) is RunState.SUCCEEDED)
    assert store.metrics([run_id], LOSS)[0].step.tolist() == list(range(1, 81))
    resumed = [event.message for event in store.events(run_id) if event.message.startswith("On ")][-1]
    assert not resumed.endswith("after step 0.")


@pytest.mark.slow
def test_a_job_is_cancelled_and_one_dies(store: Store, engine: SlurmEngine, slurm: SlurmServer) -> None:
    """`scancel` hands the run back; a job that dies without a word loses it, as the next look sees."""
    (run_id,) = store.add_runs([config(epochs=500)])  # not at its end before it is cancelled
    until(store, engine, lambda: store.run(run_id).step >= 5)
    slurm.ask("scancel", job_of(store, run_id))
    until(store, engine, lambda: store.run(run_id).attempt == 2)
    until(store, engine, lambda: store.state(run_id) is RunState.RUNNING)
    owner = store.run(run_id).owner
    assert owner is not None
    psutil.Process(owner.pid).kill()
    until(store, engine, lambda: store.state(run_id) is RunState.LOST)


@pytest.mark.slow
def test_what_waits(store: Store, engine: SlurmEngine, slurm: SlurmServer, laboratory: Path) -> None:
    """Why a job waits is told; one that nobody needs any more is cancelled."""
    (laboratory / "slurm.toml").write_text('workers = 1\nminutes = 5\n[sbatch]\nbegin = "now+1hour"\n')
    (run_id,) = store.add_runs([config()])
    until(store, engine, lambda: store.run(run_id).waiting_for)
    reason = store.run(run_id).waiting_for
    assert reason is not None
    assert reason.startswith("Waits for Slurm, job ")
    assert reason.endswith(": BeginTime.")
    assert engine.live_workers(store) == 1
    other = store.add_runs([config(seed=2)])[0]
    store.claim(this_process(), run_id=other, engine_job=JOB + "0")  # something is trained still
    store.request_stop(run_id)
    until(store, engine, lambda: engine.live_workers(store) == 0)


@pytest.mark.slow
def test_slurm_refuses(store: Store, engine: SlurmEngine, laboratory: Path) -> None:
    (laboratory / "slurm.toml").write_text('partition = "large"')
    store.add_runs([config()])
    with pytest.raises(
        MRNLabError, match=r"^The runs are queued, but Slurm took no job: .*invalid partition"
    ):
        engine.ensure_workers(store)
    assert store.counts()[RunState.QUEUED] == 1


def test_no_slurm_here(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    store.add_runs([config()])
    with pytest.raises(MRNLabError, match="but this machine has no Slurm: squeue is not on the path"):
        SlurmEngine().ensure_workers(store)


class TestSettings:
    def test_none(self) -> None:
        assert SlurmSettings.read().workers == 1

    def test_a_file_elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "other.toml").write_text('gpus = 1\npartition = "gpu"\n[sbatch]\nconstraint = "a100"\n')
        monkeypatch.setenv("MRNLAB_SLURM", str(tmp_path / "other.toml"))
        assert SlurmSettings.read() == SlurmSettings(gpus=1, partition="gpu", sbatch={"constraint": "a100"})

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("workers = 0", r"slurm\.toml: workers must be at least 1, not 0\."),
            ("walltime = 5", r"slurm\.toml: walltime is not known here\."),
            ("workers =", r"slurm\.toml is not a TOML file"),
        ],
    )
    def test_what_is_wrong(self, text: str, message: str, laboratory: Path) -> None:
        (laboratory / "slurm.toml").write_text(text)
        with pytest.raises(MRNLabError, match=message):
            SlurmSettings.read()
