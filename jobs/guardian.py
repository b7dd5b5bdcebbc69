"""A worker's care for being watched: where its supervisor was killed, it starts another."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from types import TracebackType

from core.errors import MRNLabError
from core.store import Store
from jobs.engines.local import start
from jobs.supervisor import SUPERVISOR

__all__ = ["Guardian"]

_LOOK_S = 1.0
_MOST_STARTS = 5

_log = logging.getLogger(__name__)


class Guardian:
    """Looks after the supervisor while the block runs. Does nothing where the worker was started without."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parent = int(os.environ.get(SUPERVISOR, 0))
        self._next: subprocess.Popen[bytes] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="guardian", daemon=True)

    def __enter__(self) -> Guardian:
        if self._parent:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._parent:
            self._thread.join()

    def _look(self) -> None:
        # What `python -m` was given for this process.
        module = sys.modules["__main__"].__spec__
        assert module is not None  # a supervisor starts modules
        command = (sys.executable, "-m", "jobs.supervisor", "--adopt", str(os.getpid()), module.name)
        starts = 0
        while starts < _MOST_STARTS and not self._ended.wait(_LOOK_S):
            if self._is_watched():
                continue
            starts += 1
            try:
                self._next = start(command, self._store)
            except MRNLabError as error:
                _log.warning("The process that watched over this worker is gone. %s", error)
            else:
                _log.warning("The process that watched over this worker is gone; another does so now.")

    def _is_watched(self) -> bool:
        if self._next is None:
            return os.getppid() == self._parent
        return self._next.poll() is None
