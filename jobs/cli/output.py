"""Prints JSON, CSV or plain tables on standard output, and progress on standard error."""

from __future__ import annotations

import codecs
import errno
import io
import json
import math
import os
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

from core.errors import MRNLabError
from core.plain_text import terminal_text
from core.store import Run, StoredScore
from core.tasks.scores import SECONDARY_SCORES, averages
from jobs.reports.parts import Heading, Items, Part, Sheet
from jobs.reports.render import aligned, csv_lines, latex, markdown, plain

WIDTH = 110


class OutputLost(MRNLabError):
    """Standard output cannot be written: it is closed or its disk is full (`reason`)."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"Standard output cannot be written ({reason}). The rest of the output is lost; all changes are "
            "kept."
        )
        self.reason = reason


class _StandardStream(io.FileIO):
    """Standard output or error: its first failed write raises OutputLost, or nothing for standard error.

    Later writes are dropped, so that none fails again while the program ends. A closed pipe raises
    BrokenPipeError.
    """

    def __init__(self, descriptor: int, *, is_error: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._is_error, self._is_lost = is_error, False

    def write(self, data: Any) -> int:
        if not self._is_lost:
            try:
                return super().write(data)
            except BrokenPipeError:
                raise
            except OSError as error:
                self._is_lost = True
                if not self._is_error:
                    reason = "it is closed" if error.errno == errno.EBADF else str(error.strerror)
                    raise OutputLost(reason) from error
        return memoryview(data).nbytes


def guard_standard_streams() -> None:
    """Makes this process write to standard output and error through `_StandardStream`.

    Characters that the encoding lacks are written as \\u03bb. A stream that a test has replaced stays.
    """
    # Where one of the three is closed, the next opened file would get its number, and the output.
    while (free := os.open(os.devnull, os.O_RDONLY)) <= 2:
        pass
    os.close(free)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not getattr(sys, f"__{name}__"):
            continue
        # A closed stream becomes a descriptor that cannot be written.
        descriptor = os.open(os.devnull, os.O_RDONLY) if stream is None else stream.fileno()
        raw = _StandardStream(descriptor, is_error=name == "stderr")
        guarded = io.TextIOWrapper(
            io.BufferedWriter(raw),
            encoding="utf-8" if stream is None else stream.encoding,
            errors="backslashreplace",
            line_buffering=raw.isatty() or name == "stderr",
        )
        setattr(sys, name, guarded)


def log(message: str) -> None:
    """Prints a message on standard error."""
    print_text(message, err=True)


def print_text(text: str = "", *, err: bool = False) -> None:
    """Prints text with control characters escaped, so that data cannot command the terminal."""
    typer.echo(terminal_text(text), err=err)


def write_document(text: str) -> None:
    """Writes a document unchanged into a file or a pipe, and escaped on a terminal."""
    typer.echo(terminal_text(text) if sys.stdout.isatty() else text, nl=False)


def print_json(document: Any) -> None:
    """Prints one JSON document; numbers that are not finite become null."""
    utf8 = codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"
    write_document(json.dumps(_plain(document), ensure_ascii=not utf8, indent=2, allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints columns aligned by spaces: numbers to the right, text to the left."""
    print_text(aligned(headers, rows))


_WRITERS = {"markdown": markdown, "latex": latex}


def print_report(parts: Iterable[Part], form: str = "") -> None:
    """Prints a report as `markdown` or `latex`, else for a terminal with captions on standard error."""
    if write := _WRITERS.get(form):
        write_document("\n\n".join(map(write, parts)) + "\n")
        return
    is_heading = True
    for part in parts:
        if not is_heading:
            print_text()
        is_heading = isinstance(part, Heading)
        if isinstance(part, Sheet):
            if part.caption:
                log(part.captioned("*"))
            print_text(plain(part))
        elif isinstance(part, Heading):
            print_text(" ".join(part.text.split()))
        elif isinstance(part, Items):
            for line in part.lines:
                print_text(textwrap.fill(line, WIDTH, initial_indent="- "))
        elif isinstance(part, str):
            print_text(textwrap.fill(part, WIDTH))
        else:
            print_text("\n".join(part.lines))


def print_rows(headers: Sequence[str], rows: Sequence[Sequence[object]], *, csv: bool, json_: bool) -> None:
    """Prints the rows as JSON records, as CSV or as a table."""
    if json_:
        print_json([dict(zip(headers, row, strict=True)) for row in rows])
    elif csv:
        write_document(csv_lines(headers, rows))
    else:
        print_table(headers, rows)


_RUN_FIELDS = ("note", "archived", "attempt", "step", "total_steps", "epoch", "best_epoch", "seconds")


def run_document(run: Run, scores: Iterable[StoredScore], alignment: str | None) -> dict[str, Any]:
    """A run for `--json`: description, state, and scores in [0, 1] by split and task."""
    by_split: dict[str, dict[str, Any]] = {"dev": {}, "test": {}}
    for score in scores:
        by_task = by_split.setdefault(score.split, {})
        values = {"score": score.score, "score_name": score.score_name}
        values |= dict.fromkeys(SECONDARY_SCORES) | dict(score.figures)
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
        "alignment": alignment,
        **by_split,
        "error": None if run.error is None else run.error.message,
        "checkpoint": run.checkpoint,
    }
