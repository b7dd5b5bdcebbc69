"""The signals to end that a supervisor receives, for the worker that it supervises."""

from __future__ import annotations

import contextlib
import signal
from types import FrameType

import psutil


class Signals:
    """Counts signals to end. The first is passed on to the worker, the second kills it."""

    def __init__(self) -> None:
        self.count = 0
        self._worker: psutil.Process | None = None

    def pass_to(self, worker: psutil.Process) -> None:
        """Passes signals on to this worker from now on, also the signals received before."""
        self._worker = worker
        if self.count:
            self._pass_on()

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self._pass_on()

    def _pass_on(self) -> None:
        if self._worker is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended, as wanted
            self._worker.send_signal(signal.SIGTERM) if self.count == 1 else self._worker.kill()
