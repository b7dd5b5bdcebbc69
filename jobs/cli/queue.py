"""mrnlab queue: what trains, what waits and why; pause, resume, drain, undrain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from core.store import Run, RunState, Store
from jobs import queueing
from jobs.cli.app import JSON_OPTION, app, opened_store, whole
from jobs.cli.output import print_json, print_table, tell
from jobs.control import Answer
from jobs.processes import hostname
from jobs.tending import tend

__all__ = ["drain", "pause", "queue", "resume", "undrain"]

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
        _tell(queueing.pause(store))


@_group.command()
def resume(ctx: typer.Context) -> None:
    """Let waiting runs start again."""
    with opened_store(ctx) as store:
        _tell(queueing.unpause(store))


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
        _tell(queueing.drain(store, hostname() if host is None else host, now=now))


@_group.command()
def undrain(ctx: typer.Context, host: Annotated[str | None, _HOST] = None) -> None:
    """Let a machine take runs again."""
    with opened_store(ctx) as store:
        _tell(queueing.undrain(store, hostname() if host is None else host))


def _tell(answers: Sequence[Answer]) -> None:
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
