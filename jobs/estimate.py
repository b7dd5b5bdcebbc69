"""How long a run that trains still takes. What runs to come will take says `jobs.cost`."""

from __future__ import annotations

from collections.abc import Sequence

from core.store import MetricKey, Run, RunState, Store
from core.training.events import TOTAL

__all__ = ["eta"]

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
