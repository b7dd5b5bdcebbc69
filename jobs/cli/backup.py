"""mrnlab backup: a copy of the live store."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli.app import JSON_OPTION, app, opened_store
from jobs.cli.output import print_json, say

__all__ = ["backup"]


@app.command()
def backup(
    ctx: typer.Context,
    target: Annotated[str, typer.Argument(metavar="FILE", help="A file, or the URL of an empty database.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Copy the store as it is at this moment, while runs go on writing to it."""
    with opened_store(ctx) as store:
        made = store.backup(target, replace=force)
    if json_:
        print_json({"place": made.place, "runs": made.runs, "rows": made.rows, "bytes": made.size})
    else:
        say(f"{made.runs:,} runs, {made.rows:,} rows, {made.size / 1e6:,.1f} MB: {made.place}")
