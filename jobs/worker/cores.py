"""How the runs that a machine trains on its processor share the cores: how many at once, on how many threads.

Two runs of one thread do more work than one run of two (docs/adr/0041-runs-share-the-cores.md).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from core.config import RunConfig, trains_heads_alone
from core.recording.owner import hostname
from core.store import ACTIVE, RunState, Store
from core.store.queue import share_of_cores
from core.wording import plural
from jobs.worker.devices import core_count, fixed_slots, gpu_count
from jobs.worker.slots import taken_slots

LEAST_BYTES = 2**30
"""The memory that a worker is given at least: a fine-tuned MiniLM takes less."""
_NEWEST = 8  # finished runs, whose measured memory the next ones are given too
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Sharing:
    """How runs that are queued now will share this machine.

    slots     how many runs train at once here
    cores     the cores that they share; None where each run takes what torch takes (MRNLAB_SLOTS, a GPU)
    is_idle   whether no run trains or waits
    known     the threads of earlier runs, by configuration id
    is_chosen whether `mrnlab queue --slots` has set the slots
    """

    slots: int
    cores: int | None
    is_idle: bool
    earlier_threads: Mapping[str, int]
    is_chosen: bool = False

    @classmethod
    def of(cls, store: Store, configs: Iterable[RunConfig]) -> Sharing:
        """How these runs would share this machine. Raises MRNLabError."""
        slots, cores = train_at_once(store), shared_cores()
        if cores is None:
            return cls(slots, None, False, {})
        # Heads alone always learn with one thread; theirs are for the features, which all seeds share.
        ids = {config.configuration_id for config in configs if not trains_heads_alone(config)}
        counts = store.counts()
        is_idle = not any(counts[state] for state in ACTIVE)
        is_chosen = store.chosen_slots(hostname()) is not None
        return cls(slots, cores, is_idle, _known(store, ids, cores), is_chosen)

    def threads(self, configs: Sequence[RunConfig]) -> list[int | None]:
        """The threads of each of these runs, queued together.

        A run takes those of its configuration's earlier runs. A new one takes all cores where it is alone,
        else its share. Where the slots were chosen, none takes more than its share.
        """
        if self.cores is None:
            return [None] * len(configs)
        share = share_of_cores(self.cores, self.slots)
        if self.is_chosen:
            return [
                min(share, self.earlier_threads.get(config.configuration_id, share)) for config in configs
            ]
        is_alone = self.is_idle and len(configs) == 1
        new = self.cores if is_alone else share
        return [self.earlier_threads.get(config.configuration_id, new) for config in configs]

    def at_once(self, threads: Sequence[int | None]) -> int:
        """How many runs with these threads, queued together, train at once."""
        if self.cores is None:
            return self.slots
        most = max((number or 1 for number in threads), default=1)
        return max(1, min(self.slots, self.cores // most))

    def held_back(self, threads: Sequence[int | None]) -> str:
        """Why fewer of these runs train at once than could, and how to change it; else empty."""
        at_once = self.at_once(threads)
        if self.cores is None or self.is_chosen or at_once >= min(self.slots, len(threads)):
            return ""
        most, share = max(number or 1 for number in threads), share_of_cores(self.cores, self.slots)
        return (
            "All seeds of a configuration compute with the same number of threads, and its earlier runs took "
            f"{most}: only {plural(at_once, 'run')} at once. `mrnlab queue --slots {self.slots}` trains "
            f"{self.slots} at once, with {plural(share, 'thread')} each."
        )


def _known(store: Store, ids: set[str], cores: int) -> dict[str, int]:
    """The threads of the newest run of each of these configurations that this machine can give."""
    earlier = store.runs_of(ids)
    earlier_threads = {
        run.configuration_id: run.threads
        for run in reversed(earlier)
        if run.threads is not None and run.threads <= cores
    }
    # Runs that were queued without a number have recorded what they took.
    newest = {
        run.configuration_id: run.id
        for run in reversed(earlier)
        if run.threads is None and run.owner is not None and run.configuration_id not in earlier_threads
    }
    for run in store.runs_with_facts(newest.values()):
        if run.facts and 0 < (threads := run.facts.threads) <= cores:
            earlier_threads[run.configuration_id] = threads
    return earlier_threads


def shared_cores() -> int | None:
    """The cores that runs share here; None where `fixed_slots` says how many train at once."""
    return core_count() if fixed_slots() is None else None


def slots_reason() -> str:
    """The reason for the number of slots, as the end of a sentence; empty if it was chosen."""
    if os.environ.get("MRNLAB_SLOTS"):
        return ": MRNLAB_SLOTS is set, and goes before `mrnlab queue --slots`"
    if gpu_count():
        return ": its GPUs decide, and MRNLAB_RUNS_PER_GPU"
    return "" if fixed_slots() is None else ": it has one core for runs"


def train_at_once(store: Store) -> int:
    """How many runs of this store train at once on this machine, at least 1.

    Raises MRNLabError where a setting is not a whole number.
    """
    if (fixed := fixed_slots()) is not None:
        return fixed
    if (chosen := store.chosen_slots(hostname())) is not None:
        return min(chosen, core_count())
    workers = [owner.pid for owner in taken_slots(store.url).values()]
    return slots_by_memory(core_count(), _usable_bytes(workers), _run_bytes(store))


def slots_by_memory(cores: int, usable: int, of_a_run: int) -> int:
    """How many runs of that many bytes the usable bytes bear, at most one a core, at least 1."""
    return max(1, min(cores, usable // max(of_a_run, LEAST_BYTES)))


def _run_bytes(store: Store) -> int:
    """The most memory that a worker has had in one of the newest runs trained here; 0 if unknown."""
    finished = store.runs_with_facts(states={RunState.SUCCEEDED}, limit=_NEWEST, archived=None)
    here = (run.facts for run in finished if run.owner and run.owner.host == hostname())
    usages = (facts.usage for facts in here if facts)
    measured = (usage.peak_memory for usage in usages if usage and usage.memory_of == "process")
    return max((peak for peak in measured if peak), default=0)


def _usable_bytes(workers: Iterable[int]) -> int:
    """The bytes free for workers, plus the bytes that they hold, within the container's limit."""
    free = psutil.virtual_memory().available
    with contextlib.suppress(OSError, ValueError):  # no container, or one without a limit
        used = int((_CGROUP / "memory.current").read_text())
        files = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        free = min(free, int((_CGROUP / "memory.max").read_text()) - used + int(files.get("file", 0)))
    for pid in workers:
        with contextlib.suppress(psutil.Error):
            free += psutil.Process(pid).memory_info().rss
    return free
