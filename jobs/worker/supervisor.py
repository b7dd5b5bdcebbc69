"""Watches over one worker: `python -m jobs.worker.supervisor`, with the store in MRNLAB_DB.

The worker trains run after run in a process of its own, for which this one waits. So it learns at once when
the worker dies, and of what; it marks the run as lost and starts another worker while runs wait. It also
looks at the other runs of the store, so that no death goes unseen while anybody works. The worker does not
need it: where this process is killed the worker goes on, and starts another to be watched by
(docs/adr/0015-supervised-workers.md).
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any

import psutil

from core.paths import keep_private
from jobs.worker.logs import set_up_logging

# How a process is started that shall outlive the one that starts it.


APART: dict[str, Any] = {"stdin": subprocess.DEVNULL, "start_new_session": True}
"""Options of Popen: a session of its own, so that neither a terminal's Ctrl-C nor its end reaches it."""

if sys.platform == "win32":  # start_new_session means nothing there
    APART["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW


SUPERVISOR = "MRNLAB_SUPERVISOR"
"""The variable that tells a worker which process waits for it."""

# Workers that die one after another before they have claimed a run: torch cannot be imported, say.
_MOST_VAIN_STARTS = 5
_REST_S = 0.5

_log = logging.getLogger(__name__)


class _Told:
    """Counts the signals to end. The first is passed on to the worker, the second ends it by force."""

    def __init__(self) -> None:
        self.times = 0
        self._worker: psutil.Process | None = None

    def watch_over(self, worker: psutil.Process) -> None:
        """The worker to pass them on to; those that came before it was there reach it now."""
        self._worker = worker
        if self.times:
            self._pass_on()

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        self.times += 1
        self._pass_on()

    def _pass_on(self) -> None:
        if self._worker is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended: what was wanted
            self._worker.send_signal(signal.SIGTERM) if self.times == 1 else self._worker.kill()


def main(arguments: Sequence[str] | None = None, url: str | None = None) -> int:
    """Watches over a worker until no run waits. 0, or 1 where no worker could work or the store failed.

    `url` is the store's. Torch is not imported here.
    """
    parser = argparse.ArgumentParser(prog="python -m jobs.worker.supervisor")
    parser.add_argument(
        "module", nargs="?", default="jobs.worker.loop", help="what `python -m` runs as worker"
    )
    parser.add_argument("--adopt", type=int, metavar="PID", help="watch over this worker first")
    given = parser.parse_args(arguments)
    keep_private()
    set_up_logging()
    told = _Told()
    signal.signal(signal.SIGTERM, told)
    signal.signal(signal.SIGINT, told)
    try:
        worker = _start(given.module, url) if given.adopt is None else psutil.Process(given.adopt)
    except psutil.NoSuchProcess:
        worker = _start(given.module, url)
    told.watch_over(worker)

    # The worker starts while this is imported, which takes about as long as its own imports.
    from core.errors import MRNLabError
    from core.store import Store
    from jobs.worker.maintenance import Supervision

    vain = 0
    try:
        with contextlib.closing(Store.open(url)) as store:
            supervision = Supervision(store, given.module)
            while True:
                code = supervision.wait(worker)
                trained = supervision.bury(worker, code, forced=told.times > 1)
                if told.times or code == 0 or not supervision.runs_wait():
                    return 0
                vain = vain + 1 if code is not None and not trained else 0
                if vain == _MOST_VAIN_STARTS:
                    _log.error(
                        "%d workers ended one after another before they had claimed a run; what they said "
                        "stands above. The runs stay queued; `mrnlab worker` tries again.",
                        vain,
                    )
                    return 1
                time.sleep(_REST_S if vain else 0)
                worker = _start(given.module, url)
                told.watch_over(worker)
    except MRNLabError as error:
        _log.error("%s The worker, if it lives, goes on without being watched.", error)
        return 1


def _start(module: str, url: str | None) -> psutil.Popen:
    environment = {SUPERVISOR: str(os.getpid())} | ({} if url is None else {"MRNLAB_DB": url})
    return psutil.Popen([sys.executable, "-m", module], env=os.environ | environment, **APART)


if __name__ == "__main__":
    sys.exit(main())
