"""Looking after the queue: lost runs are found, missing workers started.

Each worker's supervisor does so already; what is done here covers the loss of all of them.
"""

from __future__ import annotations

from core.errors import MRNLabError
from core.paths import home
from core.store import Store
from jobs.engines import Engine, default_engine
from jobs.reaper import reap
from jobs.watching import Watch

__all__ = ["Tender", "tend"]

# Not at every look: it reads the process table.
_TEND_EVERY = 4
# So many workers may be started in vain, no run moving meanwhile, before the waiting gives up.
_MOST_VAIN_STARTS = 5


def tend(store: Store, engine: Engine | None = None) -> list[int]:
    """At one look: marks runs as lost whose worker is surely gone, and sees to it that those which are
    queued again for it find workers. Returns the lost ones. Raises MRNLabError.
    """
    lost = reap(store)
    if lost:
        (engine or default_engine()).ensure_workers(store)
    return lost


class Tender:
    """Called at every look of a waiting loop, or by a program that stays."""

    def __init__(self, store: Store, engine: Engine | None = None) -> None:
        self._store = store
        self._engine = engine or default_engine()
        self._watch = Watch()
        self._looks = self._vain_starts = 0

    def look(self) -> None:
        """Marks lost runs and starts missing workers, at some looks."""
        if self._looks % _TEND_EVERY == 0:
            self.tend()
        self._looks += 1

    def tend(self) -> None:
        """Marks lost runs and starts missing workers."""
        reap(self._store, self._watch)
        self._vain_starts += self._engine.ensure_workers(self._store) > 0

    def moved(self) -> None:
        """Some run has moved since: workers do start."""
        self._vain_starts = 0

    def check(self) -> None:
        """Raises MRNLabError where one worker after another ends before it has claimed a run (torch cannot
        be imported, say).
        """
        if self._vain_starts >= _MOST_VAIN_STARTS:
            raise MRNLabError(
                f"The runs are queued, but {self._vain_starts} workers ended as soon as they had started; "
                f"the end of {home() / 'logs' / 'workers.log'} says why."
            )
