"""mrnlab export, import: a run leaves the laboratory as a folder, and comes into one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.app import JSON_OPTION, RUN_ARGUMENT, app, opened_store
from jobs.cli.output import print_json, say, tell

__all__ = ["export", "import_"]


@app.command()
def export(
    ctx: typer.Context,
    run: Annotated[int, RUN_ARGUMENT],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
    tasks: Annotated[
        str, typer.Option(help="Only these tasks as Transformers folders, with commas (default: all).")
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace an export that is there.")] = False,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Write a finished run as a folder that stands alone: weights for Transformers, tables, a model card."""
    from jobs.transfer import export_run

    chosen = [task.strip() for task in tasks.split(",") if task.strip()]
    with opened_store(ctx) as store:
        made = export_run(store, run, folder, chosen or None, force=force)
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
        say(made.no_folders_because)
    tell(f"Run {run} is exported to {made.folder} ({made.size / 1e6:,.1f} MB); README.md says how to use it.")


@app.command("import")
def import_(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `mrnlab export` wrote.")],
    again: Annotated[bool, typer.Option("--again", help="Also where the run is here already.")] = False,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Take an exported run into this laboratory, with all that it recorded and its model."""
    from jobs.transfer import import_run

    with opened_store(ctx) as store:
        made = import_run(store, folder, again=again)
    if json_:
        print_json({"run": made.run_id, "was_there": made.was_there})
    elif made.was_there:
        tell(f"That run is here already: it is run {made.run_id}. --again makes another of it.")
    else:
        tell(f"Imported as run {made.run_id}.")
