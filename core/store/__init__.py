"""The store of runs and their records. The only place with SQL."""

from core.store.backup import back_up as back_up
from core.store.records import ACTIVE as ACTIVE
from core.store.records import ENDED as ENDED
from core.store.records import MOVES as MOVES
from core.store.records import RESTARTABLE as RESTARTABLE
from core.store.records import Conditions as Conditions
from core.store.records import ErrorInfo as ErrorInfo
from core.store.records import MetricKey as MetricKey
from core.store.records import MetricSeries as MetricSeries
from core.store.records import Owner as Owner
from core.store.records import Run as Run
from core.store.records import RunEvent as RunEvent
from core.store.records import RunState as RunState
from core.store.records import RunWithFacts as RunWithFacts
from core.store.records import SnapshotKey as SnapshotKey
from core.store.records import StoredPlan as StoredPlan
from core.store.records import StoredScore as StoredScore
from core.store.runs import normal_keyword as normal_keyword
from core.store.store import Store as Store
