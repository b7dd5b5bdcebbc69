"""Supervises one worker after another: `python -m jobs.worker.supervisor`, with the store in MRNLAB_DB.

The worker is a child process. When it dies, the supervisor records its exit, which marks its run as lost with
the cause, and starts another worker while runs wait. Every few seconds it also looks for dead workers of
other runs. The worker does not depend on it: if the supervisor is killed, the worker goes on, and its
`supervisor_watchdog` starts another supervisor (docs/adr/0015-supervised-workers.md).
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Sequence

import psutil

from core.errors import MRNLabError
from core.paths import set_umask
from jobs.worker.logs import set_up_logging
from jobs.worker.signals import Signals
from jobs.worker.start import DETACHED, SUPERVISOR_ID

_log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None, url: str | None = None) -> int:
    """Supervises workers until no run waits; returns 0, or 1 where no worker could work or the store failed.

    `url` is the store's. Torch is not imported here.
    """
    parser = argparse.ArgumentParser(prog="python -m jobs.worker.supervisor")
    parser.add_argument(
        "module", nargs="?", default="jobs.worker.loop", help="what `python -m` runs as worker"
    )
    parser.add_argument("--adopt", type=int, metavar="PID", help="supervise this worker first")
    options = parser.parse_args(arguments)
    set_umask()
    set_up_logging()
    signals = Signals()
    signal.signal(signal.SIGTERM, signals)
    signal.signal(signal.SIGINT, signals)

    def start() -> psutil.Process:
        worker = _start(options.module, url)
        signals.pass_to(worker)
        return worker

    worker: psutil.Process | None = None
    if options.adopt is not None:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended: another is started
            worker = psutil.Process(options.adopt)
            signals.pass_to(worker)
    worker = worker or start()
    try:
        # It imports the store, while the worker starts.
        from jobs.worker.watching import supervise

        return supervise(worker, options.module, url, start, signals)
    except MRNLabError as error:
        _log.error("%s The worker, if it lives, goes on without being watched.", error)
        return 1


def _start(module: str, url: str | None) -> psutil.Popen:
    environment = {SUPERVISOR_ID: str(os.getpid())} | ({} if url is None else {"MRNLAB_DB": url})
    return psutil.Popen([sys.executable, "-m", module], env=os.environ | environment, **DETACHED)


if __name__ == "__main__":
    sys.exit(main())
