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
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from filelock import FileLock, Timeout

from core.errors import MRNLabError
from core.paths import cache_dir
from core.store import Owner
from jobs.processes import Fate, fate_of, is_alive, this_process

__all__ = [
    "Slot",
    "clear_slots",
    "free_slot",
    "gpu_count",
    "lacks",
    "slot_count",
    "stale_slots",
    "taken_slots",
]

_NVIDIA_SMI_TIMEOUT_S = 10
# How long a new worker tries: longer than another needs to let go of a slot.
_PATIENCE_S = 1.0
# What NVIDIA's driver, WSL and AMD's driver put there for GPUs.
_GPU_PLACES = (Path("/dev/nvidiactl"), Path("/dev/dxg"), Path("/dev/kfd"))


@cache
def gpu_count() -> int:
    """How many CUDA devices a process started here would see, found without importing torch."""
    visible, known = os.environ.get("CUDA_VISIBLE_DEVICES"), _devices()
    if visible is None:
        return sum(map(_is_whole, known or ()))
    named: list[str] = []
    for device in (name.strip() for name in visible.split(",")):
        # CUDA reads the list up to the first name of no device, and sees one part of a divided GPU alone.
        if device in ("", "-1", *named) or not (known is None or _is_one_of(device, known)):
            break
        named.append(device)
        if device.startswith("MIG-"):
            break
    return len(named)


def lacks(device: str) -> bool:
    """Whether no process started here could train on that device. False where it cannot be told."""
    kind, _, number = device.partition(":")
    if kind != "cuda":
        return False
    if _devices() is None and any(place.exists() for place in _GPU_PLACES):
        return False  # a GPU without nvidia-smi: in a container, of another maker
    return int(number or 0) >= gpu_count()


def _devices() -> list[str] | None:
    """What nvidia-smi tells of GPUs and their parts, a line each; None where there is no nvidia-smi."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        told = subprocess.run(
            [program, "-L"], capture_output=True, text=True, timeout=_NVIDIA_SMI_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []  # a driver that does not answer trains nothing
    return [line for line in told.stdout.splitlines() if "UUID: " in line] if told.returncode == 0 else []


def _is_whole(line: str) -> bool:
    return line.startswith("GPU ")


def _is_one_of(device: str, known: list[str]) -> bool:
    """Whether a name of CUDA_VISIBLE_DEVICES (a number, or a UUID or its beginning) is one of these."""
    if device.isdigit():
        return int(device) < sum(map(_is_whole, known))
    return any(line.partition("UUID: ")[2].startswith(device) for line in known)


def slot_count() -> int:
    """`MRNLAB_SLOTS`, else `MRNLAB_RUNS_PER_GPU` (1) for each GPU, else one.

    Raises MRNLabError where a setting is no such number.
    """
    told = _setting("MRNLAB_SLOTS", "how many runs may train at once")
    return told or max(1, gpu_count() * _runs_per_gpu())


def _runs_per_gpu() -> int:
    return _setting("MRNLAB_RUNS_PER_GPU", "how many runs may share a GPU") or 1


def _setting(name: str, meaning: str) -> int | None:
    """A whole number of 1 or more from the environment, None where it is not set."""
    chosen = os.environ.get(name)
    if not chosen:
        return None
    try:
        count = int(chosen)
    except ValueError:
        count = 0
    if count < 1:
        raise MRNLabError(f"{name} is '{chosen}'; set it to {meaning} (1 or more).")
    return count


@dataclasses.dataclass(frozen=True)
class Slot:
    """A place for one worker. `device` is what a run with device `auto` gets there, always the same."""

    number: int

    @property
    def device(self) -> str:
        gpus = gpu_count()
        return f"cuda:{self.number // _runs_per_gpu() % gpus}" if gpus > 1 else "auto"


def _folder(store_url: str) -> Path:
    folder = cache_dir("workers") / hashlib.sha256(store_url.encode()).hexdigest()[:12]
    folder.mkdir(exist_ok=True)
    return folder


def taken_slots(store_url: str) -> dict[int, Owner]:
    """The slots of this store's workers on this machine, each with the living process that holds it."""
    return {number: owner for number, owner in _cards(store_url).items() if is_alive(owner)}


def stale_slots(store_url: str) -> list[int]:
    """The slots whose worker died without taking its name away. They are free all the same."""
    gone = (Fate.GONE, Fate.REBOOTED)
    return [number for number, owner in _cards(store_url).items() if fate_of(owner) in gone]


def clear_slots(store_url: str, numbers: Iterable[int]) -> int:
    """Takes the names of dead workers from these slots; how many. One that was taken meanwhile stays."""
    cleared = 0
    for number in numbers:
        card = _folder(store_url) / f"slot-{number}.json"
        with contextlib.suppress(Timeout), FileLock(card.with_suffix(".lock"), blocking=False):
            card.unlink(missing_ok=True)
            cleared += 1
    return cleared


def _cards(store_url: str) -> dict[int, Owner]:
    """Who has written itself beside each slot."""
    found = {}
    for path in sorted(_folder(store_url).glob("slot-*.json")):
        try:
            owner = Owner(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            continue  # just being written, or just removed
        found[int(path.stem.removeprefix("slot-"))] = owner
    return found


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
