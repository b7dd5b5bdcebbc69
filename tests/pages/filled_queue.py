"""A busy queue on top of a filled store: a launch half done, machines elsewhere, priorities, reasons to wait.

Run as a script (`python -m tests.pages.filled_queue`) it adds that to the store of MRNLAB_HOME, pauses the
queue, and stays to give the signs of life of what seems to train, until Ctrl-C.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

from core.config import RunConfig
from core.recording.owner import this_process
from core.store import ErrorInfo, Owner, RunState, Store
from tests.making import run_facts, step_metrics

LAUNCH = "Launch, 2026-11-21 14:03:12"
ELSEWHERE = Owner("gpu-host-2", 4711, 1000.0, "boot-2")
DRAINED = "gpu-host-3"
REASON = "no GPU is free: 2 of 2 are taken"
_BEAT_S = 5.0


@dataclass(frozen=True)
class Queue:
    """The numbers of the runs of each kind."""

    elsewhere: int
    here: int
    saved_and_lost: int
    saved_and_failed: int
    stopped: int
    waiting: tuple[int, ...]
    with_reason: int


def fill_queue(store: Store) -> Queue:
    """A launch of twelve runs: two train, one was lost, one failed, one was stopped, the others wait."""
    configs = [
        RunConfig.build(corpus="demo", tasks=("pos", "ner"), paradigm=paradigm, seed=seed, batch_size=32)
        for paradigm in ("mtl", "mrn")
        for seed in range(1, 7)
    ]
    ids = store.add_runs(configs, LAUNCH, retries=2)
    elsewhere, here, lost, failed, stopped = ids[:5]
    for run, owner in ((elsewhere, ELSEWHERE), *((run, this_process()) for run in ids[1:5])):
        assert store.claim(owner, run_id=run)
        store.set_facts(run, run_facts(total_steps=200))
        store.add_metrics(run, [step_metrics(step) for step in range(1, 131)])
        store.set_progress(run, 130, 1.3, 200)
        store.set_saved_step(run, 120)
    # The first death is resumed by itself, as asked; the next is not.
    for _ in range(3):
        store.mark_lost(lost, f"The worker of run {lost} stopped answering 70 s ago.")
        if store.state(lost) is RunState.QUEUED:
            assert store.claim(this_process(), run_id=lost)
    store.request_stop(stopped)
    message = "Its worker was told to end. It can be resumed from step 120."
    store.finish(stopped, RunState.CANCELLED, error=ErrorInfo("WorkerTerminated", message, ""))
    _fail(store, failed)
    waiting = tuple(ids[5:])
    store.set_priority(waiting[-2:], 3)
    store.set_waiting_for({waiting[-1]: REASON})
    store.drain(DRAINED)
    return Queue(elsewhere, here, lost, failed, stopped, waiting, waiting[-1])


def _fail(store: Store, run: int) -> None:
    message = (
        "The GPU's 16 GB were not enough for batches of 32 sentences: about 10 would fit. Clone it with "
        "batch_size 8."
    )
    data = {"field": "batch_size", "fits": 8}
    store.finish(run, RunState.FAILED, error=ErrorInfo("OutOfMemory", message, "Traceback\n  x", data=data))


if __name__ == "__main__":
    opened = Store.open()
    made = fill_queue(opened)
    opened.pause_queue()
    print(made)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            for run, owner in ((made.elsewhere, ELSEWHERE), (made.here, this_process())):
                opened.heartbeat(run, owner, moved=True)
            time.sleep(_BEAT_S)
