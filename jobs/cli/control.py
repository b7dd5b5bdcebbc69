"""mrnlab stop, priority, resume, retry, archive, restore, label, note, delete."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from core.errors import MRNLabError
from core.recording.owner import hostname
from core.store import ACTIVE, Run, RunState, Store
from jobs import control
from jobs import control as queueing
from jobs.cli.app import JSON_OPTION, RUN_ARGUMENT, RUNS_ARGUMENT, app, opened_store, whole
from jobs.cli.output import print_json, print_table, say, tell
from jobs.control import PRIORITIES, Answer
from jobs.worker.maintenance import tend


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


# mrnlab queue: what trains, what waits and why; pause, resume, drain, undrain.


_HOST = typer.Option("--host", metavar="H", help="A machine by its name; unsaid this one.")

_group = typer.Typer(rich_markup_mode=None, invoke_without_command=True)
app.add_typer(_group, name="queue")


@_group.callback()
def queue(
    ctx: typer.Context,
    limit: Annotated[
        int,
        typer.Option(metavar="N", help="At most so many of the runs that wait.", parser=whole("--limit", 1)),
    ] = 20,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Show what trains where, what waits and why; pause and resume the queue, drain machines."""
    if ctx.invoked_subcommand is not None:
        return
    with opened_store(ctx) as store:
        tend(store)
        trained = store.runs(states={RunState.RUNNING, RunState.CANCELLING}, with_facts=False)
        waiting = store.runs(states={RunState.QUEUED}, with_facts=False)
        waiting.sort(key=lambda run: (-run.priority, run.id))
        if json_:
            print_json(_document(store, trained, waiting[:limit], len(waiting)))
            return
        if (since := store.paused_since()) is not None:
            tell(
                f"The queue is paused since {since.astimezone():%d %b %H:%M}; `mrnlab queue resume` goes on."
            )
        for host, since in store.drained().items():
            tell(f"{host} takes no runs since {since.astimezone():%d %b %H:%M}.")
        if not trained and not waiting:
            tell("No run trains or waits.")
        if trained:
            print_table(
                ("run", "state", "machine", "process", "step", "of", "sweep"), map(_trained_row, trained)
            )
        if waiting:
            tell(f"Waiting: {len(waiting):,}." if len(waiting) <= limit else _first_of(limit, len(waiting)))
            rows = [
                (run.id, run.priority, run.attempt, run.sweep, run.waiting_for) for run in waiting[:limit]
            ]
            print_table(("run", "priority", "attempt", "sweep", "waits for"), rows)


@_group.command()
def pause(ctx: typer.Context) -> None:
    """Let no waiting run start. What trains goes on."""
    with opened_store(ctx) as store:
        _tell_queue(control.pause(store))


@_group.command("resume")
def resume_queue(ctx: typer.Context) -> None:
    """Let waiting runs start again."""
    with opened_store(ctx) as store:
        _tell_queue(control.unpause(store))


@_group.command()
def drain(
    ctx: typer.Context,
    host: Annotated[str | None, _HOST] = None,
    now: Annotated[
        bool, typer.Option("--now", help="Also save what trains there, and queue it again to be resumed.")
    ] = False,
) -> None:
    """Let a machine take no more runs; its workers end after what they train."""
    with opened_store(ctx) as store:
        _tell_queue(control.drain(store, hostname() if host is None else host, now=now))


@_group.command()
def undrain(ctx: typer.Context, host: Annotated[str | None, _HOST] = None) -> None:
    """Let a machine take runs again."""
    with opened_store(ctx) as store:
        _tell_queue(control.undrain(store, hostname() if host is None else host))


def _tell_queue(answers: Sequence[Answer]) -> None:
    for answer in answers:
        tell(answer.message)


def _first_of(limit: int, waiting: int) -> str:
    return f"Waiting: {waiting:,}; the first {limit:,}, in the order in which they start:"


def _trained_row(run: Run) -> tuple[object, ...]:
    host, pid = (run.owner.host, run.owner.pid) if run.owner is not None else ("", "")
    return run.id, run.state.value, host, pid, run.step, run.total_steps, run.sweep


def _document(
    store: Store, trained: Sequence[Run], waiting: Sequence[Run], waiting_in_all: int
) -> dict[str, Any]:
    since = store.paused_since()
    return {
        "paused_since": None if since is None else since.isoformat(),
        "drained": {host: moment.isoformat() for host, moment in store.drained().items()},
        "training": [
            {
                "id": run.id,
                "state": run.state.value,
                "machine": run.owner.host if run.owner is not None else None,
                "process": run.owner.pid if run.owner is not None else None,
                "step": run.step,
                "total_steps": run.total_steps,
                "sweep": run.sweep,
            }
            for run in trained
        ],
        "waiting_in_all": waiting_in_all,
        "waiting": [
            {
                "id": run.id,
                "priority": run.priority,
                "attempt": run.attempt,
                "retries": run.retries,
                "sweep": run.sweep,
                "waiting_for": run.waiting_for,
            }
            for run in waiting
        ],
    }
