"""The `mrnlab` program: its global options, and how errors end it."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import sys
import traceback
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from core import __version__
from core.errors import MRNLabError, RunNotFound
from core.paths import home
from core.plain_text import message_text, without_passwords
from core.store import Run, Store
from jobs.cli.options import one_of
from jobs.cli.output import log, print_text
from jobs.engines import ENGINES

# In the order of a run's life, which is also the order of the help.
_READING = ["runs", "show", "metrics", "results", "compare", "decide", "suspects", "appendix"]
_READING += ["report", "verify", "relations", "tag"]
_CHANGING = ["stop", "priority", "resume", "retry", "archive", "restore", "keyword", "delete"]
_ASKING = ["corpus", "launch", "study", "transfer"]
_KEEPING = ["export", "import", "import-predictions", "backup", "queue", "worker", "dashboard", "doctor"]
_VERBS = [*_ASKING, *_READING, *_CHANGING, *_KEEPING]


class _Verbs(TyperGroup):
    """The verbs in order; an MRNLabError is printed on standard error and ends with exit code 2."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=_VERBS.index)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with _reported_errors():
            _check_encoding(args)
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        with _reported_errors():
            return super().invoke(ctx)


@contextlib.contextmanager
def _reported_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        path = "" if error.filename is None else str(error.filename)
        # A folder of the laboratory that cannot be made (below /proc, for instance) is missing.
        is_missing = error.errno == errno.ENOENT and Path(path).is_relative_to(home())
        if error.errno not in _REFUSALS and not is_missing:
            raise
        refused = f"'{path}' cannot be read or written: " if path else ""
        print_text(message_text(f"{refused}{error.strerror}."), err=True)
        raise typer.Exit(2) from None
    except MRNLabError as error:
        print_text(str(error), err=True)
        raise typer.Exit(2) from None
    except _UsageError as error:
        error.message = message_text(error.message)
        raise


_REFUSALS = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOTDIR),
        *(errno.EISDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG, errno.EMFILE, errno.ENFILE),
    }
)
"""The error numbers of a user's path that cannot be used; any other is a fault of the program."""

# The base class of all usage errors, which typer does not export.
_UsageError: Any = typer.BadParameter.__base__


def _check_encoding(arguments: Sequence[str]) -> None:
    """Raises MRNLabError where an argument is not UTF-8: no database, JSON or report could hold it."""
    for argument in arguments:
        shown = argument.encode(errors="backslashreplace").decode()
        if shown != argument:
            raise MRNLabError(
                f"The argument '{shown}' is not UTF-8; write it in UTF-8, and give a file "
                "with such a name another one."
            )


app = typer.Typer(
    name="mrnlab",
    cls=_Verbs,
    help="A laboratory for multi-task learning in language, with Multilinear Relationship Networks.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


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
        # What this command starts uses it too.
        os.environ["MRNLAB_ENGINE"] = one_of("--engine", ENGINES)(engine)
    ctx.obj = db


@contextlib.contextmanager
def opened_store(ctx: typer.Context) -> Iterator[Store]:
    """The chosen store, closed at the end of the block."""
    with contextlib.closing(Store.open(ctx.obj, shared=True)) as store:
        yield store


def check_numbers(store: Store, run_ids: Collection[int]) -> None:
    """Raises RunNotFound where there is no run with one of these numbers."""
    present = {run.id for run in store.runs(run_ids)}
    if missing := [run_id for run_id in run_ids if run_id not in present]:
        raise RunNotFound(missing[0])


def named_runs(store: Store, run_ids: Iterable[int]) -> list[Run]:
    """The runs with these numbers, each once. Raises RunNotFound where there is no such run."""
    wanted = list(dict.fromkeys(run_ids))
    check_numbers(store, wanted)
    runs = {run.id: run for run in store.runs(wanted)}
    return [runs[run_id] for run_id in wanted]


UNFORESEEN = 70
"""The exit code: EX_SOFTWARE of sysexits.h, an internal error."""


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Ends the program with UNFORESEEN where the block raises an error that nothing else has handled.

    Versions, the call and the traceback go to standard error, without passwords. Ctrl-C, a closed pipe and
    exit codes pass.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 (any unexpected error; it is shown)
        lines = [
            *traceback.format_exception(error),
            f"mrnlab {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"Call: {sys.argv!r}",
        ]
        settings = [value for name, value in os.environ.items() if name.startswith("MRNLAB_")]
        details = without_passwords("\n".join(lines), *sys.argv, *settings)
        log(f"mrnlab met an unknown error ({type(error).__name__}); please report this:\n\n{details}")
        raise SystemExit(UNFORESEEN) from None
