"""Queue maintenance by commands and pages: finds lost runs and starts missing workers.

Each worker's supervisor does this too; this covers the loss of all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from core.errors import MRNLabError
from core.paths import home
from core.store import RunState, Store
from jobs.engines import Engine, default_engine
from jobs.queue.control import remove_deleted
from jobs.worker.reaper import HeartbeatTracker, reap

# Not at every look of a waiting loop: it reads the process table.
_MAINTAIN_EVERY = 4
_MOST_FAILED_STARTS = 5
# The rest after a start without a claim; it doubles each time.
FIRST_REST_S, _LONGEST_REST_S = 2.0, 300.0


def resume_lost(store: Store, engine: Engine | None = None) -> list[int]:
    """Marks lost runs and returns their ids, and starts workers where they are queued again.

    Runs deleted a while ago are removed. Raises MRNLabError.
    """
    remove_deleted(store)
    lost = reap(store)
    if lost:
        (engine or default_engine()).ensure_workers(store)
    return lost


class QueueMaintenance:
    """Maintains the queue during a loop that waits for runs, or in a long-lived program."""

    def __init__(
        self, store: Store, engine: Engine | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._clock = store, clock
        self._engine = engine or default_engine()
        self._tracker = HeartbeatTracker()
        self._looks = self._failed_starts = 0
        self._claimed, self._rest_until = -1, clock()

    def look(self) -> None:
        """Maintains the queue at every fourth call; a waiting loop calls it each time."""
        if self._looks % _MAINTAIN_EVERY == 0:
            self.maintain()
        self._looks += 1

    def maintain(self) -> None:
        """Marks lost runs, removes runs deleted a while ago, and starts missing workers.

        Workers are started less and less often while none claims a run.
        """
        reap(self._store, self._tracker)
        remove_deleted(self._store)
        counts = self._store.counts()
        claimed = sum(counts.values()) - counts[RunState.QUEUED]
        if claimed != self._claimed:
            self._claimed, self._failed_starts, self._rest_until = claimed, 0, self._clock()
        if self._clock() >= self._rest_until and self._engine.ensure_workers(self._store) > 0:
            rest_s = min(FIRST_REST_S * 2.0 ** min(self._failed_starts, 10), _LONGEST_REST_S)
            self._rest_until = self._clock() + rest_s
            self._failed_starts += 1

    def check_starts(self) -> None:
        """Raises MRNLabError where worker after worker has ended before it claimed a run."""
        if self._failed_starts >= _MOST_FAILED_STARTS:
            raise MRNLabError(
                f"The runs are queued, but {self._failed_starts} workers ended right after their start; "
                f"the end of {home() / 'logs' / 'workers.log'} says why."
            )
