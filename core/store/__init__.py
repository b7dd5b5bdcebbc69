"""The store: runs and what they record. The only place with SQL."""

from core.store.backup import Backup
from core.store.curation import normal_tag
from core.store.health import StoreHealth
from core.store.records import (
    Conditions,
    ErrorInfo,
    MetricKey,
    MetricSeries,
    Owner,
    Run,
    RunEvent,
    SnapshotKey,
    StoredScore,
)
from core.store.states import ACTIVE, ENDED, MOVES, RESTARTABLE, RunState
from core.store.store import Store

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
    "normal_tag",
]
