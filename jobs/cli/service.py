"""mrnlab worker: trains in this terminal."""

from __future__ import annotations

import typer

from jobs.cli.app import Chosen, app
from jobs.watching import hang_limit

__all__ = ["worker"]


@app.command()
def worker(ctx: typer.Context) -> None:
    """Train queued runs in this terminal until none is left.

    Ctrl-C stops the run being trained at its next step, saved; a second one ends it at once.
    """
    from jobs.supervisor import main as work

    hang_limit()  # the supervisor would end at once where it is wrong
    chosen: Chosen = ctx.obj
    raise typer.Exit(work([], chosen.url))
