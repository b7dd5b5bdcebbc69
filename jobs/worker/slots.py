"""The slots of this machine: each worker holds one while it lives."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import time
from collections.abc import Iterator

from filelock import FileLock, Timeout

from core.recording.owner import this_process
from core.settings import seconds
from core.store import Owner, Store
from jobs.worker.devices import core_count, fixed_slots, slot_device
from jobs.worker.process import is_alive, kill
from jobs.worker.reaper import trained_runs
from jobs.worker.timeout import ProgressFile, workers_folder

# A worker without a run moves several times a second, but not while it imports torch.
_STANDSTILL_S = 30.0
# How long a new worker tries: longer than another needs to release a slot, or to die.
_SLOT_PATIENCE_S = 1.0


@dataclasses.dataclass(frozen=True)
class Slot:
    """One of the slots for workers. `device` is the device of runs with device `auto`, always the same."""

    number: int

    @property
    def device(self) -> str:
        return slot_device(self.number)


def taken_slots(store_url: str) -> dict[int, Owner]:
    """The taken slots of this store on this machine, each with the living process that holds it."""
    taken = {}
    for path in sorted(workers_folder(store_url).glob("slot-*.json")):
        try:
            owner = Owner(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            continue  # just being written, or just removed
        if is_alive(owner):
            taken[int(path.stem.removeprefix("slot-"))] = owner
    return taken


@contextlib.contextmanager
def free_slot(
    store_url: str, slots: int | None = None, *, patience_s: float = _SLOT_PATIENCE_S
) -> Iterator[Slot | None]:
    """Holds a free one of `slots` (by default as many as there may be) while the block runs; None if taken.

    The system releases the lock of a slot however its process ends. The holder is written beside the lock,
    so that others need not touch the lock to look; from then on it counts as moving.
    """
    folder = workers_folder(store_url)
    slots = slots or fixed_slots() or core_count()
    progress = ProgressFile(store_url, this_process())
    deadline = time.monotonic() + patience_s
    while True:
        for number in range(slots):
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
                progress.touch()
                yield Slot(number)
            finally:
                progress.remove()
                card.unlink(missing_ok=True)
                lock.release()
            return
        if time.monotonic() >= deadline:
            yield None
            return
        time.sleep(0.05)


@dataclasses.dataclass(frozen=True)
class IdleHolder:
    """A worker that holds a slot, trains nothing, and has not moved for `still_s` seconds (wall clock)."""

    slot: int
    owner: Owner
    still_s: float

    def __str__(self) -> str:
        limit_s = seconds("MRNLAB_HANG_S")
        return (
            f"The worker in slot {self.slot} (process {self.owner.pid}) has no run and has not moved for "
            f"{self.still_s:,.0f} s. A worker is ended after {limit_s:,.0f} s without progress "
            "(MRNLAB_HANG_S)."
        )


def standing_still(store: Store) -> list[IdleHolder]:
    """The workers of this machine that may hang in a slot without a run, so that runs wait.
    Raises StoreError.
    """
    holders = [
        IdleHolder(slot, owner, ProgressFile(store.url, owner).untouched_s())
        for slot, owner in taken_slots(store.url).items()
    ]
    holders = [holder for holder in holders if holder.still_s > _STANDSTILL_S]
    busy = {run.owner for run in trained_runs(store)} if holders else set()
    return [holder for holder in holders if holder.owner not in busy]


def end_hung(store: Store, owner: Owner, after_s: float) -> bool:
    """Kills a worker that has not moved for `after_s` seconds; returns whether its process is gone."""
    ProgressFile(store.url, owner).give_up(after_s)
    if not kill(owner):
        return False
    deadline = time.monotonic() + _SLOT_PATIENCE_S
    while is_alive(owner) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(owner)
