"""mrnlab stop, priority, resume, retry, archive, restore, label, delete, queue."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from core.config.fields import comma_list
from core.errors import MRNLabError
from core.recording.owner import hostname
from core.store import ACTIVE, Run, RunState, Store
from core.wording import plural
from jobs.cli.app import app, check_numbers, opened_store
from jobs.cli.options import JSON_OPTION, RUNS_ARGUMENT, number_option, whole
from jobs.cli.output import log, print_json, print_table, print_text
from jobs.queue import control
from jobs.queue.control import PRIORITIES, Answer
from jobs.queue.maintenance import resume_lost
from jobs.worker.cores import slots_reason, train_at_once
from jobs.worker.slots import standing_still


def _print_answers(answers: Sequence[Answer]) -> None:
    """Prints every answer; exit code 2 where a request was refused."""
    for answer in answers:
        print_text(answer.message, err=not answer.done)
    if not all(answer.done for answer in answers):
        raise typer.Exit(2)


def _existing(store: Store, run_ids: list[int]) -> list[int]:
    """These numbers. Raises RunNotFound where one is of no run, before any run is changed."""
    check_numbers(store, run_ids)
    return run_ids


def _verb_on_runs(name: str, act: Callable[[Store, list[int]], list[Answer]], help_: str) -> None:
    @app.command(name, help=help_)
    def verb(ctx: typer.Context, run: Annotated[list[int], RUNS_ARGUMENT]) -> None:
        with opened_store(ctx) as store:
            _print_answers(act(store, run if act is _restore else _existing(store, run)))


def _restore(store: Store, run_ids: list[int]) -> list[Answer]:
    """Restores all these runs, deleted ones too, or none. Raises MRNLabError for a number of no run."""
    with store.transaction():
        answers = control.restore(store, run_ids)
        for answer in answers:
            if not answer.done:
                raise MRNLabError(answer.message)
    return answers


_verb_on_runs(
    "resume",
    control.resume,
    "Go on with lost, stopped or failed runs where their training state was saved last.",
)
_verb_on_runs("retry", control.retry, "Start failed, lost or stopped runs again from the beginning.")
_verb_on_runs(
    "archive",
    control.archive,
    "Hide runs that have ended. Nothing is deleted: `mrnlab runs --archived` lists them.",
)
_verb_on_runs("restore", _restore, "Show archived runs in the lists again.")


@app.command()
def stop(
    ctx: typer.Context,
    run: Annotated[list[int] | None, RUNS_ARGUMENT] = None,
    sweep: Annotated[str | None, typer.Option(help="All runs of this sweep.", metavar="NAME")] = None,
) -> None:
    """Stop runs: queued ones at once, others at their next step."""
    if bool(run) is (sweep is not None):
        raise MRNLabError("Name the runs to stop, or one --sweep.")
    with opened_store(ctx) as store:
        if sweep is None:
            _print_answers(control.stop(store, _existing(store, run or [])))
            return
        with store.transaction():  # no run of it is claimed or queued again meanwhile
            requested = Counter(store.request_stops(store.ids_of_sweep(sweep, ACTIVE)).values())
        if not requested:
            raise MRNLabError(f"No run of '{sweep}' is in progress or queued.")
        print_text(
            f"Queued runs of '{sweep}' that are stopped: {requested[RunState.CANCELLED]:,}. "
            f"Runs that stop at their next step: {requested[RunState.CANCELLING]:,}."
        )


@app.command()
def priority(
    ctx: typer.Context,
    priority: Annotated[
        int,
        typer.Argument(
            metavar="N", help="Higher ones start first (default: 0).", parser=whole("N", *PRIORITIES)
        ),
    ],
    run: Annotated[list[int], RUNS_ARGUMENT],
) -> None:
    """Give runs a priority. Put `--` before one below zero: `mrnlab priority -- -5 12`."""
    with opened_store(ctx) as store:
        _print_answers(control.prioritise(store, _existing(store, run), priority))


@app.command()
def keyword(
    ctx: typer.Context,
    run: Annotated[list[int], RUNS_ARGUMENT],
    add: Annotated[str, typer.Option(help="Keywords to add, separated by commas.")] = "",
    remove: Annotated[str, typer.Option(help="Keywords to remove, separated by commas.")] = "",
) -> None:
    """Give runs keywords, or take them away: `mrnlab runs --filter keyword:NAME` finds the runs."""
    added, removed = comma_list(add), comma_list(remove)
    if not added and not removed:
        raise MRNLabError("Name the keywords: --add paper,best or --remove paper.")
    with opened_store(ctx) as store:
        _print_answers(control.change_keywords(store, _existing(store, run), add=added, remove=removed))


@app.command()
def delete(
    ctx: typer.Context,
    run: Annotated[list[int], RUNS_ARGUMENT],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    now: Annotated[bool, typer.Option("--now", help="Remove them at once, which is final.")] = False,
) -> None:
    """Delete runs with their scores, checkpoints and logs; for ten minutes `mrnlab restore` brings them back.

    Asks first at a terminal.
    """
    with opened_store(ctx) as store:
        control.remove_deleted(store)
        _existing(store, run)
        if not yes and sys.stdin.isatty():
            goes = control.remains(store, run)
            megabytes = goes.checkpoint_bytes / 1e6
            question = (
                f"Delete {goes.runs} run(s), {goes.scores} scores and {megabytes:.1f} MB{' for good' * now}?"
            )
            if not typer.confirm(question, err=True):
                log("Nothing was deleted.")
                raise typer.Exit(1)
        _print_answers(control.delete(store, run, now=now))


_SLOTS_HELP = "Train up to N runs at once on this machine; 0: as many as its cores and memory bear."
_HOST = typer.Option("--host", metavar="H", help="The machine's name (default: this one).")
_queue = typer.Typer(rich_markup_mode=None, invoke_without_command=True)
app.add_typer(_queue, name="queue")


@_queue.callback()
def queue(
    ctx: typer.Context,
    limit: Annotated[int, number_option("--limit", "Show at most N queued runs.", 1)] = 20,
    slots: Annotated[int | None, number_option("--slots", _SLOTS_HELP, 0)] = None,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Show the runs in progress and the queue; pause and resume the queue, drain machines."""
    if ctx.invoked_subcommand is not None:
        return
    with opened_store(ctx) as store:
        if slots is not None:
            _print_answers(control.choose_slots(store, slots or None))
            return
        resume_lost(store)
        at_once = train_at_once(store)
        training = store.runs(states={RunState.RUNNING, RunState.CANCELLING})
        waiting = store.runs(states={RunState.QUEUED})
        paused_since, drained = store.paused_since(), store.drained()
        holders = standing_still(store) if waiting else []
    waiting.sort(key=lambda run: (-run.priority, run.id))
    first = waiting[:limit]
    trained_rows = list(map(_trained_row, training))
    if json_:
        names = ("id", "state", "machine", "process", "step", "total_steps", "sweep")
        waiting_names = ("id", "priority", "attempt", "retries", "sweep", "waiting_for")
        print_json(
            {
                "paused_since": paused_since and paused_since.isoformat(),
                "at_once": at_once,
                "drained": {host: since.isoformat() for host, since in drained.items()},
                "training": [dict(zip(names, row, strict=True)) for row in trained_rows],
                "standing_still": [dataclasses.asdict(holder) for holder in holders],
                "waiting_in_all": len(waiting),
                "waiting": [{name: getattr(run, name) for name in waiting_names} for run in first],
            }
        )
        return
    if paused_since is not None:
        since = f"{paused_since:%d %b %H:%M} UTC"
        print_text(f"The queue is paused since {since}; `mrnlab queue resume` goes on.")
    for host, moment in drained.items():
        print_text(f"{host} takes no runs since {moment:%d %b %H:%M} UTC.")
    print_text(f"Up to {plural(at_once, 'run')} at once on this machine{slots_reason()}.")
    if not training and not waiting:
        print_text("No runs in progress or queued.")
    if training:
        rows = [(run_id, state.word, *rest) for run_id, state, *rest in trained_rows]
        print_table(("run", "state", "machine", "process", "step", "of", "sweep"), rows)
    if waiting:
        rest = f"; the first {limit:,}, in the order in which they start:" if len(waiting) > limit else "."
        print_text(f"Queued: {len(waiting):,}{rest}")
        rows = [(run.id, run.priority, run.attempt, run.sweep, run.waiting_for) for run in first]
        print_table(("run", "priority", "attempt", "sweep", "waits for"), rows)
    for holder in holders:
        print_text(f"{holder} `mrnlab doctor --fix` ends it now.")


