"""mrnlab stop, resume, retry, archive, restore, label, note, delete."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from core.errors import MRNLabError
from jobs import control
from jobs.cli.app import RUN_ARGUMENT, RUNS_ARGUMENT, app, opened_store
from jobs.cli.output import say, tell
from jobs.control import Answer

__all__ = ["archive", "delete", "label", "note", "restore", "resume", "retry", "stop"]


def _tell(answers: Sequence[Answer]) -> None:
    """Every answer in words; exit code 2 where a run refused."""
    for answer in answers:
        tell(answer.message, err=not answer.done)
    if not all(answer.done for answer in answers):
        raise typer.Exit(2)


@app.command()
def stop(ctx: typer.Context, run: Annotated[list[int], RUNS_ARGUMENT]) -> None:
    """Stop runs: queued ones at once, others at their next step."""
    with opened_store(ctx) as store:
        _tell(control.stop(store, run))


@app.command()
def resume(ctx: typer.Context, run: Annotated[list[int], RUNS_ARGUMENT]) -> None:
    """Go on with lost, stopped or failed runs where their training state was saved last."""
    with opened_store(ctx) as store:
        _tell(control.resume(store, run))


@app.command()
def retry(ctx: typer.Context, run: Annotated[list[int], RUNS_ARGUMENT]) -> None:
    """Start failed, lost or stopped runs again from the beginning."""
    with opened_store(ctx) as store:
        _tell(control.retry(store, run))


@app.command()
def archive(ctx: typer.Context, run: Annotated[list[int], RUNS_ARGUMENT]) -> None:
    """Put ended runs out of sight. Nothing is lost: `mrnlab runs --archived` lists them."""
    with opened_store(ctx) as store:
        _tell(control.archive(store, run))


@app.command()
def restore(ctx: typer.Context, run: Annotated[list[int], RUNS_ARGUMENT]) -> None:
    """Take archived runs back into the lists."""
    with opened_store(ctx) as store:
        _tell(control.restore(store, run))


@app.command()
def label(
    ctx: typer.Context,
    run: Annotated[list[int], RUNS_ARGUMENT],
    add: Annotated[str, typer.Option(help="Tags to give, with commas.")] = "",
    remove: Annotated[str, typer.Option(help="Tags to take, with commas.")] = "",
) -> None:
    """Tag runs, or take tags from them: `mrnlab runs --filter tag:NAME` finds them."""
    added, removed = ([tag for tag in text.split(",") if tag.strip()] for text in (add, remove))
    if not added and not removed:
        raise MRNLabError("Name the tags: --add paper,best or --remove paper.")
    with opened_store(ctx) as store:
        _tell(control.label(store, run, add=added, remove=removed))


@app.command()
def note(
    ctx: typer.Context,
    run: Annotated[int, RUN_ARGUMENT],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The new note; '' removes it.")],
) -> None:
    """Write a note on a run, in place of the one it has."""
    with opened_store(ctx) as store:
        _tell(control.set_note(store, run, text))


@app.command()
def delete(
    ctx: typer.Context,
    run: Annotated[list[int], RUNS_ARGUMENT],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete runs with their scores, checkpoints and logs. Asks first at a terminal."""
    with opened_store(ctx) as store:
        if not yes and sys.stdin.isatty():
            goes = control.remains(store, run)
            megabytes = goes.checkpoint_bytes / 1e6
            asked = f"Delete {goes.runs} run(s), {goes.scores} scores and {megabytes:.1f} MB for good?"
            if not typer.confirm(asked, err=True):
                say("Nothing was deleted.")
                raise typer.Exit(1)
        _tell(control.delete(store, run))
