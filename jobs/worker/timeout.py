"""Detects a worker that hangs, without the store: by a file that it touches while its training moves.

A worker that hangs inside a transaction may lock the store for everybody, also for its supervisor. So the
supervisor watches its child by this file, kills it, and writes the seconds of the standstill into the file:
the cause of the loss, for the process that records it later. The same holds for a worker without a run, which
the store does not know.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from core.paths import cache_dir
from core.recording.owner import boot_id, hostname
from core.store.types import Owner
from jobs.worker.process import kill, processor_wait_s

_TOUCH_EVERY_S = 0.5

START_S = 60.0
"""Seconds within which a worker takes its slot and moves for the first time, even on a busy machine."""

LONGEST_GAP_S = 15.0
"""The most that one look adds to a silence or a standstill, since an observer may sleep with its machine."""


def workers_folder(store_url: str) -> Path:
    """The folder for the slots and progress files of a store's workers on this machine or container.

    Machines and containers may share a home; none takes a slot of another.
    """
    identity = f"{store_url} {hostname()} {boot_id()}"
    folder = cache_dir("workers") / hashlib.sha256(identity.encode()).hexdigest()[:12]
    folder.mkdir(exist_ok=True)
    return folder


class ProgressFile:
    """The progress file of one worker."""

    def __init__(self, store_url: str, owner: Owner) -> None:
        name = hashlib.sha256(repr(owner).encode()).hexdigest()[:16]
        self.path = workers_folder(store_url) / f"progress-{name}"
        self._due_at = 0.0

    def touch(self) -> None:
        """Records that the worker moves; it calls this at every step."""
        if (now := time.monotonic()) >= self._due_at:
            self._due_at = now + _TOUCH_EVERY_S
            self.path.touch()

    def touched_at(self) -> int | None:
        """A value that changes with the next touch; None where there is no file."""
        with contextlib.suppress(FileNotFoundError):
            return self.path.stat().st_mtime_ns
        return None

    def untouched_s(self) -> float:
        """The seconds since the last touch, by the wall clock; 0 where there is no file."""
        touched_at = self.touched_at()
        return 0.0 if touched_at is None else max(0.0, time.time() - touched_at / 1e9)

    def give_up(self, after_s: float) -> None:
        """Records, before the worker is killed, that it has not moved for `after_s` seconds."""
        with contextlib.suppress(OSError):  # a full disk: the worker is killed without a recorded cause
            self.path.write_text(str(after_s))

    def given_up_after(self) -> float | None:
        """The seconds after which the worker was given up; None where it was not."""
        with contextlib.suppress(FileNotFoundError):
            return float(text) if (text := self.path.read_text()) else None
        return None

    def remove(self) -> None:
        """Removes the file once the end of the worker is recorded."""
        self.path.unlink(missing_ok=True)


def progress_files_left(store_url: str, workers: Iterable[Owner]) -> list[Path]:
    """The progress files of this machine that belong to none of these workers."""
    paths = {ProgressFile(store_url, worker).path for worker in workers}
    return [path for path in workers_folder(store_url).glob("progress-*") if path not in paths]


class Looks:
    """The seconds between the looks of a long-lived observer, at most LONGEST_GAP_S each."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last: float | None = None

    def passed(self) -> float:
        """The seconds since the last look; 0 at the first."""
        last, self._last = self._last, self._clock()
        return 0.0 if last is None else min(self._last - last, LONGEST_GAP_S)


def without_progress(passed_s: float, waited_s: float, waited_before_s: float) -> float:
    """The seconds between two looks, without those in which the worker waited for a processor.

    `waited_s` is all that it has waited, `waited_before_s` the same at the look before.
    """
    return max(0.0, passed_s - (waited_s - waited_before_s))


class ProgressTimeout:
    """Counts how long one worker has not moved, by the clock of a long-lived observer.

    The time for which it waited for a processor (`waited`) does not count.
    """

    def __init__(
        self,
        progress: ProgressFile,
        clock: Callable[[], float] = time.monotonic,
        waited: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._progress, self._looks, self._waited = progress, Looks(clock), waited
        self._looks.passed()
        self._touched_at, self._waited_s, self._stuck_s = progress.touched_at(), waited(), 0.0

    def is_hung(self, hang_s: float) -> bool:
        """Whether it has not moved for `hang_s` seconds; before its first move, for `START_S` at least."""
        touched_before, waited_before = self._touched_at, self._waited_s
        self._touched_at, self._waited_s = self._progress.touched_at(), self._waited()
        passed = without_progress(self._looks.passed(), self._waited_s, waited_before)
        self._stuck_s = self._stuck_s + passed if self._touched_at == touched_before else 0.0
        return self._stuck_s > (max(hang_s, START_S) if self._touched_at is None else hang_s)


@contextlib.contextmanager
def ended_if_hung(worker: Owner, progress: ProgressFile, hang_s: float, look_s: float) -> Iterator[None]:
    """Kills the worker from a thread, while the block runs, once it has not moved for `hang_s` seconds."""
    left = threading.Event()
    thread = threading.Thread(target=_watch, args=(worker, progress, hang_s, look_s, left), daemon=True)
    thread.start()
    try:
        yield
    finally:
        left.set()
        thread.join()


def _watch(
    worker: Owner, progress: ProgressFile, hang_s: float, look_s: float, left: threading.Event
) -> None:
    timeout = ProgressTimeout(progress, waited=partial(processor_wait_s, worker))
    while not left.wait(look_s):
        if timeout.is_hung(hang_s):
            progress.give_up(hang_s)
            kill(worker)
            return
