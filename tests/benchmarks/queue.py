"""What the queue costs: seconds to queue and stop 5,000 runs, and to notice that a worker was killed.

`python -m tests.benchmarks.queue` times `submit` (check included) and the request to stop all; then, after
`kill -9` of a training process, until its run is lost and until the next run is claimed, with only the
supervisor watching. The last line is JSON.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time

from core.config.sweep import expand
from core.store import ACTIVE, RunState, Store
from jobs.queue.submit import submit
from tests.benchmarks._harness import arguments, laboratory, print_json
from tests.making import NoWorkers, config
from tests.supervised import FOREVER, owner_of, supervised, wait_for


def queueing(runs: int) -> dict[str, float]:
    """Seconds to describe, queue and stop so many runs, in a store on disk."""
    with contextlib.closing(Store.open()) as store:
        times = [time.perf_counter()]
        seeds = [str(seed) for seed in range(1, runs + 1)]
        configs = expand({"corpus": "demo", "tasks": "pos,ner"}, {"seed": seeds}, {})
        times.append(time.perf_counter())
        submit(store, configs, "seeds", engine=NoWorkers())
        times.append(time.perf_counter())
        stopped = store.request_stops(store.ids_of_sweep("seeds", ACTIVE))
        times.append(time.perf_counter())
        assert len(stopped) == runs
    names = ("described_s", "queued_s", "stopped_s")
    return {name: end - start for name, (start, end) in zip(names, itertools.pairwise(times), strict=True)}


def killing() -> dict[str, float]:
    """Seconds from the kill of a worker until its run is lost, and until the next is claimed."""
    with supervised() as (store, engine):
        first, second = store.add_runs([config(epochs=FOREVER), config(seed=2, epochs=1)])
        engine.ensure_workers(store)
        wait_for(lambda: store.run(first).step > 0)
        killed = time.perf_counter()
        os.kill(owner_of(store, first).pid, signal.SIGKILL)
        wait_for(lambda: store.state(first) is RunState.LOST)
        lost_s = time.perf_counter() - killed
        wait_for(lambda: store.state(second) is not RunState.QUEUED)
        return {"lost_s": lost_s, "next_claimed_s": time.perf_counter() - killed}


def main() -> None:
    runs = 20 if arguments(__doc__).parse_args().quick else 5000
    with laboratory(MRNLAB_SLOTS="1"):
        figures = queueing(runs) | killing()
    print_json({"runs": runs} | {name: round(seconds, 3) for name, seconds in figures.items()})


if __name__ == "__main__":
    main()
