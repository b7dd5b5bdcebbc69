"""The pure parts of the training: which epoch is best, when snapshots are taken, what a step's log tells."""

from __future__ import annotations

import math

import pytest
import torch

from core.records import DevMetrics, Event, StepMetrics, best_epoch
from core.training.setup import snapshot_steps
from core.training.step_log import StepLog


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.1, 0.2, 0.3], 3),
        ([0.3, 0.2, 0.1], 1),
        ([0.2, 0.2, 0.2], 1),
        ([math.nan, 0.1, math.nan], 2),
        ([math.nan, math.nan], None),
        ([], None),
    ],
)
def test_best_epoch_by_score_and_by_loss(scores: list[float], expected: int | None) -> None:
    by_score = [DevMetrics(epoch, score, 0.0) for epoch, score in enumerate(scores, start=1)]
    by_loss = [DevMetrics(epoch, 0.0, -score) for epoch, score in enumerate(scores, start=1)]
    assert best_epoch(by_score, "score", 3) == expected
    assert best_epoch(by_loss, "loss", 3) == expected
    assert best_epoch(by_score, "last", 3) == (3 if len(scores) == 3 else None)


def test_snapshots_are_evenly_spaced_among_updates_and_end_with_the_run() -> None:
    assert snapshot_steps(range(10, 101, 10), 5) == {20, 40, 60, 80, 100}
    assert snapshot_steps((10, 20, 25), 50) == {10, 20, 25}
    assert snapshot_steps((5,), 50) == {5}
    assert max(snapshot_steps(range(10, 1001, 10), 7)) == 1000
    assert len(snapshot_steps(range(10, 1001, 10), 7)) == 7


def _log_step(log: StepLog, step: int) -> None:
    losses, counts = torch.tensor([0.5, 0.0]), torch.tensor([7, 0])
    log.add(step, 0.1, 1e-3, (losses, counts, torch.tensor(0.0), torch.tensor(0.25)))


def test_step_log_leaves_out_tasks_without_words() -> None:
    events: list[Event] = []
    _log_step(StepLog(events.append, ["a", "b"]), 1)
    (first,) = [event for event in events if isinstance(event, StepMetrics)]
    assert ("b", "loss") not in first.values
    assert first.values["a", "loss"] == 0.5


def test_the_first_step_is_told_at_once_others_by_number_or_by_time() -> None:
    told: list[int] = []
    moment = 0.0
    log = StepLog(
        lambda event: told.append(event.step) if isinstance(event, StepMetrics) else None,
        ["a", "b"],
        every=3,
        clock=lambda: moment,
    )
    for step in range(1, 7):
        _log_step(log, step)
        assert told == list(range(1, {1: 2, 2: 2, 3: 2}.get(step, 5)))
    moment = 1.0
    _log_step(log, 7)
    assert told == [1, 2, 3, 4, 5, 6, 7]
