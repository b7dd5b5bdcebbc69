"""A training without a model: it emits what a real one does, as fast as a test wants.

Run as a module it is a worker that trains so: `python -m tests.small_training`. The run's `epochs` say how
many steps of 20 ms it takes, times ten.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.corpora.types import Corpus
from core.recording.owner import this_process
from core.records import Note, Sink
from core.store import Store
from jobs.engines.local import Slot
from jobs.worker.loop import Worker, main
from tests.making import epoch_metrics, run_facts, snapshot, split_result, step_metrics

STEPS_PER_EPOCH = 10
CORPUS = Corpus("small", (), (), (), ())


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
    step_s: float = 0.0,
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
        sink(epoch_metrics(step, epoch, score=1 - 1 / step))
        sink(snapshot(step))
    sink(Note("A remark."))
    for split in ("dev", "test"):
        sink(split_result(split, epoch=config.epochs))
    checkpoint.folder.mkdir(parents=True)
    (checkpoint.folder / "model.txt").write_text("weights")
    return Ended(False, config.epochs, step)


def slow_train(
    config: RunConfig, corpus: Corpus, *, sink: Sink, should_stop: Callable[[], bool], checkpoint: Checkpoint
) -> Ended:
    """The same at 20 ms a step."""
    return train(config, corpus, sink=sink, should_stop=should_stop, checkpoint=checkpoint, step_s=0.02)


def slow_worker(store: Store, slot: Slot) -> Worker:
    """A worker that trains slowly and beats fast."""
    return Worker(store, this_process(), device=slot.device, prepare=prepare, train=slow_train, beat_s=0.2)


if __name__ == "__main__":
    sys.exit(main(slow_worker))
