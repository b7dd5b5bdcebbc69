"""Queue maintenance by commands and pages: lost runs are found, missing workers started.

Each worker's supervisor does so already; this covers the loss of all of them.
"""

from __future__ import annotations

from core.errors import MRNLabError
from core.paths import home
from core.store import Store
from jobs.engines import Engine, default_engine
from jobs.worker.liveness import LivenessTracker, reap

# Not at every look of a waiting loop: it reads the process table.
_MAINTAIN_EVERY = 4
_MOST_FAILED_STARTS = 5


def resume_lost(
    store: Store, engine: Engine | None = None, tracker: LivenessTracker | None = None
) -> list[int]:
    """Mark lost runs, and start workers for those with retries, which wait again. Returns the lost ones.

    Raises MRNLabError.
    """
    lost = reap(store, tracker)
    if lost:
        (engine or default_engine()).ensure_workers(store)
    return lost


class QueueMaintenance:
    """For a loop that waits for runs, and for programs that stay."""

    def __init__(self, store: Store, engine: Engine | None = None) -> None:
        self._store = store
        self._engine = engine or default_engine()
        self._tracker = LivenessTracker()
        self._looks = self._failed_starts = 0

    def look(self) -> None:
        """Call at each look of a waiting loop: maintains the queue at every fourth."""
        if self._looks % _MAINTAIN_EVERY == 0:
            self.maintain()
        self._looks += 1

    def maintain(self) -> None:
        """Mark lost runs and start missing workers."""
        reap(self._store, self._tracker)
        self._failed_starts += self._engine.ensure_workers(self._store) > 0

    def progressed(self) -> None:
        """Some run has changed since: workers do start."""
        self._failed_starts = 0

    def check_starts(self) -> None:
        """Raises MRNLabError where one worker after another ends before it has claimed a run (torch cannot
        be imported, say).
        """
        if self._failed_starts >= _MOST_FAILED_STARTS:
            raise MRNLabError(
                f"The runs are queued, but {self._failed_starts} workers ended as soon as they had started; "
                f"the end of {home() / 'logs' / 'workers.log'} says why."
            )
