"""Workers that really train and are really killed. `python -m tests.cut_off` forks a worker for each line.

A line is `SIGNAL N [TEXT]`: the worker sends itself that signal (SIGKILL, or SIGSTOP to fall asleep) before
its Nth write to the disk; 0 for never. Writes are folders made, renamed and forced to the disk, which is what
sealing a folder consists of; with TEXT only those whose path holds it. Answers: the worker's process id at
once, and its exit status once it has ended.
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

from tests.patience import PATIENCE_S


class Workers:
    """Starts a worker at a time, and waits for its end."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.cut_off"]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self, write: int = 0, at: str = "", how: signal.Signals = signal.SIGKILL) -> int:
        """The process id of a worker that sends itself that signal at that write."""
        assert self._server.stdin is not None
        print(int(how), write, at, file=self._server.stdin, flush=True)
        return self.answer()

    def ended(self) -> int:
        """Waits for the worker; its exit code, or minus the signal that ended it."""
        return self.answer()

    def answer(self) -> int:
        """The next line of the server; its first one says that all imports are done."""
        assert self._server.stdout is not None
        return int(self._server.stdout.readline())

    def close(self) -> None:
        """Ends the server."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(timeout=PATIENCE_S)
        self._server.stdout.close()


@contextmanager
def workers(hosts: int = 1) -> Iterator[list[Workers]]:
    """So many servers, for the store and the laboratory of this process's environment."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(contextlib.closing(Workers())) for _ in range(hosts)]
        for server in servers:
            server.answer()
        yield servers


def _interrupted(call: Callable[..., Any], left: list[int], at: str, how: int) -> Callable[..., Any]:
    def counted(*args: Any, **options: Any) -> Any:
        left[0] -= at in str(args[0])
        if left[0] == 0:
            left[0] = -1
            os.kill(os.getpid(), how)
        return call(*args, **options)

    return counted


def _work(how: int, write: int, at: str) -> None:
    """A worker's life, in a process of its own."""
    from core.recording.owner import this_process
    from core.store import Store
    from jobs.worker.loop import Worker

    left = [write or -1]
    for name in ("mkdir", "rename", "fsync"):
        setattr(os, name, _interrupted(getattr(os, name), left, at, how))
    with contextlib.closing(Store.open()) as store:
        Worker(store, this_process(), beat_s=0.5).train_next()


def main() -> None:
    """Forks a worker for each line. What a first training imports and makes ready serves all of them."""
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
        child = os.fork()
        if child == 0:
            try:
                how, write, *at = line.split()
                _work(int(how), int(write), "".join(at))
                code = 0
            except Exception:  # noqa: BLE001 - printed; the next line is for the parent to read
                traceback.print_exc()
                code = 1
            os._exit(code)
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
