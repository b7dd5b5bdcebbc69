"""mrnlab results: configurations × tasks over seeds, as the dissertation's tables have it."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import Annotated

import typer

from core.errors import MRNLabError
from core.evaluation.statistics import MeanSD
from jobs.cli.app import JSON_OPTION, app, opened_store
from jobs.cli.output import print_csv, print_json, print_table
from jobs.results import ResultTable, tabulate

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

    CSV and JSON have a row per configuration and task, scores in [0, 1].
    """
    if split not in ("dev", "test"):
        raise MRNLabError(f"--split: '{split}' is not one of dev, test.")
    with opened_store(ctx) as store:
        table = tabulate(store, run or None, split)
    if json_:
        print_json(_long(table))
    elif format_ is _Format.CSV:
        print_csv(_COLUMNS, [[record[column] for column in _COLUMNS] for record in _long(table)])
    elif not table.rows:
        raise MRNLabError(f"No run has {split} scores yet; `mrnlab runs` shows what is under way.")
    elif format_ is _Format.MARKDOWN:
        typer.echo(_markdown(table))
    elif format_ is _Format.LATEX:
        typer.echo(_latex(table))
    else:
        cells = [[row.name, *(_told(row.cells.get(task)) for task in table.tasks)] for row in table.rows]
        print_table(["configuration", *_headers(table)], cells)


_COLUMNS = ("configuration", "task", "split", "score_name", "mean", "sd", "n", "low", "high", "runs")


def _long(table: ResultTable) -> list[dict[str, object]]:
    """A record of _COLUMNS per configuration and task."""
    return [
        {
            "configuration": row.name,
            "task": task,
            "split": table.split,
            "score_name": table.score_names[task],
            **dataclasses.asdict(row.cells[task]),
            "runs": " ".join(map(str, row.run_ids)),
        }
        for row in table.rows
        for task in table.tasks
        if task in row.cells
    ]


def _headers(table: ResultTable) -> list[str]:
    return [f"{task} ({table.score_names[task]})" for task in table.tasks]


def _told(cell: MeanSD | None) -> str:
    if cell is None:
        return "–"
    spread = "" if cell.sd is None else f" ± {100 * cell.sd:.2f}"
    return f"{100 * cell.mean:.2f}{spread} ({cell.n})"


def _markdown(table: ResultTable) -> str:
    def row(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rows = [[one.name, *(_told(one.cells.get(task)) for task in table.tasks)] for one in table.rows]
    head = [["configuration", *_headers(table)], ["---", *("---:" for _ in table.tasks)]]
    return "\n".join(map(row, head + rows))


# One pass over the characters, so that what one replacement brings is not replaced again.
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
        "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "λ": r"$\lambda$",
    }
)  # fmt: skip


def _latex(table: ResultTable) -> str:
    """A booktabs table."""

    def cell(value: MeanSD | None) -> str:
        if value is None:
            return "--"
        spread = "" if value.sd is None else rf" \pm {100 * value.sd:.2f}"
        return rf"${100 * value.mean:.2f}{spread}$ ({value.n})"

    def row(cells: list[str]) -> str:
        return "  " + " & ".join(cells) + r" \\"

    return "\n".join(
        [
            r"\begin{tabular}{l" + "r" * len(table.tasks) + "}",
            r"  \toprule",
            row(["Configuration", *(header.translate(_LATEX) for header in _headers(table))]),
            r"  \midrule",
            *(
                row([one.name.translate(_LATEX), *(cell(one.cells.get(task)) for task in table.tasks)])
                for one in table.rows
            ),
            r"  \bottomrule",
            r"\end{tabular}",
        ]
    )
