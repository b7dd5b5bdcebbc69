"""mrnlab doctor, backup, worker, dashboard, export, import, import-predictions: a laboratory as a whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from core.config import FIELD_HELP
from core.config.fields import comma_list
from core.corpora.readers.lines import GivenFile, read_bytes
from core.corpora.types import Split
from core.errors import MRNLabError
from core.paths import database_url, given_path
from core.plain_text import without_passwords
from core.settings import seconds
from core.store import back_up
from core.store.engine import check_shared, parse_url
from core.tasks.scores import score_text
from jobs.cli.app import app, opened_store
from jobs.cli.options import JSON_OPTION, RUN_ARGUMENT, grouped, one_of
from jobs.cli.output import log, print_json, print_table, print_text
from jobs.queue.doctor import Examination, Finding, Fix, Severity, examine


@app.command()
def doctor(
    ctx: typer.Context,
    fix: Annotated[bool, typer.Option("--fix", help="Apply every safe fix without asking.")] = False,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Check the installation, the store, the disk and the workers. Exit code 1 where something is wrong."""
    done: dict[Finding, tuple[str, bool]] = {}
    with examine(ctx.obj) as examination:
        for finding in examination.findings if fix else ():
            if finding.fix is not None:
                done[finding] = _applied(finding.fix)
    if json_:
        print_json(_document(examination, done))
    else:
        _print_facts(examination.facts)
        for finding in examination.findings:
            print_text(f"\n{finding.severity.value:>14}  {finding.message}")
            if finding.fix is not None:
                outcome = done[finding][0] if finding in done else "(mrnlab doctor --fix)"
                print_text(f"{'fix':>14}  {finding.fix.description} {outcome}")
        if not examination.findings:
            print_text("All is well.")
    problems = [finding for finding in examination.findings if finding.severity is Severity.PROBLEM]
    if not all(done.get(finding, ("", False))[1] for finding in problems):
        raise typer.Exit(1)


def _applied(fix: Fix) -> tuple[str, bool]:
    try:
        return fix.apply(), True
    except (MRNLabError, OSError) as error:
        return f"The fix failed: {error}", False


def _document(examination: Examination, done: Mapping[Finding, tuple[str, bool]]) -> dict[str, Any]:
    findings = [
        {
            "about": finding.about,
            "severity": finding.severity.value,
            "message": finding.message,
            "fix": finding.fix and finding.fix.description,
            "done": done[finding][0] if finding in done else None,
        }
        for finding in examination.findings
    ]
    problems = [finding.message for finding in examination.findings if finding.severity is Severity.PROBLEM]
    return {**examination.facts, "problems": problems, "findings": findings}


def _print_facts(facts: Mapping[str, Any]) -> None:
    for name, value in facts.items():
        text = value
        if isinstance(value, dict):
            text = ", ".join(f"{key} {item}" for key, item in value.items()) or "none"
        elif isinstance(value, list):
            text = "; ".join(map(str, value)) or "none"
        print_text(f"{name.replace('_', ' '):>14}  {text}")


