"""mrnlab report and verify: a result as one file that anyone opens, and whether its figures hold."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from core.config.fields import comma_list
from core.corpora.readers.lines import read_bytes
from core.errors import MRNLabError
from core.paths import given_path
from core.report import PARTS, ReportAsked, make_report
from core.store import Store
from core.wording import plural
from jobs.cli.app import app, named_runs, opened_store
from jobs.cli.options import JSON_OPTION, RUNS_ARGUMENT, SPLIT_OPTION
from jobs.cli.output import log, print_json, print_text

_MOST_BYTES = 64_000_000
"""The largest file that is read as a report."""


@app.command("report")
def report_verb(
    ctx: typer.Context,
    run: Annotated[list[int], RUNS_ARGUMENT],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")] = Path(
        "report.html"
    ),
    title: Annotated[str, typer.Option(help="The title (default: methods and data).")] = "",
    text: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Your text in Markdown; after a line '@relations' it stands before that part.",
        ),
    ] = None,
    parts: Annotated[
        str, typer.Option(metavar="NAME,...", help=f"Only these parts: {', '.join(PARTS)}.")
    ] = "",
    split: Annotated[str, SPLIT_OPTION] = "test",
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Write a report on finished runs: one HTML file that opens anywhere, without network or server.

    Question and answer, scores, differences, curves, relations over training, test sentences, errors, cost
    and commands. A part that these runs cannot have says why. `mrnlab verify` recomputes its tables.
    """
    words = "" if text is None else _read(given_path(text))
    with opened_store(ctx) as store:
        ids = tuple(each.id for each in named_runs(store, run))
        url = store.url
    asked = ReportAsked(url, ids, split, title, words, tuple(comma_list(parts)) if parts else tuple(PARTS))
    made = make_report(asked)
    path = given_path(out)
    path.write_text(made.html, encoding="utf-8")
    size = path.stat().st_size
    for name, why in made.missing.items():
        log(f"Without {name}: {why}")
    if json_:
        print_json({"file": str(path), "bytes": size, "missing": made.missing})
    else:
        print_text(f"{path} ({size / 1e6:.1f} MB): open it in a browser, or send it.")


@app.command("verify")
def verify_verb(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of `mrnlab report`.")],
    exports: Annotated[
        list[Path] | None,
        typer.Option(
            "--export", metavar="DIR", help="An exported run to recompute from instead of the store; repeat."
        ),
    ] = None,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Recompute a report's tables from the runs of the store, and print what differs.

    Ends with exit code 1 where anything does. Runs are found by hashes of description, text and scores.
    """
    from jobs.reports.verify import verify

    text = _read(given_path(file))
    with _of_exports(exports) if exports else opened_store(ctx) as store:
        verified = verify(store, text, "among these exports" if exports else "in this store")
    if json_:
        print_json(
            {
                "made": verified.made,
                "mrnlab": verified.version,
                "runs": verified.runs,
                "figures": verified.figures,
                "differences": list(verified.problems),
            }
        )
    else:
        for problem in verified.problems:
            print_text(problem)
        log(f"Made {verified.made} by mrnlab {verified.version} from {plural(verified.runs, 'run')}.")
        if not verified.problems:
            print_text(
                f"All {verified.figures} cells of its tables, and the answer, are as the runs give them."
            )
    if verified.problems:
        raise typer.Exit(1)


def _read(path: Path) -> str:
    """The text of a file in UTF-8. Raises MRNLabError."""
    try:
        return read_bytes(path, _MOST_BYTES).decode()
    except UnicodeDecodeError as error:
        raise MRNLabError(f"{path} is not text in UTF-8 (byte {error.start:,}).") from None


@contextlib.contextmanager
def _of_exports(folders: list[Path]) -> Iterator[Store]:
    """A store of the exported runs in these folders, for as long as the block runs. Raises MRNLabError."""
    from jobs.exchange.format import read_export

    with (
        tempfile.TemporaryDirectory() as aside,
        contextlib.closing(Store.open(f"sqlite:///{Path(aside) / 'runs.db'}")) as store,
    ):
        for folder in folders:
            try:
                store.import_record(read_export(given_path(folder))[1], "")
            except ValueError as error:
                raise MRNLabError(f"{folder} is not a folder that `mrnlab export` wrote: {error}.") from None
        yield store
