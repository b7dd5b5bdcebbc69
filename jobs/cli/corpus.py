"""mrnlab corpus: reports how the columns of a corpus are read, without training."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from core.config import FIELD_HELP, RunConfig
from core.config.fields import comma_list
from core.corpora import CATALOGUE, Reading, summarise
from core.corpora.loading import bases_of, read
from core.corpora.reading import reading_rows
from core.tasks import KINDS
from core.wording import all_of
from jobs.cli.app import app
from jobs.cli.options import JSON_OPTION
from jobs.cli.output import print_json, print_text
from jobs.reports.render import aligned


@app.command()
def corpus(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder, or any name of --corpus.")],
    columns: Annotated[str | None, typer.Option(metavar="VALUE", help=FIELD_HELP["columns"].sentence)] = None,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Read a corpus and report how it was understood. Nothing is trained or stored.

    Each column has a row: how it was read, how many labels it has, three examples. Notes report conversions,
    counts, omissions and likely mistakes.
    """
    summary = summarise(folder, comma_list(columns) or None if columns is not None else None)
    if json_:
        print_json(
            {
                "splits": {name: dataclasses.asdict(size) for name, size in summary.splits.items()},
                "tasks": [
                    {"name": task.name, "scheme": task.scheme, "labels": task.labels}
                    for task in summary.tasks
                ],
                "readings": [dataclasses.asdict(reading) for reading in summary.readings],
                "notes": summary.notes,
            }
        )
        return
    examples = all_of(list(dict.fromkeys(KINDS[task.scheme].examples for task in summary.tasks)))
    sizes = [f"{size.sentences:,} {split}" for split, size in summary.splits.items()]
    print_text(f"{all_of(sizes)} {examples}, {sum(size.tokens for size in summary.splits.values()):,} words.")
    printed = print_readings(summary.readings)
    for note in summary.notes:
        if note not in printed:
            print_text(note)


def print_readings(readings: Iterable[Reading], *, err: bool = False) -> set[str]:
    """Prints how each column of these files was read, and returns the notes that it printed."""
    printed: set[str] = set()
    for reading in readings:
        print_text(reading.title, err=err)
        rows = [(row["Name"], row["Read as"], row["Examples"]) for row in reading_rows(reading)]
        print_text(aligned(("name", "read as", "examples"), rows), err=err)
        for note in reading.all_notes:
            print_text(note, err=err)
        printed |= set(reading.all_notes)
    return printed


def log_readings(configs: Sequence[RunConfig]) -> set[str]:
    """Prints on standard error how corpora outside the catalogue were read, and returns the notes printed.

    Raises CorpusError where a corpus cannot be read.
    """
    readings: list[Reading] = []
    for name, columns in dict.fromkeys((config.corpus, config.columns) for config in configs):
        if not set(bases_of(name)) <= CATALOGUE.keys():
            readings += [reading for reading in read(name, columns).readings if reading not in readings]
    return print_readings(readings, err=True)
