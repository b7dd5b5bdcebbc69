"""The store: runs and what they record. The only place with SQL."""

from core.store.backup import Backup, back_up
from core.store.records import (
    ACTIVE,
    ENDED,
    MOVES,
    RESTARTABLE,
    Conditions,
    ErrorInfo,
    MetricKey,
    MetricSeries,
    Owner,
    Run,
    RunEvent,
    RunState,
    SnapshotKey,
    StoredScore,
)
from core.store.runs import normal_keyword
from core.store.store import Store, StoreHealth

__all__ = [
    "ACTIVE",
    "ENDED",
    "MOVES",
    "RESTARTABLE",
    "Backup",
    "Conditions",
    "ErrorInfo",
    "MetricKey",
    "MetricSeries",
    "Owner",
    "Run",
    "RunEvent",
    "RunState",
    "SnapshotKey",
    "Store",
    "StoreHealth",
    "StoredScore",
    "back_up",
    "normal_keyword",
]
