"""mrnlab results and appendix: tables of scores, configurations × tasks over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import typer

from core.errors import MRNLabError
from core.results.records import COST_COLUMNS, SCORE_COLUMNS, score_records
from core.results.samples import DataGroup
from core.results.stored import stored_results
from core.results.table import ResultTable
from core.store import Run, RunState, Store
from core.wording import all_of, which_runs
from jobs.cli.app import app, named_runs, opened_store
from jobs.cli.options import (
    EVERY_ROW_OPTION,
    JSON_OPTION,
    RUNS_ARGUMENT,
    SPLIT_OPTION,
    format_option,
    run_number,
)
from jobs.cli.output import log, print_json, print_report, write_document
from jobs.reports.render import (
    REPORT_COLUMNS,
    csv_text,
    report_records,
    report_sheet,
    score_sheet,
    with_published,
)


@app.command()
def results(
    ctx: typer.Context,
    run: Annotated[
        list[int] | None,
        typer.Argument(metavar="[RUN...]", help="Only these runs (default: all).", parser=run_number),
    ] = None,
    format_: Annotated[
        str, format_option("How the table is written.", "table", "csv", "markdown", "latex")
    ] = "table",
    split: Annotated[str, SPLIT_OPTION] = "test",
    by_label: Annotated[
        bool,
        typer.Option(
            "--by-label",
            help="Precision, recall, F1 and support of each label of these runs, with micro, macro and "
            "weighted averages.",
        ),
    ] = False,
    cost: Annotated[
        bool,
        typer.Option("--cost", help="Also each configuration's parameters, peak memory and training time."),
    ] = False,
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="Also the dissertation's figures for runs trained and scored in the same way."
        ),
    ] = False,
    every_row: Annotated[bool, EVERY_ROW_OPTION] = False,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Print the scores of finished runs: mean ± standard deviation over seeds (n), times 100.

    A table per corpus and share of it, a row a method: dev chooses among configurations that differ in
    numbers such as λ. CSV and JSON have a row per method and task, scores in [0, 1].
    With --by-label a table per run and task, by label or span type.
    """
    if by_label:
        _by_label(ctx, run or [], split, format_, json_=json_)
        return
    with opened_store(ctx) as store:
        named = named_runs(store, run or ())
        counted = stored_results(store, run or None, with_facts=cost)
        tables = counted.method_tables(split, every_row=every_row)
        alignments = _alignments(store, tables.values())
    if counted.note:
        log(counted.note)
    records = [record for table in tables.values() for record in score_records(table, cost=cost)]
    rows = [of for table in tables.values() for row in table.rows for of in row.tried]
    reported = {run_id for row in rows for run_id in row.run_ids}
    others = [run for run in named if run.id not in reported and not run.problem]
    if others and not tables:
        raise MRNLabError(f"None of these runs has {split} scores: {_with_states(others)}.")
    for note in _notes(tables):
        log(note)
    if others:
        log(f"Left out, without {split} scores: {_with_states(others)}.")
    if json_:
        print_json(records)
    elif format_ == "csv":
        write_document(csv_text(SCORE_COLUMNS + COST_COLUMNS * cost, records))
    elif not tables:
        raise MRNLabError(f"No run has {split} scores yet; `mrnlab runs` shows what is under way.")
    else:
        sheets = [(score_sheet(table, name.name, cost=cost), table) for name, table in tables.items()]
        print_report([with_published(*each) if published else each[0] for each in sheets], format_)
        for (alignment, reason), ids in alignments.items():
            log(f"Alignment {alignment} in {which_runs(ids)}: {reason}.")


@app.command("appendix")
def print_appendix(
    ctx: typer.Context,
    run: Annotated[list[int], RUNS_ARGUMENT],
    format_: Annotated[str, format_option("How it is written.", "latex", "markdown")] = "latex",
) -> None:
    """Print the reproducibility appendix of a paper on these finished runs.

    Data with sizes and labels, every hyperparameter with how it was chosen, seeds, parameters, time and
    hardware, dev beside test scores, versions, and the commands that run it again: all from the store.
    """
    from jobs.reports.appendix import appendix

    with opened_store(ctx) as store:
        unfinished = [named for named in named_runs(store, run) if named.state is not RunState.SUCCEEDED]
        parts = appendix(store, run)
    print_report(parts, format_)
    if unfinished:
        log(f"Left out, not finished: {_with_states(unfinished)}.")


def _with_states(runs: Iterable[Run]) -> str:
    return all_of([f"run {run.id} ({run.state.word})" for run in runs])


def _alignments(store: Store, tables: Iterable[ResultTable]) -> dict[tuple[str, str], list[int]]:
    """The runs with the alignment `auto` by the alignment that was chosen and its reason."""
    rows = [row for table in tables for row in table.rows if row.config.alignment == "auto"]
    by_alignment: dict[tuple[str, str], list[int]] = {}
    runs = store.runs_with_facts({run_id for row in rows for run_id in row.run_ids})
    for run in sorted(runs, key=lambda run: run.id):
        if run.facts and run.facts.alignment:
            reason = run.facts.alignment_reason or "as asked"
            by_alignment.setdefault((run.facts.alignment, reason), []).append(run.id)
    return by_alignment


def _by_label(ctx: typer.Context, run_ids: list[int], split: str, format_: str, *, json_: bool) -> None:
    if not run_ids:
        raise MRNLabError("--by-label reports single runs: name them, as in `mrnlab results 12 --by-label`.")
    with opened_store(ctx) as store:
        runs = {run_id: store.run(run_id) for run_id in run_ids}
        scores = [score for score in store.scores(list(runs), split) if score.report]
    for run in runs.values():
        if not any(score.run_id == run.id for score in scores):
            raise MRNLabError(f"Run {run.id} is {run.state.word} and has no {split} scores by label.")
    records = [record for score in scores for record in report_records(runs[score.run_id], score)]
    if json_:
        print_json(records)
    elif format_ == "csv":
        write_document(csv_text(REPORT_COLUMNS, records))
    else:
        print_report([report_sheet(runs[score.run_id], score) for score in scores], format_)


def _notes(tables: Mapping[DataGroup, ResultTable]) -> dict[str, None]:
    """The notes on the text and the precision of these runs, each once."""
    notes = [note for group, table in tables.items() for note in (group.note, *table.notes)]
    return dict.fromkeys(note for note in notes if note)
