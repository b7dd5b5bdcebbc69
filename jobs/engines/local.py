"""Workers as processes of this machine, each in a session of its own, so that Ctrl-C does not reach them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from core.errors import MRNLabError
from core.paths import home
from core.recording.owner import hostname, this_process
from core.settings import count
from core.store import Owner, Store
from jobs.engines import trained_runs
from jobs.worker.idle import linger_seconds, starts_ahead
from jobs.worker.liveness import hang_limit
from jobs.worker.process import is_alive, kill
from jobs.worker.standstill import START_S, ProgressFile, Standstill, workers_folder
from jobs.worker.supervisor import DETACHED

_NVIDIA_SMI_TIMEOUT_S = 10
# A worker without a run moves several times a second, but not while it imports torch.
_STANDS_STILL_S = 30.0
# How long a new worker tries: longer than another needs to let go of a slot, or to die.
_SLOT_PATIENCE_S = 1.0
# GPU devices of NVIDIA's driver, WSL and AMD's driver.
_GPU_PLACES = (Path("/dev/nvidiactl"), Path("/dev/dxg"), Path("/dev/kfd"))


@cache
def gpu_count() -> int:
    """How many CUDA devices a process started here would see, found without importing torch."""
    visible, known = os.environ.get("CUDA_VISIBLE_DEVICES"), _devices()
    if visible is None:
        return sum(line.startswith("GPU ") for line in known or ())
    devices: list[str] = []
    for device in (name.strip() for name in visible.split(",")):
        # CUDA reads the list up to the first name of no device, and sees one part of a divided GPU alone.
        if device in ("", "-1", *devices) or not (known is None or _is_known(device, known)):
            break
        devices.append(device)
        if device.startswith("MIG-"):
            break
    return len(devices)


def _is_known(device: str, known: list[str]) -> bool:
    """Whether a name of CUDA_VISIBLE_DEVICES (a number, or a UUID or its beginning) is one of these."""
    if device.isdigit():
        return int(device) < sum(line.startswith("GPU ") for line in known)
    return any(line.partition("UUID: ")[2].startswith(device) for line in known)


def _devices() -> list[str] | None:
    """The lines of nvidia-smi on GPUs and their parts; None where there is no nvidia-smi."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        listed = subprocess.run(
            [program, "-L"], capture_output=True, text=True, timeout=_NVIDIA_SMI_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []  # a driver that does not answer trains nothing
    return [line for line in listed.stdout.splitlines() if "UUID: " in line] if listed.returncode == 0 else []


def lacks(device: str) -> bool:
    """Whether no process started here could train on that device. False where that is unknown."""
    kind, _, number = device.partition(":")
    if kind != "cuda" or (_devices() is None and any(place.exists() for place in _GPU_PLACES)):
        return False  # a GPU without nvidia-smi: in a container, or of another maker
    return int(number or 0) >= gpu_count()


def slot_count() -> int:
    """How many workers may train at once: `MRNLAB_SLOTS`, else `MRNLAB_RUNS_PER_GPU` (1) a GPU, at least 1.

    Raises MRNLabError where a setting is no such number.
    """
    return count("MRNLAB_SLOTS") or max(1, gpu_count() * _runs_per_gpu())


def _runs_per_gpu() -> int:
    return count("MRNLAB_RUNS_PER_GPU") or 1


@dataclasses.dataclass(frozen=True)
class Slot:
    """A place for one worker. `device` is what a run with device `auto` gets there, always the same."""

    number: int

    @property
    def device(self) -> str:
        gpus = gpu_count()
        return f"cuda:{self.number // _runs_per_gpu() % gpus}" if gpus > 1 else "auto"


def taken_slots(store_url: str) -> dict[int, Owner]:
    """The slots of this store's workers on this machine, each with the living process that holds it."""
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
def free_slot(store_url: str, patience_s: float = _SLOT_PATIENCE_S) -> Iterator[Slot | None]:
    """Hold a free slot while the block runs; None where all are taken.

    The system releases the lock of a slot however its process ends. The holder is written beside the lock,
    so that others need not touch the lock to look; from then on it counts as one that moves.
    """
    folder = workers_folder(store_url)
    progress = ProgressFile(store_url, this_process())
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
    """A worker that holds a slot, trains nothing and has not moved for so many seconds, by the wall clock."""

    slot: int
    owner: Owner
    still_s: float

    def __str__(self) -> str:
        return (
            f"The worker in slot {self.slot} (process {self.owner.pid}) has no run and has not moved for "
            f"{self.still_s:,.0f} s. A worker is ended after {hang_limit():,.0f} s without progress "
            "(MRNLAB_HANG_S)."
        )


def standing_still(store: Store) -> list[IdleHolder]:
    """The workers of this machine that may hang before they take a run, so that runs wait for their slots.

    Raises StoreError.
    """
    holders = [
        IdleHolder(slot, owner, ProgressFile(store.url, owner).untouched_s())
        for slot, owner in taken_slots(store.url).items()
    ]
    holders = [holder for holder in holders if holder.still_s > _STANDS_STILL_S]
    busy = {run.owner for run in trained_runs(store)} if holders else set()
    return [holder for holder in holders if holder.owner not in busy]


