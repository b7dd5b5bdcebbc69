"""The `mrnlab` program: its global options, and how errors end it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from core.errors import MRNLabError
from core.store import Store
from jobs.cli.output import tell
from jobs.engines import ENGINES

__all__ = ["JSON_OPTION", "RUNS_ARGUMENT", "RUN_ARGUMENT", "Chosen", "app", "opened_store"]


# In the order of a run's life, which is also the order of the help.
_READING = ["runs", "show", "metrics", "results", "relations", "tag"]
_CHANGING = ["stop", "priority", "resume", "retry", "archive", "restore", "label", "note", "delete"]
_VERBS = ["launch", "study", *_READING, *_CHANGING, "export", "import", "backup", "queue", "worker", "doctor"]


class _Verbs(TyperGroup):
    """Tells a researcher's error in one sentence on standard error and ends with exit code 2."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=_VERBS.index)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except MRNLabError as error:
            tell(str(error), err=True)
            raise typer.Exit(2) from None


app = typer.Typer(
    name="mrnlab",
    cls=_Verbs,
    help="A laboratory for multi-task sequence labelling with Multilinear Relationship Networks.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

JSON_OPTION = typer.Option("--json", help="Print one JSON document on standard output.")
RUN_ARGUMENT = typer.Argument(metavar="RUN", help="The number of a run.")
RUNS_ARGUMENT = typer.Argument(metavar="RUN...", help="The numbers of runs.")


@dataclass(frozen=True)
class Chosen:
    """What the global options say."""

    url: str | None


@app.callback()
def _choose(
    ctx: typer.Context,
    db: Annotated[
        str | None,
        typer.Option(
            help="The store, as an SQLAlchemy URL (default: MRNLAB_DB, else runs.db in MRNLAB_HOME).",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help=f"Where runs are trained: {', '.join(ENGINES)} (default: MRNLAB_ENGINE, else local)."
        ),
    ] = None,
) -> None:
    """Keeps the global options for the verb."""
    if engine is not None:
        if engine not in ENGINES:
            raise MRNLabError(f"--engine: '{engine}' is not one of {', '.join(ENGINES)}.")
        os.environ["MRNLAB_ENGINE"] = engine  # what this command starts uses it too
    ctx.obj = Chosen(db)


@contextlib.contextmanager
def opened_store(ctx: typer.Context) -> Iterator[Store]:
    """The chosen store, closed at the end of the block."""
    chosen: Chosen = ctx.obj
    with contextlib.closing(Store.open(chosen.url)) as store:
        yield store
