"""Looking after the queue while something waits for it: lost runs are found, missing workers started."""

from __future__ import annotations

from core.errors import MRNLabError
from core.paths import home
from core.store import Store
from jobs.engines import Engine, default_engine
from jobs.reaper import reap

__all__ = ["Tender"]

# Not at every look: it reads the process table.
_TEND_EVERY = 4
# So many workers may be started in vain, no run moving meanwhile, before the waiting gives up.
_MOST_VAIN_STARTS = 5


class Tender:
    """Called at every look of a waiting loop."""

    def __init__(self, store: Store, engine: Engine | None = None) -> None:
        self._store = store
        self._engine = engine or default_engine()
        self._looks = self._vain_starts = 0

    def look(self) -> None:
        """Marks lost runs and starts missing workers, at some looks."""
        if self._looks % _TEND_EVERY == 0:
            reap(self._store)
            self._vain_starts += self._engine.ensure_workers(self._store) > 0
        self._looks += 1

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
