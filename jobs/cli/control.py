"""mrnlab stop, resume, retry, delete."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from jobs import control
from jobs.cli.app import RUNS_ARGUMENT, app, opened_store
from jobs.cli.output import say
from jobs.control import Answer

__all__ = ["delete", "resume", "retry", "stop"]


def _tell(answers: Sequence[Answer]) -> None:
    """Every answer in words; exit code 2 where a run refused."""
    for answer in answers:
        typer.echo(answer.message, err=not answer.done)
    if not all(answer.done for answer in answers):
        raise typer.Exit(2)


@app.command()
def stop(ctx: typer.Context, run: Annotated[list[int], RUNS_ARGUMENT]) -> None:
    """Stop runs: queued ones at once, others at their next step."""
    with opened_store(ctx) as store:
        _tell(control.stop(store, run))


@app.command()
def resume(ctx: typer.Context, run: Annotated[list[int], RUNS_ARGUMENT]) -> None:
    """Start lost or stopped runs again. In this version that is a clean restart, from the beginning."""
    with opened_store(ctx) as store:
        _tell(control.resume(store, run))


@app.command()
def retry(ctx: typer.Context, run: Annotated[list[int], RUNS_ARGUMENT]) -> None:
    """Start failed, lost or stopped runs again from the beginning."""
    with opened_store(ctx) as store:
        _tell(control.retry(store, run))


@app.command()
def delete(
    ctx: typer.Context,
    run: Annotated[list[int], RUNS_ARGUMENT],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete runs with their scores, checkpoints and logs. Asks first at a terminal."""
    if not yes and sys.stdin.isatty() and not typer.confirm(f"Delete {len(run)} run(s) for good?", err=True):
        say("Nothing was deleted.")
        raise typer.Exit(1)
    with opened_store(ctx) as store:
        _tell(control.delete(store, run))
