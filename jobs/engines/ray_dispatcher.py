"""The dispatcher: turns the queue of one store into tasks of a Ray cluster, and watches them.

It is a detached actor on the head of the cluster: it outlives the command or page that made it, and Ray
restarts it if it dies. Its tasks die with it; their runs are then found lost, and resumed. It keeps no state
outside the store, so it can be lost at any moment.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import NodeDiedError, RayError, RayTaskError, TaskCancelledError

from core.errors import LossCause, RunNotFound, WorkerLost
from core.settings import count, seconds
from core.store import Run, RunState, Store
from jobs.engines import make_worker, sqlite_problem, worker_environment
from jobs.engines.ray import JOB, SCHEDULER
from jobs.worker.logs import set_up_logging
from jobs.worker.reaper import GRACE_S, HeartbeatTracker, reap, record_loss, trained_runs

# How long the dispatcher waits between two looks at the store.
_LOOK_S = 1.0
# Ray gives the next task to a process that has ended one, whose imports are done. So Ray gets one run more of
# each kind than it can train.
_AHEAD = 1
_MAINTAIN_EVERY_S = 5.0
# After a task that could not reach the store, other tasks wait this long.
_HOLD_S = 10.0
# A run whose machine dies again and again may be the cause of it.
_MOST_ATTEMPTS = 10
# Ray hands out GPUs by narrowing what CUDA sees, which a process that has used CUDA cannot follow.
_OWN_CHOICE_OF_GPU = {"env_vars": {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1"}}

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TaskSettings:
    """The resources that a run takes of the cluster, and the class of its worker."""

    cpus: int
    runs_per_gpu: int
    worker: str
    """The worker's class, `MODULE:NAME`, as the machines of the cluster can import it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """For machines that do not set these themselves: each has its own folders and caches as a rule."""

    @classmethod
    def read(cls, worker: str) -> TaskSettings:
        """Reads the settings from this process's environment. Raises MRNLabError for an invalid number."""
        cpus = count("MRNLAB_RAY_CPUS") or 1
        runs_per_gpu = count("MRNLAB_RUNS_PER_GPU") or 1
        return cls(cpus, runs_per_gpu, worker, worker_environment())

    def apply(self) -> None:
        """Sets the variables that this machine does not set itself."""
        for name, value in self.environment.items():
            os.environ.setdefault(name, value)


def train_run(url: str, run_id: int, settings: TaskSettings) -> bool:
    """Claims that run of the store and trains it, as a task; False where it can no longer be claimed.

    Raises StoreError where the store cannot be reached from here.
    """
    settings.apply()
    context = ray.get_runtime_context()
    job = f"{JOB}{context.get_task_id()} on node {context.get_node_id()}"
    return bool(make_worker(settings.worker, _store(url), device=_device(), job=job).train_next(run_id))


@functools.lru_cache(maxsize=1)
def _store(url: str) -> Store:
    set_up_logging()
    return Store.open(url)


def _device() -> str:
    """The GPU that Ray gave this task, as torch numbers it in this process, else the CPU."""
    gpus = [str(gpu) for gpu in ray.get_gpu_ids()]
    if not gpus:
        return "cpu"
    visible = (os.environ.get("CUDA_VISIBLE_DEVICES") or "").split(",")
    return f"cuda:{visible.index(gpus[0]) if gpus[0] in visible else gpus[0]}"


# Retries are the dispatcher's. Ray runs task after task in one process, which imports torch once; by default
# it would end a process with each task on a GPU (max_calls).
_TRAIN = ray.remote(max_retries=0, max_calls=0)(train_run)


def hosts_of(nodes: list[dict[str, Any]]) -> dict[str, str]:
    """The host of each living node of the cluster."""
    return {node["NodeID"]: str(node["NodeManagerHostname"]) for node in nodes if node["Alive"]}


@dataclass
class _Task:
    ref: Any
    kind: str
    given_up: bool = False

    @property
    def job(self) -> str:
        return JOB + str(self.ref.task_id().hex())


@dataclass(frozen=True)
class _Cluster:
    """The resources of the cluster now, by kind (GPU, CPU)."""

    has: Mapping[str, float]
    free: Mapping[str, float]
    each: Mapping[str, float]
    """The amount that one run takes."""
    nodes: Mapping[str, str]
    """The host of each living node."""

    def kind(self, run: Run) -> str:
        """`GPU` for a run that takes a GPU, else `CPU`."""
        device = run.config.device
        return "CPU" if device == "cpu" or (device == "auto" and not self.has["GPU"]) else "GPU"

    def why_waiting(self, kind: str, former: str | None) -> str | None:
        """Why a run waits that Ray cannot start now; `former` is the reason so far."""
        has, free = round(self.has[kind]), self.free[kind]
        singular, plural = ("a GPU", "GPUs") if kind == "GPU" else ("a processor", "processor cores")
        if not has:
            return f"Waits for {singular}: the cluster has 0."
        if free < self.each[kind]:
            return f"Waits for its turn: {has - int(free)} of {has} {plural} are busy."
        # A slot that is free for a moment, between two runs, does not change the reason of thousands of runs.
        return former if former is not None and former.startswith("Waits for its turn") else None


