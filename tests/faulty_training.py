"""Trainings that go wrong, as workers: `python -m tests.faulty_training`. The run's seed says how.

With MRNLAB_TEST_IMPORT_FAULT set the module cannot even be imported, as where torch is broken.
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
from collections.abc import Callable

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.corpora.types import Corpus
from core.paths import home
from core.recording.owner import this_process
from core.records import Sink, StepMetrics
from core.store import Store
from jobs.engines.local import Slot
from jobs.worker.loop import Worker, main
from tests.patience import PATIENCE_S
from tests.small_training import Ended, prepare, slow_train

HANGS = 77
"""The seed of a run that is busy for ever at its fifth step, and asks no more whether to stop."""
STOPPED_IN_A_WRITE, STOPPED_IN_A_COMMIT = 78, 79
"""The seeds of runs whose worker is stopped there (SIGSTOP) while it keeps others from writing to the store,
or (where SQLite keeps no WAL) from reading it too.
"""
_BEGIN = {STOPPED_IN_A_WRITE: "BEGIN IMMEDIATE", STOPPED_IN_A_COMMIT: "BEGIN EXCLUSIVE"}


def train(
    config: RunConfig, corpus: Corpus, *, sink: Sink, should_stop: Callable[[], bool], checkpoint: Checkpoint
) -> Ended:
    """Trains slowly; hangs with the seeds above."""

    def hanging(event: object) -> None:
        sink(event)  # type: ignore[arg-type]  # what is told is passed on as it is
        if not (isinstance(event, StepMetrics) and event.step == 5):
            return
        if config.seed == HANGS:
            for _ in itertools.count():
                pass
        elif config.seed in _BEGIN:
            with contextlib.closing(sqlite3.connect(home() / "runs.db", timeout=PATIENCE_S)) as connection:
                connection.execute(_BEGIN[config.seed])
                os.kill(os.getpid(), signal.SIGSTOP)

    return slow_train(config, corpus, sink=hanging, should_stop=should_stop, checkpoint=checkpoint)


def faulty_worker(store: Store, slot: Slot) -> Worker:
    """A worker that beats fast and trains so."""
    return Worker(store, this_process(), device=slot.device, prepare=prepare, train=train, beat_s=0.2)


if __name__ == "__main__":
    sys.exit(main(faulty_worker))
