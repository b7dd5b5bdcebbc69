"""What the queue costs: `python -m tests.benchmarks.queue [--runs N]`.

Seconds to queue N runs with `submit` (check included) and to stop them all; from `kill -9` of a training
process to its run's being lost, and to the next run's being claimed, with nobody looking but the supervisor;
from a claim to the first step of a worker's first run, and of its second, which finds torch imported.
The last line is JSON.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import signal
import time
from pathlib import Path
from typing import Any

from core.config import RunConfig
from core.config.sweep import expand
from core.recording.owner import this_process
from core.records import Event, StepMetrics
from core.store import ACTIVE, RunState, Store
from jobs.submit import submit
from jobs.worker.loop import Worker
from tests.benchmarks._harness import arguments, laboratory, processes, tell
from tests.making import NoWorkers, config
from tests.supervised import FOREVER, owner_of, supervised, wait_for


class _FirstStep(Exception):
    """Ends a training at its first step."""


def queueing(runs: int) -> dict[str, float]:
    """Seconds to describe, queue and stop so many runs, in a store on disk."""
    with contextlib.closing(Store.open()) as store:
        times = [time.perf_counter()]
        seeds = [str(seed) for seed in range(1, runs + 1)]
        described = expand({"corpus": "demo", "tasks": "pos,ner"}, {"seed": seeds}, {})
        times.append(time.perf_counter())
        submit(store, described, "seeds", engine=NoWorkers())
        times.append(time.perf_counter())
        stopped = store.request_stops(store.launched("seeds", ACTIVE))
        times.append(time.perf_counter())
        assert len(stopped) == runs
    described_s, queued_s, stopped_s = (later - earlier for earlier, later in itertools.pairwise(times))
    return {"described_s": described_s, "queued_s": queued_s, "stopped_s": stopped_s}


def killing() -> dict[str, float]:
    """Seconds from the kill of a worker until its run is lost, and until the next is claimed."""
    with supervised() as (store, engine):
        first, second = store.add_runs([config(epochs=FOREVER), config(seed=2, epochs=1)])
        engine.ensure_workers(store)
        wait_for(lambda: store.run(first).step > 0)
        pid = owner_of(store, first).pid
        killed = time.perf_counter()
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: store.state(first) is RunState.LOST)
        lost_s = time.perf_counter() - killed
        wait_for(lambda: store.state(second) is not RunState.QUEUED)
        return {"lost_s": lost_s, "next_claimed_s": time.perf_counter() - killed}


def first_steps(configs: list[RunConfig]) -> list[float]:
    """Seconds from the claim to the first step of each of these runs, in this process."""
    logging.disable()  # each training fails at its first step, as it shall
    took: list[float] = []
    claimed = 0.0

    def prepare(config: RunConfig) -> Any:
        nonlocal claimed
        claimed = time.perf_counter()
        from core.corpora import prepare

        return prepare(config)

    def train(*args: Any, sink: Any, **options: Any) -> Any:
        from core.training.trainer import train

        def first_step(event: Event) -> None:
            if isinstance(event, StepMetrics):
                took.append(time.perf_counter() - claimed)
                raise _FirstStep
            sink(event)

        return train(*args, sink=first_step, **options)

    with contextlib.closing(Store.open("sqlite://")) as store:
        store.add_runs(configs)
        worker = Worker(
            store, this_process(), prepare=prepare, train=train, log_to=lambda _: contextlib.nullcontext()
        )
        while worker.train_next():
            pass
    return took


def starting(home: Path, *, quick: bool) -> dict[str, float]:
    """Seconds from a claim to the first step of a frozen MiniLM on `demo`, its features in the cache."""
    if quick:
        from tests.trained import toy_config

        one = toy_config(home, encoder_training="frozen", lr_encoder=None)
    else:
        one = config(encoder_training="frozen")
    context = processes(quick)
    with context.Pool(1) as fills_the_cache:
        fills_the_cache.apply(first_steps, ([one],))
    with context.Pool(1) as worker:
        first_s, second_s = worker.apply(first_steps, ([one, one.with_(seed=2)],))
    return {"first_run_s": first_s, "second_run_s": second_s}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=5000)
    asked = parser.parse_args()
    runs = 20 if asked.quick else asked.runs
    with laboratory(MRNLAB_SLOTS="1") as home:
        figures = queueing(runs) | killing() | starting(home, quick=asked.quick)
    tell({"runs": runs} | {what: round(seconds, 3) for what, seconds in figures.items()})


if __name__ == "__main__":
    main()
