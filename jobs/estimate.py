"""How long runs that train still take, and all that waits. What runs to come will take says `jobs.cost`."""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import MRNLabError
from core.store import MetricKey, Run, RunState, Store
from core.training.events import TOTAL
from jobs.cost import cost
from jobs.engines.slots import slot_count

__all__ = ["eta", "queue_left"]

_TRAINING_LOSS = MetricKey(TOTAL, "train", "loss")


def eta(store: Store, runs: Sequence[Run]) -> dict[int, float]:
    """Seconds until each of these runs ends at the pace of its steps so far; runs of which that cannot be
    told are left out.

    The pace is that of training alone: a long start (corpus, encoder, features) says nothing about the rest.
    """
    training = {run.id: run for run in runs if run.state is RunState.RUNNING and run.total_steps}
    left = {}
    for run_id, (step, seconds) in store.latest_times(training, _TRAINING_LOSS).items():
        total = training[run_id].total_steps
        if step and total:
            left[run_id] = max(0.0, seconds / step * (total - step))
    return left


def queue_left(store: Store) -> float | None:
    """Seconds until everything that waits or trains has ended, by as many workers as train now (this
    machine's slots at least). None where it cannot be told: no past run is like these, or data are not here.
    """
    training = store.runs(states={RunState.RUNNING}, with_facts=False)
    waiting = [
        one for one in store.runs(states={RunState.QUEUED}, with_facts=False) if not one.config_problem
    ]
    left = eta(store, training)
    if not waiting:
        return max(left.values()) if training and len(left) == len(training) else None
    try:
        spent = cost(store, [run.config for run in waiting])
        workers = max(slot_count(), len(training))
    except MRNLabError:
        return None
    if spent.rough:
        return None
    return (sum(run.seconds for run in spent.runs) + sum(left.values())) / min(
        workers, len(waiting) + len(training)
    )
