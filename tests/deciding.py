"""A follower of a plan and its workers as real processes, for tests that kill them.

`python -m tests.deciding` is a worker that trains small runs, of which MRN's are better by a little.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

from core.config import RunConfig
from core.corpora.types import Corpus
from core.events import Sink, SplitResult
from core.recording.owner import this_process
from core.results.plan import Plan
from core.store import Store
from jobs.studies.decide import decide
from jobs.worker.cores import shared_cores
from jobs.worker.loop import Worker, main
from jobs.worker.slots import Slot
from tests import small_training, studying
from tests.making import split_result
from tests.studying import Workers
from tests.supervised import small_engine


def score_of(config: RunConfig, _split: str = "test") -> float:
    """MRN gains 0.02: three seeds do not decide it, five do."""
    noise = ((config.seed * 7919) % 11 - 5) / 500
    return 0.6 + config.seed / 1000 + (0.02 + noise if config.paradigm == "mrn" else 0.0)


def train(config: RunConfig, corpus: Corpus, **options: Any) -> small_training.Ended:
    """A slow small training with these scores."""
    sink = options.pop("sink")

    def scored(event: Any) -> None:
        sink(split_result(event.split, score_of(config)) if isinstance(event, SplitResult) else event)

    return small_training.slow_train(config, corpus, sink=scored, **options)


def workers(score: Callable[[RunConfig, str], float] = score_of, **options: Any) -> Workers:
    """Workers in this process that train at once, with these scores."""

    def train_to(config: RunConfig, corpus: Corpus, *, sink: Sink, **more: Any) -> small_training.Ended:
        ended = studying.train(config, corpus, sink=sink, **more)
        for split in ("dev", "test"):
            sink(studying.scored(config, split, score))
        return ended

    return Workers(train=train_to, **options)


def worker(store: Store, slot: Slot) -> Worker:
    """A worker that trains so."""
    return Worker(
        store,
        this_process(),
        device=slot.device,
        cores=shared_cores(),
        prepare=small_training.prepare,
        train=train,
        beat_s=0.2,
    )


def follow_plan() -> None:
    """Decides the one plan of the laboratory's store, printing a line for each look."""
    with contextlib.closing(Store.open()) as store:
        (stored,) = store.plans()
        plan, engine = Plan.from_json(stored.plan), small_engine(__name__)
        decide(store, plan, lambda line: print(line, flush=True), engine=engine)


if __name__ == "__main__":
    sys.exit(main(worker))
