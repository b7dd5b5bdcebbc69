"""What goes to standard output: one JSON document, CSV or a plain table. Progress goes to standard error."""

from __future__ import annotations

import codecs
import csv
import io
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

from core.plain_text import spreadsheet_cell, terminal_text
from core.store import Run, StoredScore
from core.tasks.scores import averages


def say(message: str) -> None:
    """A sentence for the person at the terminal."""
    tell(message, err=True)


def tell(text: str = "", *, err: bool = False) -> None:
    """Lines for people: labels, words and names in them cannot command the terminal."""
    typer.echo(terminal_text(text), err=err)


def hand_out(text: str) -> None:
    """A document for another program: as it is into a file or a pipe, harmless on a terminal."""
    typer.echo(terminal_text(text) if sys.stdout.isatty() else text, nl=False)


def print_json(document: Any) -> None:
    """One JSON document. Numbers that are not finite become null, which JSON can say."""
    utf8 = codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"
    hand_out(json.dumps(_plain(document), ensure_ascii=not utf8, indent=2, allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_csv(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Comma-separated values, quoted where they must be; no cell is a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(spreadsheet_cell, headers))
    writer.writerows(map(spreadsheet_cell, row) for row in rows)
    hand_out(text.getvalue())


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns aligned by spaces: numbers to the right, words to the left."""
    cells = [["" if cell is None else _one_line(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    right = [
        bool(cells) and all(_is_number(row[place]) or not row[place] for row in cells)
        for place in range(len(headers))
    ]
    for row in [list(headers), *cells]:
        padded = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, right, strict=True)
        ]
        tell("  ".join(padded).rstrip())


def print_rows(headers: Sequence[str], rows: Sequence[Sequence[object]], *, csv: bool, json_: bool) -> None:
    """The rows as JSON records, as CSV or as a table."""
    if json_:
        print_json([dict(zip(headers, row, strict=True)) for row in rows])
    elif csv:
        print_csv(headers, rows)
    else:
        print_table(headers, rows)


def _one_line(text: str) -> str:
    return terminal_text(text).replace("\n", " ")


def _is_number(text: str) -> bool:
    try:
        float(text.rstrip("%"))
    except ValueError:
        return False
    return True


_SCORE_FIELDS = (
    *("score", "score_name", "accuracy", "precision", "recall"),
    *("f1_conll", "f1_strict", "seqeval_f1", "spearman"),
)
_RUN_FIELDS = (*("note", "archived", "attempt", "step", "total_steps", "epoch", "best_epoch", "seconds"),)


def run_document(run: Run, scores: Iterable[StoredScore]) -> dict[str, Any]:
    """A run for `--json`: its description, its state, its scores per split and task, in [0, 1]."""
    by_split: dict[str, dict[str, Any]] = {"dev": {}, "test": {}}
    for score in scores:
        by_task = by_split.setdefault(score.split, {})
        values = {name: getattr(score, name) for name in _SCORE_FIELDS}
        by_task[score.task] = values | {"macro_f1": averages(score).get("macro", {}).get("f1")}
    return {
        "id": run.id,
        "state": run.state.value,
        "paradigm": run.config.paradigm,
        "tasks": list(run.config.tasks),
        "seed": run.config.seed,
        "configuration_id": run.configuration_id,
        "sweep": run.sweep,
        "tags": run.keywords,  # the name that readers of `--json` know
        **{name: getattr(run, name) for name in _RUN_FIELDS},
        "alignment": run.facts.get("alignment"),
        **by_split,
        "error": None if run.error is None else run.error.message,
        "checkpoint": run.checkpoint,
    }
