"""mrnlab compare: which method is better, on which task, by how much, and what a paper claims of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from core.config.fields import comma_list
from core.errors import ConfigError, MRNLabError
from core.results.compared import COMPARED_COLUMNS, Compared, compared, failures, parse_claim
from core.results.filter import parse_filter
from core.results.stored import stored_results
from core.results.where import WHERE_COLUMNS, Where, where
from core.wording import plural
from jobs.cli.app import EVERY_ROW_OPTION, JSON_OPTION, app, named_runs, one_of, opened_store, run_number
from jobs.cli.decide import MATTERS_OPTION
from jobs.cli.output import log, print_json, print_report, print_text, write_document
from jobs.reports.render import csv_text, difference_sheet
from jobs.reports.where import where_sheets

_FORMATS = ("table", "csv", "markdown", "latex")


@app.command("compare")
def compare_verb(
    ctx: typer.Context,
    run: Annotated[
        list[int] | None,
        typer.Argument(metavar="[RUN...]", help="Only these runs (default: all).", parser=run_number),
    ] = None,
    filter_: Annotated[
        str | None, typer.Option("--filter", help="Only runs that match, as of `mrnlab runs`.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Compare each row with this one alone, a row, method or paradigm (default: all pairs).",
        ),
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Only these tasks (default: all).")
    ] = None,
    matters: Annotated[
        float | None,
        MATTERS_OPTION,
    ] = None,
    split: Annotated[str, typer.Option(help="dev or test.")] = "test",
    every_row: Annotated[bool, EVERY_ROW_OPTION] = False,
    expect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLAIM",
            help="As 'mrn > mtl on ner', also < and = (equivalent). Exits 1 unless each holds.",
        ),
    ] = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="|".join(_FORMATS),
            help="How the table is written.",
            parser=one_of("--format", _FORMATS),
        ),
    ] = "table",
    where_: Annotated[
        bool,
        typer.Option(
            "--where",
            help="Where the differences come from: by buckets of words, spans or texts, by kinds of errors.",
        ),
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN,...", help="With --where: buckets by columns of the corpus, or its `#` fields."
        ),
    ] = None,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Print which method scores higher, by how much, and how many seeds would decide what is undecided.

    A row a method: dev chooses among configurations that differ in numbers such as λ. Differences are paired
    by seed, with verdicts corrected for all of a task (Holm). CSV and JSON have scores in [0, 1].
    With --where a table of buckets and one of errors for each row and task.
    """
    one_of("--split", ("dev", "test"))(split)
    claims = [parse_claim(text) for text in expect or ()]
    if where_ and (claims or matters is not None):
        option = "expect" if claims else "matters"
        raise ConfigError(option, f"{option}: --{option} is about scores; leave it out with --where.")
    if by is not None and not where_:
        raise ConfigError("by", "by: --by says which buckets --where has; add --where.")
    tasks = None if task is None else comma_list(task)
    with opened_store(ctx) as store:
        named = named_runs(store, run or ())
        wanted = {each.id for each in named} if run else None
        if filter_ is not None:
            matching = parse_filter(filter_, store=store)
            listed = named if run else store.runs()
            wanted = {each.id for each in listed if matching.matches(each)}
        results = stored_results(store, wanted)
        apart = []
        if where_:
            columns = () if by is None else comma_list(by)
            apart = where(
                store, results, split, baseline=baseline, tasks=tasks, by=columns, every_row=every_row
            )
    if results.note:
        log(results.note)
    if where_:
        _print_where(apart, format_, json_=json_)
        return
    answered = compared(results, split, baseline=baseline, matters=matters, tasks=tasks, every_row=every_row)
    if not answered:
        raise MRNLabError(f"There are no two rows with {split} scores on the same data to compare.")
    wrong = [sentence for claim in claims for sentence in failures(claim, answered)]
    if json_:
        print_json(
            {
                "comparisons": [_document(each) for each in answered],
                "expected": {"claims": len(claims), "failures": wrong},
            }
        )
    elif format_ == "csv":
        write_document(csv_text(COMPARED_COLUMNS, [record for each in answered for record in each.records]))
    else:
        _print(answered, format_)
    for sentence in wrong:
        log(sentence)
    if claims and not wrong and not json_:
        log(f"{plural(len(claims), 'claim')} held.")
    if wrong:
        raise typer.Exit(1)


def _print_where(apart: Sequence[Where], format_: str, *, json_: bool) -> None:
    if json_:
        print_json({"where": [_where_document(each) for each in apart]})
        return
    if format_ == "csv":
        write_document(csv_text(WHERE_COLUMNS, [record for each in apart for record in each.records]))
        return
    for place, each in enumerate(apart):
        if format_ == "table":
            print_text("\n" * (place > 0) + each.headline + "\n")
        print_report(where_sheets(each), "" if format_ == "table" else format_)
        for note in each.notes:
            log(note)


def _where_document(each: Where) -> dict[str, object]:
    return {
        "data": each.data,
        "task": each.delta.task,
        "configuration": each.delta.row.name,
        "baseline": each.delta.base.name,
        "headline": each.headline,
        "notes": each.notes,
        "differences": each.records,
    }


def _document(each: Compared) -> dict[str, object]:
    return {
        "data": each.data,
        "baseline": each.baseline.name,
        "family": "baseline" if each.is_asked else "all pairs",
        "sentences": each.sentences,
        "signature": each.signature,
        "notes": each.table.notes,
        "differences": each.records,
    }


def _print(answered: list[Compared], format_: str) -> None:
    for each in answered:
        if format_ == "table":
            print_text(f"{each.data}: " + "\n".join(each.sentences) + "\n")
        sheet = difference_sheet(each.differences, each.table, each.baseline.key, each.data)
        print_report([sheet], "" if format_ == "table" else format_)
        log(each.signature)
        for note in each.table.notes:
            log(note)
