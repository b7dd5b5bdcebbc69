"""Slots: how many workers may train at once on this machine, and which of them are taken.

A worker holds the lock of its slot for as long as it lives; the operating system lets go of it however the
process ends. Beside the lock it writes who it is, so that others need not touch the lock to look.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from filelock import FileLock, Timeout

from core.errors import MRNLabError
from core.paths import cache_dir
from core.store import Owner
from jobs.processes import is_alive, is_here, this_process

__all__ = ["Slot", "free_slot", "gpu_count", "slot_count", "taken_slots"]

_NVIDIA_SMI_TIMEOUT_S = 10
# How long a new worker tries: longer than another needs to let go of a slot.
_PATIENCE_S = 1.0


@cache
def gpu_count() -> int:
    """How many CUDA devices this machine offers, found without importing torch."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([device for device in visible.split(",") if device.strip() not in ("", "-1")])
    program = shutil.which("nvidia-smi")
    if program is None:
        return 0
    try:
        told = subprocess.run(
            [program, "-L"], capture_output=True, text=True, timeout=_NVIDIA_SMI_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0  # a driver that does not answer trains nothing
    return sum(line.startswith("GPU ") for line in told.stdout.splitlines()) if told.returncode == 0 else 0


def slot_count() -> int:
    """`MRNLAB_SLOTS`, else one per GPU, else one. Raises MRNLabError where the setting is no such number."""
    chosen = os.environ.get("MRNLAB_SLOTS")
    if not chosen:
        return max(1, gpu_count())
    try:
        count = int(chosen)
    except ValueError:
        count = 0
    if count < 1:
        raise MRNLabError(
            f"MRNLAB_SLOTS is '{chosen}'; set it to how many runs may train at once (1 or more)."
        )
    return count


@dataclasses.dataclass(frozen=True)
class Slot:
    """A place for one worker. `device` is what a run with device `auto` gets there."""

    number: int

    @property
    def device(self) -> str:
        gpus = gpu_count()
        return f"cuda:{self.number % gpus}" if gpus > 1 else "auto"


def _folder(store_url: str) -> Path:
    folder = cache_dir("workers") / hashlib.sha256(store_url.encode()).hexdigest()[:12]
    folder.mkdir(exist_ok=True)
    return folder


def taken_slots(store_url: str) -> dict[int, Owner]:
    """The slots of this store's workers on this machine, each with the living process that holds it."""
    taken = {}
    for path in sorted(_folder(store_url).glob("slot-*.json")):
        try:
            owner = Owner(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            continue  # just being written, or just removed
        if is_here(owner) and is_alive(owner):
            taken[int(path.stem.removeprefix("slot-"))] = owner
    return taken


@contextlib.contextmanager
def free_slot(store_url: str, patience_s: float = _PATIENCE_S) -> Iterator[Slot | None]:
    """Holds a free slot while the block runs, or gives None where all are taken."""
    folder = _folder(store_url)
    deadline = time.monotonic() + patience_s
    while True:
        for number in range(slot_count()):
            lock = FileLock(folder / f"slot-{number}.lock")
            try:
                lock.acquire(blocking=False)
            except Timeout:
                continue
            card = folder / f"slot-{number}.json"
            try:
                partial = card.with_suffix(f".{os.getpid()}")
                partial.write_text(json.dumps(dataclasses.asdict(this_process())))
                partial.replace(card)
                yield Slot(number)
            finally:
                card.unlink(missing_ok=True)
                lock.release()
            return
        if time.monotonic() >= deadline:
            yield None
            return
        time.sleep(0.05)
