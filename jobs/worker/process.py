"""Which process this is, what became of another one, and how to end it."""

from __future__ import annotations

import os
import signal
import sys
from enum import StrEnum

import psutil

from core.recording.owner import boot_id, hostname, started_at
from core.store.records import Owner


class Fate(StrEnum):
    """What can be said of a process from here."""

    ALIVE = "alive"
    GONE = "gone"
    REBOOTED = "rebooted"  # its machine has been started anew since
    ELSEWHERE = "elsewhere"  # on another machine or in another container: it cannot be looked at


def fate_of(owner: Owner) -> Fate:
    """Whether that process runs, and if not why; no clock is asked.

    A host's name alone does not tell machines apart: cloned ones have the same, and a container may have
    its host's. The boot then is another one, or the process numbers mean something else.
    """
    if owner.host != hostname():
        return Fate.ELSEWHERE
    boot, namespaces, machine = _parts(owner.boot_id)
    our_boot, our_namespaces, our_machine = _parts(boot_id())
    if _differ(machine, our_machine):
        return Fate.ELSEWHERE
    if boot != our_boot:
        return Fate.REBOOTED
    if _differ(namespaces, our_namespaces):
        return Fate.ELSEWHERE
    return Fate.ALIVE if _runs(owner) else Fate.GONE


def is_here(owner: Owner) -> bool:
    """Whether that process ran on this machine, so that we can look for it."""
    return fate_of(owner) is not Fate.ELSEWHERE


def is_alive(owner: Owner) -> bool:
    """Whether that process of this machine still runs: no zombie, no other process with its number."""
    return fate_of(owner) is Fate.ALIVE


def kill(owner: Owner) -> bool:
    """Ends that process, and the helpers in its group, at once. False where it is not ours to end."""
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
        return True  # it ended by itself meanwhile
    except (PermissionError, psutil.AccessDenied):
        return False  # another user's
    return True


def ending(code: int | None) -> str:
    """How a process ended, from what it left to its parent: `was ended by SIGKILL (…)`.

    None where nobody knows, for it was nobody's child any more.
    """
    if code is None:
        return "ended without a word"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    why = _MEANINGS.get(name)
    return f"was ended by {name} ({why})" if why else f"was ended by {name}"


_MEANINGS = {
    "SIGKILL": "the system kills the largest process when memory runs out",
    "SIGSEGV": "a fault in compiled code",
    "SIGBUS": "a fault in compiled code, or a full disk",
    "SIGABRT": "compiled code gave up; the end of its log may say why",
    "SIGILL": "compiled code that this processor does not know",
    "SIGFPE": "a fault in compiled code",
    "SIGXCPU": "its share of processor time was used up",
}


def _runs(owner: Owner) -> bool:
    try:
        if psutil.Process(owner.pid).status() == psutil.STATUS_ZOMBIE:
            return False
        return abs(started_at(owner.pid) - owner.process_started) < 0.1
    except psutil.NoSuchProcess:
        return False


def _parts(boot_id: str) -> tuple[str, str, str]:
    boot, _, rest = boot_id.partition("/")
    namespaces, _, machine = rest.partition("/")
    return boot, namespaces, machine


def _differ(one: str, other: str) -> bool:
    """Whether both are known and not the same."""
    return bool(one and other) and one != other