class Dispatcher:
    """The actor; its thread reads the store until the actor ends."""

    def __init__(self, url: str, settings: TaskSettings) -> None:
        set_up_logging()
        settings.apply()
        self._url, self._settings = url, settings
        self._store = Store.open(url)
        self._store.note_scheduler(SCHEDULER)
        self._tasks: dict[int, _Task] = {}
        # Runs that a former dispatcher had started end without it.
        self._orphans = {run.id for run in trained_runs(self._store, JOB)}
        self._tracker = HeartbeatTracker()
        self._maintained_at = time.monotonic()
        self._held_until = 0.0
        self._held_by: str | None = None
        self._poked = threading.Event()
        threading.Thread(target=self._look_after, name="look-after", daemon=True).start()

    def poke(self, settings: TaskSettings) -> None:
        """Looks at the store now, and uses these settings for runs from now on."""
        self._settings = settings
        self._poked.set()

    def _look_after(self) -> None:
        while True:
            self._poked.clear()
            try:
                self._look()
            except Exception:  # noqa: BLE001 - logged; if the actor ended, all its tasks would end too
                _log.exception("This look failed; the next follows.")
            self._poked.wait(_LOOK_S)

    def _look(self) -> None:
        self._settle()
        if time.monotonic() - self._maintained_at > _MAINTAIN_EVERY_S:
            self._maintained_at = time.monotonic()
            self._store.note_scheduler(SCHEDULER)
            reap(self._store, self._tracker)
            self._end_stuck()
        self._resume_orphans()
        cluster = self._cluster()
        queue = self._store.runs(states={RunState.QUEUED}, archived=None)
        queue.sort(key=lambda run: (-run.priority, run.id))
        held = self._held(cluster)
        if held is None:
            self._hand_over(queue, cluster)
        self._record_reasons(queue, cluster, held)

    # Tasks that have ended

    def _settle(self) -> None:
        """Handles the tasks that have ended, well or not."""
        refs = {task.ref: run_id for run_id, task in self._tasks.items()}
        ended = ray.wait(list(refs), num_returns=len(refs), timeout=0)[0] if refs else []
        for ref in ended:
            run_id = refs[ref]
            task = self._tasks[run_id]
            resume, cause = False, LossCause.PROCESS_ENDED
            message = f"The process that trained run {run_id} died."
            try:
                ray.get(ref)
            except NodeDiedError:
                resume, cause = True, LossCause.MACHINE_LOST
                message = f"The machine that trained run {run_id} is gone."
            except TaskCancelledError:
                resume, cause = not task.given_up, LossCause.MACHINE_LOST
                message = f"Run {run_id} was taken from its machine."
            except RayTaskError as error:
                _log.warning("The task of run %d failed.", run_id, exc_info=error)
                self._held_by = f"A machine of the cluster could not train it: {error.cause}"
                self._held_until = time.monotonic() + _HOLD_S
                message = f"The task of run {run_id} failed: {error.cause}"
            except RayError as error:
                _log.warning("The task of run %d ended.", run_id, exc_info=error)
            else:
                message = ""
            if message:
                self._record_end(run_id, task.job, WorkerLost(cause, message), resume=resume)
            del self._tasks[run_id]

    def _record_end(self, run_id: int, job: str, error: WorkerLost, *, resume: bool) -> None:
        """Records that a task has ended before its run; `resume`: queues the run again, to be resumed.

        In one transaction: an observer sees a run that is trained, lost for good, or waits again.
        """
        store = self._store
        try:
            with store.transaction():
                store.state(run_id)  # locks the run's row: others find the dead too
                run = store.run(run_id)
                if not (run.engine_job or "").startswith(job):
                    return  # it had ended, or waits again, or is another's
                if run.state is RunState.CANCELLING:
                    store.finish(run_id, RunState.CANCELLED)
                elif run.state is RunState.RUNNING:
                    record_loss(store, run, error)
                if resume:
                    self._resume(store.run(run_id))
        except RunNotFound:
            return  # deleted meanwhile

    def _resume_orphans(self) -> None:
        """Resumes the runs that a former dispatcher had started, once they are known to be lost."""
        for run in self._store.runs(ids=self._orphans) if self._orphans else ():
            if run.state in (RunState.RUNNING, RunState.CANCELLING):
                continue  # it lives, or `reap` will find it dead
            self._orphans.discard(run.id)
            self._resume(run)

    def _resume(self, run: Run) -> None:
        """Queues a lost run again, unless it was to stop or has had too many attempts."""
        wanted = run.stop_requested_at is None and run.attempt < _MOST_ATTEMPTS
        if run.state is RunState.LOST and wanted:
            self._store.requeue(run.id, resume=True)

    def _end_stuck(self) -> None:
        """Kills tasks that do not stop when asked, or hang; on other machines only Ray can."""
        trained = trained_runs(self._store)
        observed, hang_s = self._tracker.observe(trained), seconds("MRNLAB_HANG_S")
        for run in trained:
            task = self._tasks.get(run.id)
            if task is None or task.given_up:
                continue
            if observed[run.id].stopping_s > GRACE_S:
                why = f"It had not stopped {GRACE_S:.0f} s after it was asked to"
            elif observed[run.id].stuck_s > hang_s:
                why = f"It made no progress for {hang_s:.0f} s although its process lived"
            else:
                continue
            task.given_up = True
            self._store.add_event(run.id, "warning", f"{why}; its process is ended.")
            ray.cancel(task.ref, force=True)

    # Tasks to begin

    def _cluster(self) -> _Cluster:
        has, free = ray.cluster_resources(), ray.available_resources()
        each = {"GPU": 1 / self._settings.runs_per_gpu, "CPU": self._settings.cpus}
        return _Cluster(
            has={kind: has.get(kind, 0.0) for kind in each},
            free={kind: free.get(kind, 0.0) for kind in each},
            each=each,
            nodes=hosts_of(ray.nodes()),
        )

    def _held(self, cluster: _Cluster) -> str | None:
        """The reason why no run can start, "" where pages show it already, None without a reason."""
        if self._store.paused_since() is not None:
            return ""
        if time.monotonic() < self._held_until:
            return self._held_by
        hosts = set(cluster.nodes.values())
        if hosts <= self._store.drained().keys():
            return "Every machine of the cluster is set to take no runs."
        return sqlite_problem(self._url, len(hosts), "Ray")

    def _room(self, queue: list[Run], cluster: _Cluster) -> dict[str, int]:
        """By kind how many more runs the cluster has room for."""
        waiting = {run.id for run in queue}
        room = {kind: int(has / cluster.each[kind]) for kind, has in cluster.has.items()}
        for run_id, task in self._tasks.items():
            room[task.kind] -= run_id not in waiting
        return room

    def _hand_over(self, queue: list[Run], cluster: _Cluster) -> None:
        """Makes tasks of the first runs of the queue, as many as the cluster has room for and `_AHEAD` more.

        Ray knows no priorities: the task of a run that is no longer among them, or that asks for a GPU where
        the cluster has none now, is cancelled. A run that starts at this moment is resumed in its turn.
        """
        room = self._room(queue, cluster)
        for run in queue:
            kind, task = cluster.kind(run), self._tasks.get(run.id)
            wanted = bool(cluster.has[kind]) and room[kind] > -_AHEAD
            room[kind] -= wanted
            if task is None and wanted:
                self._tasks[run.id] = _Task(self._submit(run, kind, cluster), kind)
            elif task is not None and not (wanted and task.kind == kind):
                ray.cancel(task.ref)

    def _submit(self, run: Run, kind: str, cluster: _Cluster) -> Any:
        drained = self._store.drained()
        avoided = [node for node, host in cluster.nodes.items() if host in drained]
        on_gpu = kind == "GPU"
        return _TRAIN.options(
            name=f"run {run.id}",
            num_cpus=self._settings.cpus,
            num_gpus=1 / self._settings.runs_per_gpu if on_gpu else 0,
            label_selector={"ray.io/node-id": f"!in({','.join(avoided)})"} if avoided else None,
            runtime_env=_OWN_CHOICE_OF_GPU if on_gpu else None,
        ).remote(self._url, run.id, self._settings)

    def _record_reasons(self, queue: list[Run], cluster: _Cluster, held: str | None) -> None:
        """Records in the store why runs wait."""
        reasons: dict[int, str | None] = {}
        room = self._room(queue, cluster)
        for run in queue:
            kind = cluster.kind(run)
            if held is not None:
                reason = held or None
            elif run.id in self._tasks and cluster.has[kind] and room[kind] > 0:
                room[kind] -= 1
                reason = "The cluster has it and starts it."
            else:
                reason = cluster.why_waiting(kind, run.waiting_for)
            if reason != run.waiting_for:
                reasons[run.id] = reason
        if reasons:
            self._store.set_waiting_for(reasons)
