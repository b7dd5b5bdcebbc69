"""What the queue costs: `python -m tests.benchmarks.queue [--runs N]`.

Seconds to queue N runs with `submit` (check included) and to stop them all; from `kill -9` of a training
process to its run's being lost, and to the next run's being claimed, with nobody looking but the supervisor.
The last line is JSON. What a worker's first and second run wait for, `tests.benchmarks.startup` measures.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time

from core.config.sweep import expand
from core.store import ACTIVE, RunState, Store
from jobs.submit import submit
from tests.benchmarks._harness import arguments, laboratory, tell
from tests.making import NoWorkers, config
from tests.supervised import FOREVER, owner_of, supervised, wait_for


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


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=5000)
    asked = parser.parse_args()
    runs = 20 if asked.quick else asked.runs
    with laboratory(MRNLAB_SLOTS="1"):
        figures = queueing(runs) | killing()
    tell({"runs": runs} | {what: round(seconds, 3) for what, seconds in figures.items()})


if __name__ == "__main__":
    main()
