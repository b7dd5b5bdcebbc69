"""Workers as jobs of a Slurm cluster, submitted through submitit.

A job is a worker that trains run after run, since sites count allocations and not runs: there are never more
jobs than `workers`, and none is made for a run that an existing job will take.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Annotated, Any

import submitit
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from submitit.helpers import DelayedSubmission

from core.errors import LossCause, MRNLabError, WorkerLost, first_problem
from core.paths import given_path, home
from core.store import Run, RunState, Store
from jobs.engines import make_worker, sqlite_problem, worker_environment
from jobs.worker.logs import set_up_logging
from jobs.worker.reaper import GRACE_S, HeartbeatTracker, record_loss, trained_runs

JOB = "slurm job "
"""Prefix of `Run.engine_job` for jobs of Slurm."""

# Slurm ends a job by force this long after the warning, less what is needed to queue it again.
_SAVE_S = 60.0


@dataclass
class SlurmWorker:
    """The object that submitit calls in the job, and asks for a successor when the job must end.

    It trains run after run until none waits, or Slurm ends the job.
    """

    url: str
    worker: str
    linger_s: float
    environment: Mapping[str, str]
    running: tuple[Any, threading.Event] | None = None  # submitit pickles this object before

    def __call__(self) -> int:
        """Trains until no run has waited for `linger_s`; returns the number of runs. Raises StoreError."""
        for name, value in self.environment.items():
            os.environ.setdefault(name, value)
        set_up_logging()
        array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
        job = JOB + (f"{array}_{task}" if array else os.environ["SLURM_JOB_ID"])
        result: list[int | Exception] = []
        with contextlib.closing(Store.open(self.url)) as store:
            _take_over(store, job)
            worker = make_worker(self.worker, store, device="auto", job=job)
            _, ended = self.running = (worker, threading.Event())

            def work() -> None:
                try:
                    result.append(worker.work(self.linger_s))
                except Exception as error:  # noqa: BLE001 - raised again in the main thread
                    result.append(error)
                finally:
                    ended.set()

            # scancel, and Slurm where it ends a job without warning
            signal.signal(signal.SIGTERM, lambda *_: worker.terminate(hand_back=True))
            # In a thread of its own: submitit's answer to Slurm's warning takes the main one, and training
            # must go on to the end of its step meanwhile.
            threading.Thread(target=work, name="work", daemon=True).start()
            ended.wait()
        if isinstance(result[0], Exception):
            raise result[0]
        return result[0]

    def checkpoint(self) -> DelayedSubmission:
        """Hands back the current run and queues the job again; submitit calls it in a signal handler."""
        if self.running is not None:
            worker, ended = self.running
            worker.terminate(hand_back=True)
            ended.wait(_SAVE_S)
        return DelayedSubmission(replace(self, running=None))


def _take_over(store: Store, job: str) -> None:
    """Queues again the runs that this job trained before Slurm restarted it: its former process is gone."""
    for run in trained_runs(store, job):
        if run.engine_job == job and run.state is RunState.RUNNING:
            with store.transaction():
                message = f"Slurm started the job anew that trained run {run.id}."
                record_loss(store, run, WorkerLost(LossCause.JOB_ENDED, message))
                if store.state(run.id) is RunState.LOST:
                    store.requeue(run.id, resume=True)


_LOOK_EVERY_S = 15.0
_ANSWER_S = 30.0
# Slurm warns this long before it ends the job, which is the time to save a training state.
_WARNING_S = 90

_WAITING = {"PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"}


class SlurmSettings(BaseModel):
    """The options of a worker's job: `slurm.toml` in MRNLAB_HOME, or the file that MRNLAB_SLURM names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workers: Annotated[int, Field(ge=1)] = 1
    """How many jobs at most, waiting ones included."""
    minutes: Annotated[int, Field(ge=1)] = 240
    """A job's time limit. A run that has not ended by then goes on in the next job."""
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    gpus: Annotated[int, Field(ge=0, le=1)] = 0
    cpus: Annotated[int, Field(ge=1)] = 1
    memory_gb: Annotated[int, Field(ge=1)] | None = None
    linger_s: Annotated[float, Field(ge=0)] = 60.0
    """How long a worker waits for another run before its job ends."""
    setup: tuple[str, ...] = ()
    """Shell commands before the worker starts, such as `module load cuda`."""
    sbatch: Mapping[str, str | int] = {}
    """Further options of sbatch, by their long names."""

    @classmethod
    def read(cls) -> SlurmSettings:
        """Reads the settings. Raises MRNLabError for a file that cannot be read or an unknown setting."""
        named = os.environ.get("MRNLAB_SLURM")
        path = given_path(named) if named else home() / "slurm.toml"
        if not named and not path.exists():
            return cls()
        try:
            return cls(**tomllib.loads(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise MRNLabError(f"The settings for Slurm {path} cannot be read: {error.strerror}.") from error
        except ValidationError as error:
            raise MRNLabError(f"{path}: {first_problem(error)}.") from error
        except (ValueError, TypeError) as error:
            raise MRNLabError(f"{path} is not a TOML file: {error}.") from error


@dataclass(frozen=True)
class _Job:
    id: str
    state: str
    reason: str

    @property
    def is_waiting(self) -> bool:
        return self.state in _WAITING


class SlurmEngine:
    """Submits workers and looks after them. `worker` names a class as `MODULE:NAME`, for tests."""

    name = "slurm"

    def __init__(self, worker: str = "jobs.worker.loop:Worker", look_every_s: float = _LOOK_EVERY_S) -> None:
        self._worker, self._look_every_s = worker, look_every_s
        self._looked_at = -look_every_s
        self._tracker = HeartbeatTracker()
        self._lock = threading.Lock()

    def ensure_workers(self, store: Store) -> int:
        """Submits jobs for runs that no job will take, records why runs wait, returns how many.

        It asks Slurm at most every `look_every_s` seconds, since its controller serves many. Raises
        MRNLabError.
        """
        with self._lock:
            if time.monotonic() - self._looked_at < self._look_every_s:
                return 0
            queue = store.runs(states={RunState.QUEUED}, archived=None)
            # Read before the jobs are: a run's job that is not among them has ended.
            trained = trained_runs(store, JOB)
            if not queue and not trained:
                return 0
            self._looked_at = time.monotonic()
            settings = SlurmSettings.read()
            jobs = _jobs(store)
            self._look_after(store, trained, jobs)
            paused = store.paused_since() is not None
            busy = {(run.engine_job or "").removeprefix(JOB) for run in trained}
            idle = [job for job in jobs if job.id not in busy]
            missing = min(settings.workers - len(jobs), len(queue) - len(idle))
            started = 0
            if not queue:
                _cancel([job.id for job in jobs if job.is_waiting])
            elif missing > 0 and not paused:
                self._submit(store, settings, missing)
                started = missing
            reason = None if paused or started else _reason(jobs, len(busy), settings)
            changed = {run.id: reason for run in queue if run.waiting_for != reason}
            if changed:
                store.set_waiting_for(changed)
            return started

    def expect_run(self, store: Store) -> None:
        """Does nothing: a reserved slot of the cluster would be taken from others."""

    def live_workers(self, store: Store) -> int:
        """How many of the jobs run or wait."""
        return len(_jobs(store))

    def _look_after(self, store: Store, trained: Sequence[Run], jobs: Sequence[_Job]) -> None:
        """Marks runs as lost if their job has ended, and cancels jobs that do not stop."""
        alive = {job.id for job in jobs}
        observed = self._tracker.observe(trained)
        for run in trained:
            job = (run.engine_job or "").removeprefix(JOB)
            if job not in alive:
                message = f"The Slurm job {job} that trained run {run.id} has ended."
                record_loss(store, run, WorkerLost(LossCause.JOB_ENDED, message))
            elif observed[run.id].stopping_s > GRACE_S:
                _cancel([job])

    def _submit(self, store: Store, settings: SlurmSettings, count: int) -> None:
        machines = set(_slurm("sinfo", "--noheader", "--format=%n").split())
        if (problem := sqlite_problem(store.url, len(machines), "Slurm")) is not None:
            raise MRNLabError(f"The runs are queued, but not on the cluster. {problem}")
        folder = home() / "slurm"
        # Submitit keeps there what it calls in the job: the store's URL, and so its password.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        options = {
            "job_name": _name(store),
            "time": settings.minutes,
            "partition": settings.partition,
            "account": settings.account,
            "qos": settings.qos,
            "gpus_per_node": settings.gpus or None,
            "cpus_per_task": settings.cpus,
            "mem": settings.memory_gb and f"{settings.memory_gb}G",
            "setup": list(settings.setup) or None,
            "additional_parameters": dict(settings.sbatch) or None,
        }
        try:
            # A worker's job is queued again each time it runs out of time, as long as runs wait.
            executor = submitit.SlurmExecutor(folder, max_num_timeout=1_000_000)
            executor.update_parameters(
                signal_delay_s=_WARNING_S,
                stderr_to_stdout=True,
                **{name: value for name, value in options.items() if value is not None},
            )
            with executor.batch():
                for _ in range(count):
                    executor.submit(
                        SlurmWorker(store.url, self._worker, settings.linger_s, worker_environment())
                    )
        except (RuntimeError, OSError, submitit.core.utils.FailedJobError) as error:
            raise MRNLabError(
                f"The runs are queued, but Slurm took no job: {' '.join(str(error).split())}"
            ) from error


def _name(store: Store) -> str:
    return f"mrnlab-{sha256(store.url.encode()).hexdigest()[:8]}"


def _jobs(store: Store) -> list[_Job]:
    """This store's jobs that wait or run. Raises MRNLabError where Slurm does not answer."""
    queue = _slurm("squeue", "--me", "--noheader", "--array", f"--name={_name(store)}", "--format=%i|%T|%r")
    return [_Job(*line.split("|", 2)) for line in queue.splitlines() if line.count("|") >= 2]


def _cancel(jobs: Sequence[str]) -> None:
    if jobs:
        _slurm("scancel", *jobs)


def _slurm(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_S, check=False)
    except FileNotFoundError as error:
        raise MRNLabError(
            f"The runs are queued, but this machine has no Slurm: {command[0]} is not on the path."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise MRNLabError(
            f"The runs are queued, but Slurm did not answer within {_ANSWER_S:.0f} s ({command[0]})."
        ) from error
    if done.returncode:
        answer = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise MRNLabError(f"The runs are queued, but Slurm answered to {command[0]}: {answer}")
    return done.stdout


def _reason(jobs: Sequence[_Job], busy: int, settings: SlurmSettings) -> str | None:
    """Why the queue does not get shorter now; None without a reason."""
    waiting = next((job for job in jobs if job.is_waiting), None)
    if waiting is not None:
        return f"Waits for Slurm, job {waiting.id}: {waiting.reason}."
    if busy >= settings.workers:
        return f"Waits for its turn: {busy} of {settings.workers} Slurm workers are busy."
    return None