@app.command()
def backup(
    ctx: typer.Context,
    target: Annotated[str, typer.Argument(metavar="FILE", help="The file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Copy the store as it is at this moment, while runs go on writing to it."""
    with opened_store(ctx) as store:
        made = back_up(store, target, replace=force)
    if json_:
        print_json({"place": str(made.file), "runs": made.runs, "rows": made.rows, "bytes": made.size})
    else:
        log(f"{made.runs:,} runs, {made.rows:,} rows, {made.size / 1e6:,.1f} MB: {made.file}")


@app.command()
def worker(ctx: typer.Context) -> None:
    """Train queued runs in this terminal until none is left.

    Ctrl-C saves the current run and stops it at its next step; a second Ctrl-C ends it at once.
    """
    from jobs.worker.supervisor import main as work

    check_shared(parse_url(ctx.obj or database_url()))
    seconds("MRNLAB_HANG_S")  # the supervisor would end at once where it is wrong
    os.environ.setdefault("MRNLAB_LINGER_S", "2")  # so that the command ends soon
    raise typer.Exit(work([], ctx.obj))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def dashboard(ctx: typer.Context) -> None:
    """Start the dashboard in this terminal. Options of Streamlit pass through, as --server.port 8600."""
    if ctx.obj is not None:
        os.environ["MRNLAB_DB"] = ctx.obj
    check_shared(parse_url(database_url()))
    log(f"Store: {without_passwords(database_url())}")  # Streamlit prints the address
    script = Path(__file__).parents[2] / "dashboard" / "app.py"
    os.execv(sys.executable, [sys.executable, "-m", "streamlit", "run", str(script), *ctx.args])


@app.command()
def export(
    ctx: typer.Context,
    run: Annotated[int, RUN_ARGUMENT],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
    tasks: Annotated[
        str,
        typer.Option(help="Write Transformers folders for these tasks, separated by commas (default: all)."),
    ] = "",
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Write a finished run as a self-contained folder: weights for Transformers, tables, a model card."""
    from jobs.exchange import export_run

    chosen = comma_list(tasks)
    with opened_store(ctx) as store:
        made = export_run(store, run, folder, chosen or None)
    if json_:
        print_json(
            {
                "run": run,
                "folder": str(made.folder),
                "bytes": made.size,
                "tasks": made.folders,
                "no_folders_because": made.no_folders_because,
            }
        )
        return
    if made.no_folders_because:
        log(made.no_folders_because)
    print_text(
        f"Run {run} is exported to {made.folder} ({made.size / 1e6:,.1f} MB); README.md says how to use it."
    )


@app.command("import")
def import_(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `mrnlab export` wrote.")],
    again: Annotated[
        bool, typer.Option("--again", help="Import the run even if the store already has it.")
    ] = False,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Import an exported run, with its model and all that it recorded."""
    from jobs.exchange import import_run

    with opened_store(ctx) as store:
        made = import_run(store, folder, again=again)
    if json_:
        print_json({"run": made.run_id, "was_there": made.was_there})
    elif made.was_there:
        print_text(f"The store already has this run, as run {made.run_id}. --again imports it once more.")
    else:
        print_text(f"Imported as run {made.run_id}.")


@dataclass(frozen=True)
class PredictionOptions:
    """What `mrnlab import-predictions` says of its files: fields of `core.predictions.Predictions`."""

    corpus: Annotated[str, typer.Option(help="The corpus that was predicted.", metavar="NAME")]
    system: Annotated[str, typer.Option(help="The system, as tables name it: 'flair'.", metavar="NAME")]
    tasks: Annotated[
        str, typer.Option("--task", help="The tasks that the file has labels of.", metavar="TASKS")
    ]
    seed: Annotated[int, typer.Option(help="The seed of the system's training.")] = 1
    columns: Annotated[
        str, typer.Option(help="The columns of a CoNLL file, as tokens,_,ner.", metavar="NAMES")
    ] = ""
    corpus_columns: Annotated[
        str, typer.Option(help="The columns of the corpus, where it is a CoNLL folder.", metavar="NAMES")
    ] = ""
    fraction: Annotated[float, typer.Option(help="The share of the training sentences that it saw.")] = 1.0
    pos_score: Annotated[str, typer.Option(help=FIELD_HELP["pos_score"].description)] = "accuracy"
    partial: Annotated[
        bool, typer.Option("--partial", help="Sentences that the file lacks count as without labels.")
    ] = False


@app.command("import-predictions")
@grouped
def import_predictions(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Words and predicted labels, as corpora have.")
    ],
    options: PredictionOptions,
    split: Annotated[
        str,
        typer.Option(
            metavar="test|dev",
            help="The split that was predicted.",
            parser=one_of("--split", ("test", "dev")),
        ),
    ] = "test",
    dev: Annotated[Path | None, typer.Option(help="Predictions of dev too.", metavar="FILE")] = None,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Import the predictions of another system: they are scored here, and compared like a run."""
    from core.predictions import Predictions, add_predictions

    if dev is not None and split == "dev":
        raise MRNLabError("FILE is of dev already; --dev is for a second file beside one of test.")
    paths = {split: file} | ({"dev": dev} if dev is not None else {})
    files = {
        cast(Split, name): GivenFile(path.name, read_bytes(given_path(path))) for name, path in paths.items()
    }
    predictions = Predictions.of(files, **vars(options))
    with opened_store(ctx) as store:
        run_id = add_predictions(store, predictions)
        run, scores = store.run(run_id), store.scores([run_id])
    if json_:
        by_task = [
            {"split": score.split, "task": score.task, score.score_name: score.score} for score in scores
        ]
        print_json({"run": run_id, "scores": by_task})
        return
    for note in run.facts.notes if run.facts else ():
        log(note)
    rows = [[of.split, of.task, of.score_name, score_text(of.score, of.score_name)] for of in scores]
    print_table(["split", "task", "score", ""], rows)
    print_text(f"Stored as run {run_id}.")
