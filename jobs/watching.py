"""What an observer that stays remembers of the workers, by its own clock.

Workers and observers need not agree about the time, and a wall clock may be set while a run is trained. So
nothing here reads the times in the store: a heartbeat is a value that has changed since the last look, and
silence is counted from when the observer itself first saw the value (after aim, `sdk/reporter/__init__.py`).
Time that the observer spent away (asleep with its machine, held up) is not held against anybody.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from core.settings import seconds
from core.store import Owner, Run, RunState

__all__ = ["Seen", "Watch", "hang_limit"]

_HANG_S = 900.0
_SHORTEST_HANG_S = 1.0
# What one look adds to a silence at most.
_LONGEST_GAP_S = 15.0


def hang_limit() -> float:
    """`MRNLAB_HANG_S`: after how long without progress a living worker is taken for hung; 900 s.

    Raises MRNLabError where the setting is no such number.
    """
    return seconds(
        "MRNLAB_HANG_S",
        _HANG_S,
        "seconds without progress after which a worker is taken for hung (several minutes; 900 by default)",
        least=_SHORTEST_HANG_S,
    )


@dataclass
class Seen:
    """What was last seen of a run being trained, and for how many seconds it has been so.

    `silent_s`: no sign of life; `stuck_s`: no progress; `stopping_s`: it was asked to stop and has not.
    """

    owner: Owner | None
    sign: datetime | None
    progress: tuple[datetime | None, int]
    stopping: bool
    silent_s: float = 0.0
    stuck_s: float = 0.0
    stopping_s: float = 0.0


class Watch:
    """Looked through again and again, with all runs that are being trained; `jobs.reaper.reap` does so."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looked: float | None = None
        self._seen: dict[int, Seen] = {}

    def look(self, runs: Iterable[Run]) -> dict[int, Seen]:
        """What is known of each of these runs; of others all is forgotten."""
        now = self._clock()
        passed = 0.0 if self._looked is None else min(now - self._looked, _LONGEST_GAP_S)
        self._looked = now
        self._seen = {run.id: self._one(run, passed) for run in runs}
        return self._seen

    def _one(self, run: Run, passed: float) -> Seen:
        progress = (run.progress_at, run.step)
        stopping = run.state is RunState.CANCELLING
        new = Seen(run.owner, run.heartbeat_at, progress, stopping)
        last = self._seen.get(run.id)
        if last is None or last.owner != run.owner:
            return new
        if last.sign == new.sign:
            new.silent_s = last.silent_s + passed
        if last.progress == new.progress:
            new.stuck_s = last.stuck_s + passed
        if last.stopping and new.stopping:
            new.stopping_s = last.stopping_s + passed
        return new
