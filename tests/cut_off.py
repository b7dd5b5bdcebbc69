"""Workers that really train and are really killed. `python -m tests.cut_off` forks them.

A line `start HOME SIGNAL N [TEXT]` forks a worker of that laboratory and is answered with its process id: it
sends itself that signal (SIGKILL, or SIGSTOP to fall asleep) before its Nth write to the disk; 0 for never.
Writes are folders made, renamed and forced to the disk, which is what sealing a folder consists of; with TEXT
only those whose path holds it. A line `wait PID` is answered with the exit status of that worker, once it has
ended.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch


class Workers:
    """Starts workers, several at once too, and waits for their ends."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server
        self._answer()  # all imports are done

    def start(self, write: int = 0, at: str = "", how: signal.Signals = signal.SIGKILL) -> int:
        """The process id of a worker that sends itself that signal at that write."""
        return self._answer(f"start {os.environ['MRNLAB_HOME']} {int(how)} {write} {at}")

    def ended(self, pid: int) -> int:
        """Waits for that worker; its exit code, or minus the signal that ended it."""
        return self._answer(f"wait {pid}")

    def _answer(self, line: str = "") -> int:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        if line:
            print(line, file=self._server.stdin, flush=True)
        return int(self._server.stdout.readline())


@contextmanager
def workers() -> Iterator[Workers]:
    """A server with this process's environment."""
    command = [sys.executable, "-m", "tests.cut_off"]
    # Its `with` block closes the pipes, which ends the server, and waits for it.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        yield Workers(server)


def _interrupted(call: Callable[..., Any], left: list[int], at: str, how: int) -> Callable[..., Any]:
    def counted(*args: Any, **options: Any) -> Any:
        left[0] -= at in str(args[0])
        if left[0] == 0:
            left[0] = -1
            os.kill(os.getpid(), how)
        return call(*args, **options)

    return counted


def _work(home: str, how: int, write: int, at: str) -> None:
    """A worker's life, in a process of its own."""
    os.environ["MRNLAB_HOME"] = home
    from core.recording.owner import this_process
    from core.store import Store
    from jobs.worker.loop import Worker

    left = [write or -1]
    for name in ("mkdir", "rename", "fsync"):
        setattr(os, name, _interrupted(getattr(os, name), left, at, how))
    # It ends with its run, and so does its memory.
    with patch("jobs.worker.loop.release_memory"), contextlib.closing(Store.open()) as store:
        Worker(store, this_process(), beat_s=0.5).train_next()


def main() -> None:
    """Answers each line. What a first training imports and makes ready serves all of them."""
    from core.store import Store
    from tests.trained import toy_config, train_runs

    with (
        TemporaryDirectory() as home,
        patch.dict(os.environ, MRNLAB_HOME=home),
        contextlib.closing(Store.open()) as store,
    ):
        train_runs(store, [toy_config(Path(home), epochs=1)])
    gc.freeze()  # no child looks through it for garbage

    print(os.getpid(), flush=True)  # ready
    for line in sys.stdin:
        what, *words = line.split()
        if what == "wait":
            _, status = os.waitpid(int(words[0]), 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
        elif child := os.fork():
            print(child, flush=True)
        else:
            try:
                home, how, write, *at = words
                _work(home, int(how), int(write), "".join(at))
                code = 0
            except Exception:  # noqa: BLE001 - printed; the next line is for the parent to read
                traceback.print_exc()
                code = 1
            os._exit(code)


if __name__ == "__main__":
    main()
