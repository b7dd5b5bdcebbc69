"""Where the time of a thread goes: functions are wrapped, each second counts for the innermost of them."""

from __future__ import annotations

import functools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Stage", "Stages"]

Stage = tuple[str, Any, str]
"""A name, and what is counted under it: the attribute of a class or a module."""


class Stages:
    """Seconds by the clock and of processor time, by stage. Another thread than the one that made this counts
    under the same names, apart.
    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.clock: dict[str, float] = defaultdict(float)
        self.processor: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self._main = threading.get_ident()
        self._running = threading.local()
        for name, owner, attribute in stages:
            setattr(owner, attribute, self._counted(name, getattr(owner, attribute)))

    def clear(self) -> None:
        """Counts from nothing again."""
        for counts in (self.clock, self.processor, self.calls):
            counts.clear()

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def counted(*args: Any, **options: Any) -> Any:
            self._switch(name)
            try:
                return function(*args, **options)
            finally:
                self._switch(None)

        return counted

    def _switch(self, into: str | None) -> None:
        """Counts the time since the last switch for what ran, and goes into a stage, or out of the last."""
        now = time.perf_counter(), time.thread_time()
        running: list[str] = self._running.__dict__.setdefault("stack", [])
        if running:
            before = self._running.since
            self.clock[running[-1]] += now[0] - before[0]
            self.processor[running[-1]] += now[1] - before[1]
        if into is None:
            running.pop()
        else:
            apart = "" if threading.get_ident() == self._main else " (another thread)"
            running.append(into + apart)
            self.calls[running[-1]] += 1
        self._running.since = time.perf_counter(), time.thread_time()
