"""mrnlab suspects: places where nearly all runs contradict the annotation."""

from __future__ import annotations

from typing import Annotated

import typer

from core.config.fields import comma_list
from core.errors import ConfigError
from core.plain_text import shortened
from core.results.stored import stored_results
from core.results.suspects import AGREE, SUSPECT_COLUMNS, suspects, suspects_conll
from core.wording import plural
from jobs.cli.app import app, named_runs, opened_store
from jobs.cli.options import JSON_OPTION, RUNS_ARGUMENT, SPLIT_OPTION, format_option
from jobs.cli.output import log, print_json, print_table, write_document
from jobs.reports.render import csv_text


def share_of(text: str | float) -> float:
    """A share, as 0.9. Raises ConfigError for other text."""
    try:
        return float(text)
    except ValueError:
        raise ConfigError("agree", f"agree: '{shortened(str(text))}' is no share, as 0.9.") from None


@app.command("suspects")
def suspects_verb(
    ctx: typer.Context,
    run: Annotated[list[int], RUNS_ARGUMENT],
    task: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Only these tasks (default: all).")
    ] = None,
    split: Annotated[str, SPLIT_OPTION] = "test",
    agree: Annotated[
        float, typer.Option(metavar="SHARE", help="The least share of agreeing runs.", parser=share_of)
    ] = AGREE,
    format_: Annotated[
        str,
        format_option(
            "How they are written; csv and conll are for an annotator.", "table", "csv", "conll", "json"
        ),
    ] = "table",
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Print where nearly all these runs predict the same label, and not the annotated one.

    First what looks most like a wrong annotation, by agreement, training and how rarely models err so
    elsewhere; each with its sentence and what other tasks say there. Of a share of agreeing seeds the mean
    over methods counts. The corpus is not changed.
    """
    tasks = None if task is None else comma_list(task)
    with opened_store(ctx) as store:
        named_runs(store, run)
        results = stored_results(store, run)
        of_tasks = suspects(store, results, split, tasks=tasks, agree=agree)
    if results.note:
        log(results.note)
    records = [record for each in of_tasks for record in each.records]
    if json_ or format_ == "json":
        print_json(records)
    elif format_ == "csv":
        write_document(csv_text(SUSPECT_COLUMNS, records))
    elif format_ == "conll":
        write_document(suspects_conll(of_tasks))
    else:
        shown = ("task", "agree", "sentence", "words", "gold", "predicted", "related", "text")
        if records:
            rows = [[record[name] for name in shown] for record in records]
            print_table(
                shown, [[f"{each:.2f}" if isinstance(each, float) else each for each in row] for row in rows]
            )
    for each in of_tasks:
        log(f"{each.data}, {each.task}: {plural(len(each.places), 'suspect')} in the {split} split.")
