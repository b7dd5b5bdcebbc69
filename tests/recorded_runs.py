"""Runs with something of everything that a run records, and whether two are the same."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from core.store import RunState, Store
from core.store.exchange import RunRecord
from tests.making import OWNER, claimed, epoch_metrics, run_facts, snapshot, split_result, step_metrics


def finished(store: Store, **values: Any) -> int:
    """A run with something of everything that a run records."""
    run_id = claimed(store, **values)
    store.set_facts(run_id, run_facts())
    odd = step_metrics(4, loss=math.nan), step_metrics(5, loss=-math.inf), step_metrics(6, loss=math.inf)
    store.add_metrics(run_id, [step_metrics(1, loss=1 / 3), *odd, epoch_metrics(6, 1, 0.1 + 0.2)])
    for step in (3, 6):
        store.add_snapshot(run_id, snapshot(step, seed=step))
    for split in ("dev", "test"):
        store.add_result(run_id, split_result(split))
    store.set_progress(run_id, 6, 0.6, 20, OWNER)
    store.add_event(run_id, "warning", "The penalty has vanished.")
    store.finish(run_id, RunState.SUCCEEDED, best_epoch=1, checkpoint="somewhere", owner=OWNER)
    with store.transaction() as connection:  # as an older version wrote it
        store.update_run(connection, run_id, {"note": "λ was too high."})
    store.add_keywords([run_id], ["paper"])
    return run_id


def assert_same(left: RunRecord, right: RunRecord) -> None:
    """All that was recorded, bit for bit; not numbers, workers and paths."""
    elsewhere: dict[str, Any] = dict.fromkeys(("owner", "heartbeat_at", "heartbeat_due", "checkpoint", "log"))
    left_run, right_run = (dataclasses.replace(record.run, id=0, **elsewhere) for record in (left, right))
    assert left_run == right_run
    assert [curve.key for curve in left.curves] == [curve.key for curve in right.curves]
    for ours, theirs in zip(left.curves, right.curves, strict=True):
        for name in ("step", "epoch", "seconds", "value"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    # Reports may hold NaN, which is not equal to itself.
    assert repr([dataclasses.replace(score, run_id=0) for score in left.scores]) == repr(
        [dataclasses.replace(score, run_id=0) for score in right.scores]
    )
    assert left.predictions == right.predictions
    assert left.snapshots == right.snapshots
