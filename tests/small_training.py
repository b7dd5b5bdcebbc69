"""A training without a model: it emits what a real one does, as fast as a test wants.

`python -m tests.small_training` is a worker that trains so, in steps of 20 ms. Some seeds make it go wrong;
with MRNLAB_TEST_IMPORT_FAULT set the module cannot even be imported, as where torch is broken.
"""

from __future__ import annotations

import os

if os.environ.get("MRNLAB_TEST_IMPORT_FAULT"):
    raise ImportError("libcudart.so.99: cannot open shared object file")

import contextlib
import itertools
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.corpora.types import Corpus
from core.events import Note, Sink
from core.paths import home
from core.recording.owner import this_process
from core.store import Store
from jobs.worker.cores import shared_cores
from jobs.worker.loop import Worker, main
from jobs.worker.slots import Slot
from tests.making import (
    OWNER,
    epoch_metrics,
    run_facts,
    snapshot,
    split_result,
    step_metrics,
)
from tests.patience import PATIENCE_S

STEPS_PER_EPOCH = 10
CORPUS = Corpus("small", (), (), (), ())
HANGS = 77
"""The seed of a run that is busy for ever at its fifth step, and asks no more whether to stop."""
STOPPED_IN_A_WRITE, STOPPED_IN_A_COMMIT = 78, 79
"""The seeds of runs whose worker is stopped there (SIGSTOP) while it keeps others from writing to the store,
or (where SQLite keeps no WAL) from reading it too.
"""
STOP_ONE = "MRNLAB_TEST_STOP_ONE"
"""The variable that names a file; who finds it stops (SIGSTOP) between its slot and its first run."""
_BEGIN = {STOPPED_IN_A_WRITE: "BEGIN IMMEDIATE", STOPPED_IN_A_COMMIT: "BEGIN EXCLUSIVE"}


@dataclass(frozen=True)
class Ended:
    """How it ended."""

    stopped: bool
    best_epoch: int | None
    steps: int


def prepare(_config: RunConfig) -> Corpus:
    """No sentences at all."""
    return CORPUS


def train(
    config: RunConfig,
    corpus: Corpus,
    *,
    sink: Sink,
    should_stop: Callable[[], bool],
    checkpoint: Checkpoint,
    threads: int | None = None,
    step_s: float = 0.0,
    after_step: Callable[[int], None] = lambda step: None,
) -> Ended:
    """Ten steps an epoch, then dev scores; test scores at the end; a file as checkpoint."""
    assert corpus is CORPUS
    step = 0
    sink(run_facts(total_steps=STEPS_PER_EPOCH * config.epochs))
    for epoch in range(1, config.epochs + 1):
        for _ in range(STEPS_PER_EPOCH):
            if should_stop():
                return Ended(True, None, step)
            step += 1
            time.sleep(step_s)
            sink(step_metrics(step, loss=1 / step))
            after_step(step)
        sink(epoch_metrics(step, epoch, score=1 - 1 / step))
        sink(snapshot(step))
    sink(Note("A remark."))
    for split in ("dev", "test"):
        sink(split_result(split, epoch=config.epochs))
    checkpoint.folder.mkdir(parents=True)
    (checkpoint.folder / "model.txt").write_text("weights")
    return Ended(False, config.epochs, step)


def slow_train(config: RunConfig, corpus: Corpus, **options: Any) -> Ended:
    """The same at 20 ms a step; it goes wrong at step 5 with the seeds above."""

    def fail(step: int) -> None:
        if step == 5 and config.seed == HANGS:
            for _ in itertools.count():
                pass
        elif step == 5 and config.seed in _BEGIN:
            with contextlib.closing(sqlite3.connect(home() / "runs.db", timeout=PATIENCE_S)) as connection:
                connection.execute(_BEGIN[config.seed])
                os.kill(os.getpid(), signal.SIGSTOP)

    return train(config, corpus, **options, step_s=0.02, after_step=fail)


def slow_worker(store: Store, slot: Slot) -> Worker:
    """A worker that trains slowly and beats fast."""
    if (marker := Path(os.environ.get(STOP_ONE, ""))).is_file():
        marker.unlink()
        os.kill(os.getpid(), signal.SIGSTOP)
    return Worker(
        store,
        this_process(),
        device=slot.device,
        cores=shared_cores(),
        prepare=prepare,
        train=slow_train,
        beat_s=0.2,
    )


if __name__ == "__main__":
    sys.exit(main(slow_worker))


def worker(store: Store, **changes: Any) -> Worker:
    """A worker that trains so at once, in this process."""
    defaults: dict[str, Any] = {
        "prepare": prepare,
        "train": train,
        "log_to": lambda _path: contextlib.nullcontext(),
        "beat_s": 0.01,
    }
    return Worker(store, OWNER, **(defaults | changes))
