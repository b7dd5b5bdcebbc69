"""mrnlab advise: which tasks are likely to help which, what that rests on, and what would settle it."""

from __future__ import annotations

from typing import Annotated

import typer

from core.config import FIELD_HELP
from core.config.fields import comma_list
from core.store import RunState
from core.wording import which_runs
from jobs.cli.app import JSON_OPTION, app, opened_store, whole
from jobs.cli.launch import wait_for_runs
from jobs.cli.output import print_json, print_report, say

_MOST_SEEDS = 20


@app.command()
def advise(
    ctx: typer.Context,
    corpus: Annotated[str, typer.Option(help=FIELD_HELP["corpus"].sentence, metavar="VALUE")],
    tasks: Annotated[str, typer.Option(help="Two tasks or more, separated by commas.", metavar="VALUE,...")],
    columns: Annotated[
        str | None, typer.Option(help=FIELD_HELP["columns"].sentence, metavar="VALUE,...")
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(help="Joint runs (default: 1).", metavar="N", parser=whole("--seeds", 1, _MOST_SEEDS)),
    ] = 1,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Say which tasks are likely to help which, how sure that is, and which sweep would settle it.

    Trains one model of all tasks over a frozen encoder, which takes a minute or two, and judges every pair by
    the cosine of its tasks' gradients, as the study `transfer` measured it. Runs that are there count.
    """
    from jobs.queue.submit import submit_missing
    from jobs.reports.advise import advice, inquiry
    from jobs.reports.advise_words import report

    names = None if columns is None else tuple(comma_list(columns))
    asked = inquiry(corpus, comma_list(tasks), seeds, names)
    with opened_store(ctx) as store:
        ids, used = submit_missing(store, asked.runs, asked.sweep, tell=say)
        if used:
            say(f"Uses {which_runs(used)}, there already.")
        wait_for_runs(store, ids)
        if any(run.state is not RunState.SUCCEEDED for run in store.runs(ids, with_facts=False)):
            raise typer.Exit(1)  # waiting has said why
        advised = advice(store, asked)
    if json_:
        print_json(advised.document())
    else:
        print_report(report(advised))
