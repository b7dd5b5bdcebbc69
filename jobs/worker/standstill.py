"""Whether a worker moves, seen without the store: a file that it touches while its training moves.

A worker that hangs inside a transaction may keep the store from everybody, its supervisor included. So the
supervisor judges its own child by this file, ends it, and leaves there after how many seconds it did so: that
is the cause of the loss, whoever finds the process gone once the store answers again. The same holds for a
worker that has no run yet, of which the store says nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from core.paths import cache_dir
from core.recording.owner import boot_id, hostname
from core.store.records import Owner
from jobs.worker.process import kill

_TOUCH_EVERY_S = 0.5

START_S = 60.0
"""A worker takes its slot, and moves for the first time, within this time, even on a busy machine."""

LONGEST_GAP_S = 15.0
"""The most that one look adds to a silence or a standstill: an observer that slept with its machine has not
watched.
"""


def workers_folder(store_url: str) -> Path:
    """Where the workers of a store leave what others of this machine, or of this container, may know of them.

    Machines and containers may have a home in common; none takes a slot of another.
    """
    place = f"{store_url} {hostname()} {boot_id()}"
    folder = cache_dir("workers") / hashlib.sha256(place.encode()).hexdigest()[:12]
    folder.mkdir(exist_ok=True)
    return folder


class ProgressFile:
    """That of one worker."""

    def __init__(self, store_url: str, owner: Owner) -> None:
        name = hashlib.sha256(repr(owner).encode()).hexdigest()[:16]
        self.path = workers_folder(store_url) / f"progress-{name}"
        self._due_at = 0.0

    def touch(self) -> None:
        """For the worker: it moves. To be called at every step."""
        if (now := time.monotonic()) >= self._due_at:
            self._due_at = now + _TOUCH_EVERY_S
            self.path.touch()

    def touched_at(self) -> int | None:
        """A value that differs after the next touch; None where there is no file."""
        with contextlib.suppress(FileNotFoundError):
            return self.path.stat().st_mtime_ns
        return None

    def untouched_s(self) -> float:
        """For how many seconds it has not been touched, by the wall clock; 0 where there is no file."""
        touched_at = self.touched_at()
        return 0.0 if touched_at is None else max(0.0, time.time() - touched_at / 1e9)

    def give_up(self, after_s: float) -> None:
        """For whoever is about to end the worker, which has not moved for so long."""
        with contextlib.suppress(OSError):  # a full disk: the worker is ended all the same, its cause untold
            self.path.write_text(str(after_s))

    def given_up_after(self) -> float | None:
        """After how many seconds the worker was given up; None where it was not."""
        with contextlib.suppress(FileNotFoundError):
            return float(text) if (text := self.path.read_text()) else None
        return None

    def remove(self) -> None:
        """The worker has ended, and what became of its run is on record."""
        self.path.unlink(missing_ok=True)


def progress_files_left(store_url: str, workers: Iterable[Owner]) -> list[Path]:
    """The progress files of this machine that are none of these workers'."""
    known = {ProgressFile(store_url, worker).path for worker in workers}
    return [path for path in workers_folder(store_url).glob("progress-*") if path not in known]


class Standstill:
    """For how long one worker has not moved, by the clock of an observer that stays."""

    def __init__(self, progress: ProgressFile, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress, self._clock = progress, clock
        self._touched_at, self._looked_at, self._stuck_s = progress.touched_at(), clock(), 0.0

    def is_hung(self, hang_s: float) -> bool:
        """Whether it has not moved for `hang_s` seconds; before its first move, for `START_S` at least."""
        before, looked_before = self._touched_at, self._looked_at
        self._touched_at, self._looked_at = self._progress.touched_at(), self._clock()
        passed = min(self._looked_at - looked_before, LONGEST_GAP_S)
        self._stuck_s = self._stuck_s + passed if self._touched_at == before else 0.0
        return self._stuck_s > (max(hang_s, START_S) if self._touched_at is None else hang_s)


@contextlib.contextmanager
def ended_if_hung(worker: Owner, progress: ProgressFile, hang_s: float, look_s: float) -> Iterator[None]:
    """While the block runs, a thread ends the worker once it has not moved for `hang_s` seconds."""
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
    standstill = Standstill(progress)
    while not left.wait(look_s):
        if standstill.is_hung(hang_s):
            progress.give_up(hang_s)
            kill(worker)
            return
