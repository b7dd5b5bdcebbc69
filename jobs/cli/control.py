"""mrnlab stop, priority, resume, retry, archive, restore, label, note, delete."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from core.errors import MRNLabError
from core.store import ACTIVE, RunState
from jobs import control, queueing
from jobs.cli.app import RUN_ARGUMENT, RUNS_ARGUMENT, app, opened_store, whole
from jobs.cli.output import say, tell
from jobs.control import Answer
from jobs.queueing import PRIORITIES

__all__ = ["archive", "delete", "label", "note", "priority", "restore", "resume", "retry", "stop"]


def _tell(answers: Sequence[Answer]) -> None:
    """Every answer in words; exit code 2 where a run refused."""
    for answer in answers:
        tell(answer.message, err=not answer.done)
    if not all(answer.done for answer in answers):
        raise typer.Exit(2)


@app.command()
def stop(
    ctx: typer.Context,
    run: Annotated[list[int] | None, RUNS_ARGUMENT] = None,
    sweep: Annotated[str | None, typer.Option(help="All runs of that name together.", metavar="NAME")] = None,
) -> None:
    """Stop runs: queued ones at once, others at their next step."""
    if bool(run) is (sweep is not None):
        raise MRNLabError("Name the runs to stop, or one --sweep.")
    with opened_store(ctx) as store:
        if sweep is None:
            _tell(control.stop(store, run or ()))
            return
        with store.transaction():  # no run of it is claimed or queued again meanwhile
            asked = Counter(store.request_stops(store.launched(sweep, ACTIVE)).values())
        if not asked:
            raise MRNLabError(f"No run of '{sweep}' trains or waits.")
        tell(
            f"Waiting runs of '{sweep}' that are cancelled: {asked[RunState.CANCELLED]:,}. "
            f"Runs that stop at their next step: {asked[RunState.CANCELLING]:,}."
        )


@app.command()
def priority(
    ctx: typer.Context,
    priority: Annotated[
        int,
        typer.Argument(
            metavar="N", help="Higher ones start first; unsaid 0.", parser=whole("N", *PRIORITIES)
        ),
    ],
    run: Annotated[list[int], RUNS_ARGUMENT],
) -> None:
    """Give runs a priority. Put `--` before one below zero: `mrnlab priority -- -5 12`."""
    with opened_store(ctx) as store:
        _tell(queueing.prioritise(store, run, priority))


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
