"""A worker for tests on clusters: it trains without a model, saves its state every ten steps, and resumes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.corpora.types import Corpus
from core.events import Note, Sink
from core.store import Owner, Store
from jobs.worker.loop import Worker
from tests.making import epoch_metrics, run_facts, split_result, step_metrics
from tests.small_training import CORPUS, STEPS_PER_EPOCH, Ended, prepare

__all__ = ["STEP_S", "worker"]

STEP_S = 0.05


def worker(store: Store, owner: Owner, *, device: str, engine_job: str) -> Worker:
    """Called as `Worker`."""

    def train_here(config: RunConfig, corpus: Corpus, **given: Any) -> Ended:
        return _train(config, corpus, device=device, **given)

    return Worker(
        store, owner, device=device, engine_job=engine_job, prepare=prepare, train=train_here, beat_s=0.5
    )


def _train(
    config: RunConfig,
    corpus: Corpus,
    *,
    sink: Sink,
    should_stop: Callable[[], bool],
    checkpoint: Checkpoint,
    device: str,
    threads: int | None = None,
) -> Ended:
    assert corpus is CORPUS
    total = STEPS_PER_EPOCH * config.epochs
    sink(run_facts(total_steps=total))
    saved = checkpoint.resume("of this run", lambda message: sink(Note(message)))
    step = 0 if saved is None else json.loads((saved / "state.json").read_text())["step"]
    sink(Note(f"On {device} in process {os.getpid()} with {os.environ['MRNLAB_HOME']}, after step {step}."))
    while step < total:
        if should_stop():
            return Ended(True, None, step)
        step += 1
        time.sleep(STEP_S)
        sink(step_metrics(step, loss=1 / step))
        if step % STEPS_PER_EPOCH == 0:
            sink(epoch_metrics(step, step // STEPS_PER_EPOCH, score=1 - 1 / step))
            checkpoint.save_state(step, 100, partial(_write, text=json.dumps({"step": step})))
    for split in ("dev", "test"):
        sink(split_result(split, epoch=config.epochs))
    checkpoint.save_best(step, 100, lambda folder: _write(folder, "weights"))
    checkpoint.publish()
    return Ended(False, config.epochs, step)


def _write(folder: Path, text: str) -> None:
    (folder / "state.json").write_text(text)
