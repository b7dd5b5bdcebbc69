"""The moves a run may make from state to state, written out: the oracle of the tests of the store."""

from __future__ import annotations

ALLOWED: dict[str, set[str]] = {
    "queued": {"running", "cancelled"},
    "running": {"succeeded", "failed", "cancelling", "lost"},
    "cancelling": {"cancelled", "succeeded", "failed", "lost"},
    "succeeded": set(),
    "failed": {"queued"},
    "cancelled": {"queued"},
    "lost": {"queued"},
}
