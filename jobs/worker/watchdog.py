"""A worker's watchdog, which replaces its supervisor if that was killed."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

from core.errors import MRNLabError
from core.store import Store
from jobs.worker.start import SUPERVISOR, SUPERVISOR_ID, start

# Seconds between two checks of the supervisor, and how often it is replaced at most.
_WATCH_S = 1.0
_MOST_REPLACEMENTS = 5

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def supervisor_watchdog(store: Store) -> Iterator[None]:
    """Replaces the supervisor of this worker, while the block runs, if it was killed.

    Does nothing in a worker that was started without a supervisor.
    """
    parent = int(os.environ.get(SUPERVISOR_ID, 0))
    if not parent:
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_watch, args=(store, parent, ended), name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _watch(store: Store, parent: int, ended: threading.Event) -> None:
    module = sys.modules["__main__"].__spec__  # what `python -m` was given for this process
    assert module is not None  # a supervisor starts modules
    command = (*SUPERVISOR, "--adopt", str(os.getpid()), module.name)
    replacement: subprocess.Popen[bytes] | None = None
    starts = 0
    while starts < _MOST_REPLACEMENTS and not ended.wait(_WATCH_S):
        if os.getppid() == parent if replacement is None else replacement.poll() is None:
            continue
        starts += 1
        try:
            replacement = start(command, store.url)
        except MRNLabError as error:
            _log.warning("The process that watched over this worker is gone. %s", error)
        else:
            _log.warning("The process that watched over this worker is gone; another does so now.")