def end_hung(store: Store, owner: Owner, after_s: float) -> bool:
    """End a worker that has not moved for so long; whether its process is gone."""
    ProgressFile(store.url, owner).give_up(after_s)
    if not kill(owner):
        return False
    deadline = time.monotonic() + _SLOT_PATIENCE_S
    while is_alive(owner) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(owner)


# The folder that holds our packages: `python -m` looks there first.
_ROOT = Path(__file__).resolve().parents[2]


class LocalEngine:
    """Starts supervised workers. Two dashboards that do so at once start a worker too many at worst."""

    name = "local"

    def __init__(
        self,
        command: Sequence[str] = (sys.executable, "-m", "jobs.worker.supervisor"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command = command
        self._clock = clock
        self._waiting_since: float | None = None
        self._children: list[subprocess.Popen[bytes]] = []
        self._standstills: dict[Owner, Standstill] = {}
        self._lock = threading.Lock()

    def ensure_workers(self, store: Store) -> int:
        """Starts workers while runs may be claimed here and slots are free; returns how many it started.

        One that holds a slot without a run and hangs is ended: its own supervisor may have died.
        Raises MRNLabError where no process can be started or a setting is wrong; the runs stay queued then.
        """
        with self._lock:
            hang_limit(), linger_seconds()  # a worker would end at once where one is wrong
            holders = taken_slots(store.url).values()
            # Read before the queue is read: a run that is claimed in between is counted nowhere.
            busy = {run.owner for run in trained_runs(store)} if holders else set()
            self._end_hung(store, [owner for owner in holders if owner not in busy])
            if not store.claimable(hostname()):
                self._waiting_since = None
                return 0
            # A child that has not taken its slot yet counts too; one that has is counted once.
            live = len(self._live(store))
            idle = live - sum(owner in busy for owner in taken_slots(store.url).values())
            waiting = store.claimable(hostname())
            if self._waiting_since is None:
                self._waiting_since = self._clock()
            elif self._clock() - self._waiting_since > START_S:
                idle = 0  # those that could have taken a run by now are not relied on
            started = max(0, min(waiting - idle, slot_count() - live))
            for _ in range(started):
                self._children.append(start(self._command, store))
            return started

    def expect_run(self, store: Store) -> None:
        """Starts a worker where none is alive and workers wait for runs long enough."""
        with self._lock:
            if starts_ahead() and not self._live(store):
                self._children.append(start(self._command, store))

    def live_workers(self, store: Store) -> int:
        """How many workers of this store are alive on this machine."""
        with self._lock:
            return len(self._live(store))

    def _end_hung(self, store: Store, idle: Sequence[Owner]) -> None:
        self._standstills = {
            owner: self._standstills.get(owner) or Standstill(ProgressFile(store.url, owner), self._clock)
            for owner in idle
        }
        hang_s = hang_limit()
        for owner, standstill in self._standstills.items():
            if standstill.is_hung(hang_s):
                end_hung(store, owner, hang_s)

    def _live(self, store: Store) -> set[int]:
        # Polling also reaps: a finished child that nobody asks for stays a zombie.
        self._children = [child for child in self._children if child.poll() is None]
        live = {child.pid for child in self._children}
        for owner in taken_slots(store.url).values():
            with contextlib.suppress(psutil.NoSuchProcess):
                parent = psutil.Process(owner.pid).ppid()
                live.add(parent if parent in live else owner.pid)  # a supervisor counts for its worker
        return live


def start(command: Sequence[str], store: Store) -> subprocess.Popen[bytes]:
    """Start a detached process for this store, its output in `logs/workers.log`. Raises MRNLabError."""
    environment = {
        # Not in the arguments, which every user of the machine can read.
        "MRNLAB_DB": store.url,
        "MRNLAB_HOME": str(home()),
        "PYTHONUNBUFFERED": "1",
        "TOKENIZERS_PARALLELISM": "false",
        # Turns that a thread of libgomp spins before it sleeps; 300,000 by default. Beside one busy process a
        # step of an LSTM over words took 30 to 120 times as long. At 30,000 it takes no longer than alone.
        "GOMP_SPINCOUNT": os.environ.get("GOMP_SPINCOUNT", "30000"),
    }
    if slot_count() > 1 and gpu_count() == 0 and "OMP_NUM_THREADS" not in os.environ:
        # Workers that share the cores would slow one another down with a thread per core each.
        environment["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // slot_count()))
    logs = home() / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    try:
        with (logs / "workers.log").open("ab") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=log, env=os.environ | environment, cwd=_ROOT, **DETACHED
            )
    except OSError as error:
        raise MRNLabError(
            f"The runs are queued, but no worker could be started: {error.strerror}."
        ) from error
