"""Workers as processes of this machine, each in a session of its own, so that Ctrl-C does not reach them."""

from __future__ import annotations

from jobs.worker.pool import WorkerPool


class LocalEngine(WorkerPool):
    """The pool of this machine, which each supervisor has too, as an engine."""

    name = "local"
