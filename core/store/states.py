"""A run's life: the closed set of states and the one table of allowed moves."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["ACTIVE", "ENDED", "MOVES", "RESTARTABLE", "RunState"]


class RunState(StrEnum):
    """Where a run is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"


_S = RunState

MOVES: dict[RunState, frozenset[RunState]] = {
    # A queued run that is stopped has no worker to wait for: it is cancelled at once.
    _S.QUEUED: frozenset({_S.RUNNING, _S.CANCELLED}),
    _S.RUNNING: frozenset({_S.SUCCEEDED, _S.FAILED, _S.CANCELLING, _S.LOST}),
    # A stop asked for at the last step may find the run ended, failed or its owner dead.
    _S.CANCELLING: frozenset({_S.CANCELLED, _S.SUCCEEDED, _S.FAILED, _S.LOST}),
    _S.SUCCEEDED: frozenset(),
    _S.FAILED: frozenset({_S.QUEUED}),
    _S.CANCELLED: frozenset({_S.QUEUED}),
    _S.LOST: frozenset({_S.QUEUED}),
}

ACTIVE = frozenset({_S.QUEUED, _S.RUNNING, _S.CANCELLING})
ENDED = frozenset(set(RunState) - ACTIVE)
RESTARTABLE = frozenset(state for state, moves in MOVES.items() if _S.QUEUED in moves)
