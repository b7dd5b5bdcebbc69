"""Processes that use one store at the same time."""

from __future__ import annotations

import contextlib
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S

# The server imports the library once; its children are then there at once.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["core.store", "tests.making", "sqlalchemy.dialects.postgresql.psycopg"])


def together(target: Callable[..., None], calls: Sequence[tuple[Any, ...]]) -> None:
    """Runs that function in a process per call, until all have ended well."""
    with started(target, calls):
        pass


@contextlib.contextmanager
def started(
    target: Callable[..., None], calls: Sequence[tuple[Any, ...]], stop: Callable[[], None] = lambda: None
) -> Iterator[Callable[[Callable[[], bool]], None]]:
    """The same beside the block, told to `stop` at its end. Gives what waits for a condition meanwhile."""
    processes = [PROCESSES.Process(target=target, args=call) for call in calls]

    def wait(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            failed = [process.exitcode for process in processes if process.exitcode]
            assert not failed, "a process failed; its error stands above"
            time.sleep(0.01)

    for process in processes:
        process.start()
    try:
        yield wait
    finally:
        stop()
        for process in processes:
            process.join(timeout=PATIENCE_S)
            if process.exitcode is None:
                process.kill()
    assert [process.exitcode for process in processes] == [0] * len(processes)


HOLD = (
    "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
    "c.execute('BEGIN EXCLUSIVE'); print('held', flush=True); sys.stdin.read()"
)


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Another program holds the store's file, so that it can neither be read nor written."""
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        yield
        other.stdin.close()
