"""Workers as processes of this machine, each in its own session, so that Ctrl-C does not reach them."""

from __future__ import annotations

from jobs.worker.pool import WorkerPool


class LocalEngine(WorkerPool):
    """The pool of this machine as an engine; each supervisor has a pool too."""

    name = "local"
