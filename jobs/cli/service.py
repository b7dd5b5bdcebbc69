"""mrnlab worker: trains in this terminal."""

from __future__ import annotations

import os

import typer

from jobs.cli.app import Chosen, app
from jobs.watching import hang_limit

__all__ = ["worker"]

# A terminal is given back when nothing is left to train.
_LINGER_S = "2"


@app.command()
def worker(ctx: typer.Context) -> None:
    """Train queued runs in this terminal until none is left.

    Ctrl-C stops the run being trained at its next step, saved; a second one ends it at once.
    """
    from jobs.supervisor import main as work

    hang_limit()  # the supervisor would end at once where it is wrong
    os.environ.setdefault("MRNLAB_LINGER_S", _LINGER_S)
    chosen: Chosen = ctx.obj
    raise typer.Exit(work([], chosen.url))
