"""The store of runs and their records. The only place with SQL."""

from core.store.backup import back_up as back_up
from core.store.runs import normal_keyword as normal_keyword
from core.store.store import Store as Store
from core.store.types import ACTIVE as ACTIVE
from core.store.types import ENDED as ENDED
from core.store.types import MOVES as MOVES
from core.store.types import RESTARTABLE as RESTARTABLE
from core.store.types import Conditions as Conditions
from core.store.types import ErrorInfo as ErrorInfo
from core.store.types import MetricKey as MetricKey
from core.store.types import MetricSeries as MetricSeries
from core.store.types import Owner as Owner
from core.store.types import Run as Run
from core.store.types import RunEvent as RunEvent
from core.store.types import RunState as RunState
from core.store.types import RunWithFacts as RunWithFacts
from core.store.types import SnapshotKey as SnapshotKey
from core.store.types import StoredPlan as StoredPlan
from core.store.types import StoredScore as StoredScore
