"""A worker inside a Slurm job: it trains run after run until none waits, or Slurm wants its place back."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from submitit.helpers import DelayedSubmission

from core.store import RunState, Store
from jobs.logs import set_up_logging
from jobs.processes import this_process

__all__ = ["JOB", "SlurmWorker"]

JOB = "slurm job "
"""How the name begins by which a run's row knows the job that trains it."""

# Slurm ends a job by force this long after the warning, less what is needed to queue it again.
_SAVE_S = 60.0


@dataclass(frozen=True)
class _Running:
    worker: Any
    ended: threading.Event


class SlurmWorker:
    """What submitit calls in the job, and asks for a successor when the job must leave."""

    def __init__(self, url: str, worker: str, linger_s: float, environment: Mapping[str, str]) -> None:
        self._given = (url, worker, linger_s, dict(environment))
        self._running: _Running | None = None

    def __call__(self) -> int:
        """Trains until no run has waited for `linger_s`; how many it took. Raises StoreError."""
        url, worker, linger_s, environment = self._given
        for name, value in environment.items():
            os.environ.setdefault(name, value)
        set_up_logging()
        job = JOB + _job_id()
        module, _, name = worker.partition(":")
        with contextlib.closing(Store.open(url)) as store:
            _take_over(store, job)
            made = getattr(importlib.import_module(module), name)(
                store, this_process(), device="auto", engine_job=job
            )
            return self._work(made, linger_s)

    def _work(self, worker: Any, linger_s: float) -> int:
        """In a thread of its own: submitit's answer to Slurm's warning takes the main one, and training must
        go on to the end of its step meanwhile.
        """
        running = self._running = _Running(worker, threading.Event())
        taken: list[int] = []
        failed: list[BaseException] = []

        def work() -> None:
            try:
                taken.append(worker.work(linger_s))
            except Exception as error:  # noqa: BLE001 - raised again in the main thread
                failed.append(error)
            finally:
                running.ended.set()

        def leave(_number: int, _frame: FrameType | None) -> None:
            worker.terminate(hand_back=True)

        signal.signal(signal.SIGTERM, leave)  # scancel, and Slurm where it takes a place without warning
        threading.Thread(target=work, name="work", daemon=True).start()
        running.ended.wait()
        if failed:
            raise failed[0]
        return taken[0]

    def checkpoint(self) -> DelayedSubmission:
        """Called by submitit in a signal handler: hands back what is trained; the job is queued again."""
        if self._running is not None:
            self._running.worker.terminate(hand_back=True)
            self._running.ended.wait(_SAVE_S)
        return DelayedSubmission(SlurmWorker(*self._given))


def _job_id() -> str:
    array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array else os.environ["SLURM_JOB_ID"]


def _take_over(store: Store, job: str) -> None:
    """Queues again what this job trained before Slurm started it anew: its former process is gone."""
    for run in store.runs(states={RunState.RUNNING}, archived=None, with_facts=False):
        if run.engine_job == job:
            with store.transaction():
                store.mark_lost(run.id, f"Slurm started the job anew that trained run {run.id}.")
                if store.state(run.id) is RunState.LOST:
                    store.requeue(run.id, resume=True)