def _trained_row(run: Run) -> tuple[Any, ...]:
    host, pid = (run.owner.host, run.owner.pid) if run.owner is not None else (None, None)
    return run.id, run.state, host, pid, run.step, run.total_steps, run.sweep


@_queue.command()
def pause(ctx: typer.Context) -> None:
    """Start no queued run. Runs in progress go on."""
    with opened_store(ctx) as store:
        _print_answers(control.pause(store))


@_queue.command("resume")
def unpause(ctx: typer.Context) -> None:
    """Start queued runs again."""
    with opened_store(ctx) as store:
        _print_answers(control.unpause(store))


@_queue.command()
def drain(
    ctx: typer.Context,
    host: Annotated[str | None, _HOST] = None,
    now: Annotated[
        bool, typer.Option("--now", help="Also save and stop its runs, and queue them again to be resumed.")
    ] = False,
) -> None:
    """Let a machine take no more runs; its workers end after their current runs."""
    with opened_store(ctx) as store:
        _print_answers(control.drain(store, hostname() if host is None else host, now=now))


@_queue.command()
def undrain(ctx: typer.Context, host: Annotated[str | None, _HOST] = None) -> None:
    """Let a machine take runs again."""
    with opened_store(ctx) as store:
        _print_answers(control.undrain(store, hostname() if host is None else host))
