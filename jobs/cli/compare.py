"""mrnlab compare: which method is better, on which task, by how much, and what a paper claims of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from core.config.fields import comma_list
from core.errors import ConfigError, MRNLabError
from core.results.compared import COMPARED_COLUMNS, Claim, Compared, compared, failures, parse_claim
from core.results.comparisons import counts_sentence, verdict_counts
from core.results.filter import parse_filter
from core.results.stored import Results, stored_results
from core.results.table import MEAN_OF_TASKS
from core.results.where import WHERE_COLUMNS, Where, where
from core.store import Store
from core.wording import plural
from jobs.cli.app import app, named_runs, opened_store
from jobs.cli.decide import MATTERS_OPTION
from jobs.cli.options import EVERY_ROW_OPTION, JSON_OPTION, SPLIT_OPTION, format_option, grouped, run_number
from jobs.cli.output import log, print_json, print_report, print_text, write_document
from jobs.reports.render import csv_text, difference_sheet
from jobs.reports.where import where_sheets


@dataclass(frozen=True)
class ComparedOptions:
    """What `mrnlab compare` compares, as typed."""

    run: Annotated[
        list[int] | None,
        typer.Argument(metavar="[RUN...]", help="Only these runs (default: all).", parser=run_number),
    ] = None
    filter_: Annotated[
        str | None, typer.Option("--filter", help="Only runs that match, as of `mrnlab runs`.")
    ] = None
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Compare each row with this one alone, a row, method or paradigm (default: all pairs).",
        ),
    ] = None
    task: Annotated[str | None, typer.Option(metavar="NAME,...", help="Only these tasks (default: all).")] = (
        None
    )
    matters: Annotated[float | None, MATTERS_OPTION] = None
    split: Annotated[str, SPLIT_OPTION] = "test"
    every_row: Annotated[bool, EVERY_ROW_OPTION] = False

    @property
    def tasks(self) -> list[str] | None:
        """The named tasks; None for all."""
        return None if self.task is None else comma_list(self.task)

    def results(self, store: Store) -> Results:
        """The results of the named and matching runs. Raises RunNotFound and FilterError."""
        named = named_runs(store, self.run or ())
        if self.filter_ is None:
            return stored_results(store, {run.id for run in named} if self.run else None)
        matching = parse_filter(self.filter_, store=store)
        listed = named if self.run else store.runs()
        return stored_results(store, {run.id for run in listed if matching.matches(run)})

    def where(self, store: Store, results: Results, by: str | None) -> list[Where]:
        """Where the differences come from, with `by` by these columns of the corpus."""
        columns = () if by is None else comma_list(by)
        return where(
            store,
            results,
            self.split,
            baseline=self.baseline,
            tasks=self.tasks,
            by=columns,
            every_row=self.every_row,
        )

    def answered(self, results: Results) -> list[Compared]:
        """The differences. Raises MRNLabError where no two rows are on the same data."""
        answered = compared(
            results,
            self.split,
            baseline=self.baseline,
            matters=self.matters,
            tasks=self.tasks,
            every_row=self.every_row,
        )
        if not answered:
            raise MRNLabError(f"There are no two rows with {self.split} scores on the same data to compare.")
        return answered


@app.command("compare")
@grouped
def compare_verb(
    ctx: typer.Context,
    options: ComparedOptions,
    expect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLAIM",
            help="As 'mrn > mtl on ner', also < and = (equivalent). Exits 1 unless each holds.",
        ),
    ] = None,
    format_: Annotated[
        str, format_option("How the table is written.", "table", "csv", "markdown", "latex")
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
    claims = [parse_claim(text) for text in expect or ()]
    if where_ and (claims or options.matters is not None):
        option = "expect" if claims else "matters"
        raise ConfigError(option, f"{option}: --{option} is about scores; leave it out with --where.")
    if by is not None and not where_:
        raise ConfigError("by", "by: --by says which buckets --where has; add --where.")
    with opened_store(ctx) as store:
        results = options.results(store)
        apart = options.where(store, results, by) if where_ else []
    if results.note:
        log(results.note)
    if where_:
        _print_where(apart, format_, json_=json_)
    else:
        _print_answers(options.answered(results), claims, format_, json_=json_)


def _print_answers(
    answered: Sequence[Compared], claims: Sequence[Claim], format_: str, *, json_: bool
) -> None:
    """Prints the differences. Exits 1 where a claim does not hold."""
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


def _print(answered: Sequence[Compared], format_: str) -> None:
    for each in answered:
        if format_ == "table":
            print_text(f"{each.data}: " + "\n".join(each.sentences) + "\n")
        sheet = difference_sheet(each.differences, each.table, each.baseline.key, each.data)
        print_report([sheet], "" if format_ == "table" else format_)
        log(each.signature)
        for note in each.table.notes:
            log(note)
    if len(answered) > 1:
        of_tasks = [delta for each in answered for delta in each.differences if delta.task != MEAN_OF_TASKS]
        for (a, b), counts in verdict_counts(of_tasks).items():
            log(counts_sentence(a, b, counts, plural(len(answered), "data set")))
