"""mrnlab results: configurations × tasks over seeds, as the dissertation's tables have it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from core.errors import MRNLabError
from core.store import RunState, Store
from jobs.cli.app import JSON_OPTION, app, opened_store
from jobs.cli.output import hand_out, print_json, print_table, say, tell
from jobs.results import ResultTable, Setting, settings, tabulate
from jobs.sheets import SCORE_COLUMNS, Sheet, csv_text, latex, markdown, score_records, score_sheet

__all__ = ["results"]


class _Format(StrEnum):
    """How the table is written."""

    TABLE = "table"
    CSV = "csv"
    MARKDOWN = "markdown"
    LATEX = "latex"


@app.command()
def results(
    ctx: typer.Context,
    run: Annotated[
        list[int] | None, typer.Argument(metavar="[RUN...]", help="Only these runs (default: all).")
    ] = None,
    format_: Annotated[_Format, typer.Option("--format", help="How the table is written.")] = _Format.TABLE,
    split: Annotated[str, typer.Option(help="dev or test.")] = "test",
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Print the scores of finished runs: mean ± standard deviation over seeds (n), in percent.

    A table per corpus and share of it. CSV and JSON have a row per configuration and task, scores in [0, 1].
    """
    if split not in ("dev", "test"):
        raise MRNLabError(f"--split: '{split}' is not one of dev, test.")
    with opened_store(ctx) as store:
        tables = _tables(store, run or None, split)
    records = [record for table in tables.values() for record in score_records(table)]
    if json_:
        print_json(records)
    elif format_ is _Format.CSV:
        hand_out(csv_text(SCORE_COLUMNS, records))
    elif not tables:
        raise MRNLabError(f"No run has {split} scores yet; `mrnlab runs` shows what is under way.")
    else:
        for place, (setting, table) in enumerate(tables.items()):
            if place:
                tell()
            _print(score_sheet(table, setting.name), format_)


def _tables(store: Store, run_ids: list[int] | None, split: str) -> dict[Setting, ResultTable]:
    """The tables of these runs, of all that succeeded, that have scores on that split."""
    found = store.runs(ids=run_ids, states={RunState.SUCCEEDED}, with_facts=False)
    scores = store.scores([run.id for run in found], with_reports=False)
    tables = {setting: tabulate(runs, scores, split) for setting, runs in settings(found).items()}
    return {setting: table for setting, table in tables.items() if table.rows}


def _print(sheet: Sheet, format_: _Format) -> None:
    if format_ is _Format.MARKDOWN:
        hand_out(markdown(sheet) + "\n")
    elif format_ is _Format.LATEX:
        hand_out(latex(sheet) + "\n")
    else:
        say(sheet.caption)
        print_table(
            [sheet.head[0].lower(), *sheet.head[1:]],
            [
                [
                    f"{name} · {block.title}" if block.title else name,
                    *("–" if one is None else f"{one.text} {one.beside}".rstrip() for one in entries),
                ]
                for block in sheet.blocks
                for name, entries in block.rows
            ],
        )
