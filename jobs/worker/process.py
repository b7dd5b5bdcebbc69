"""The status of a process, how it ended, and how to kill it."""

from __future__ import annotations

import os
import signal
import sys
from enum import StrEnum
from pathlib import Path

import psutil

from core.recording.owner import boot_id, hostname, started_at
from core.store.types import Owner


class ProcessStatus(StrEnum):
    """The status of a process as seen from this machine."""

    ALIVE = "alive"
    GONE = "gone"
    REBOOTED = "rebooted"  # its machine has been restarted since
    ELSEWHERE = "elsewhere"  # on another machine or in another container: it cannot be looked at


def process_status(owner: Owner) -> ProcessStatus:
    """Whether that process runs, or why not, without reading a clock.

    The name of a host does not identify a machine: clones share it, and a container may have its host's.
    Their boots, or the namespaces in which process numbers hold, differ.
    """
    if owner.host != hostname():
        return ProcessStatus.ELSEWHERE
    boot, namespaces, machine = f"{owner.boot_id}//".split("/")[:3]
    this_boot, this_namespaces, this_machine = boot_id().split("/")
    if _differ(machine, this_machine):
        return ProcessStatus.ELSEWHERE
    if boot != this_boot:
        return ProcessStatus.REBOOTED
    if _differ(namespaces, this_namespaces):
        return ProcessStatus.ELSEWHERE
    try:
        is_zombie = psutil.Process(owner.pid).status() == psutil.STATUS_ZOMBIE
        # Another start time: the number was given to another process.
        runs = not is_zombie and abs(started_at(owner.pid) - owner.process_started) < 0.1
    except psutil.NoSuchProcess:
        runs = False
    return ProcessStatus.ALIVE if runs else ProcessStatus.GONE


def _differ(part: str, other: str) -> bool:
    """Whether both are known and differ."""
    return bool(part and other) and part != other


def is_alive(owner: Owner) -> bool:
    """Whether that process of this machine still runs."""
    return process_status(owner) is ProcessStatus.ALIVE


def processor_wait_s(owner: Owner) -> float:
    """The seconds for which the process' main thread has waited for a processor so far.

    It is 0 where the system does not tell, or the process is on another machine or gone.
    """
    if owner.host != hostname():
        return 0.0
    try:
        # Nanoseconds on a processor, nanoseconds waiting for one, times it got one.
        return int(Path(f"/proc/{owner.pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def kill(owner: Owner) -> bool:
    """Kills that process and its group; False where the system forbids it (another user's process)."""
    if not is_alive(owner):
        return True
    try:
        if sys.platform == "win32":
            psutil.Process(owner.pid).kill()
        elif os.getpgid(owner.pid) == owner.pid:
            os.killpg(owner.pid, signal.SIGKILL)
        else:  # a worker started from a script: the group is the script's
            os.kill(owner.pid, signal.SIGKILL)
    except (ProcessLookupError, psutil.NoSuchProcess):
        return True  # it has just ended
    except (PermissionError, psutil.AccessDenied):
        return False
    return True


_SIGNAL_MEANINGS = {
    "SIGKILL": "the system kills the largest process when memory runs out",
    "SIGSEGV": "a fault in compiled code",
    "SIGBUS": "a fault in compiled code, or a full disk",
    "SIGABRT": "compiled code gave up; the end of its log may say why",
    "SIGILL": "compiled code that this processor does not know",
    "SIGFPE": "a fault in compiled code",
    "SIGXCPU": "its share of processor time was used up",
}


def describe_exit(code: int | None) -> str:
    """Describes how a process with this exit code ended: `was ended by SIGKILL (…)`; None is unknown."""
    if code is None:
        return "ended without a word"
    if code >= 0:
        return f"ended with exit code {code}"
    names = {number.value: number.name for number in signal.Signals}
    name = names.get(-code, f"signal {-code}")
    meaning = _SIGNAL_MEANINGS.get(name)
    return f"was ended by {name} ({meaning})" if meaning else f"was ended by {name}"
