"""Which process this is, and whether another one still lives."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

import psutil

from core.store.records import Owner

__all__ = ["is_alive", "is_here", "kill", "this_process"]


def this_process() -> Owner:
    """Host, pid, start time and boot of the process that calls."""
    return Owner(socket.gethostname(), os.getpid(), _started(os.getpid()), _boot_id())


def is_here(owner: Owner) -> bool:
    """Whether that process ran on this machine, so that we can look for it."""
    return owner.host == socket.gethostname()


def is_alive(owner: Owner) -> bool:
    """Whether that process of this machine still runs: no zombie, no other process with its number."""
    if owner.boot_id != _boot_id():
        return False
    try:
        if psutil.Process(owner.pid).status() == psutil.STATUS_ZOMBIE:
            return False
        return abs(_started(owner.pid) - owner.process_started) < 0.1
    except psutil.NoSuchProcess:
        return False


def kill(owner: Owner) -> bool:
    """Ends that process, and the helpers in its group, at once. False where it is not ours to end."""
    if not is_alive(owner):
        return True
    try:
        if sys.platform == "win32":
            psutil.Process(owner.pid).kill()
        elif os.getpgid(owner.pid) == owner.pid:
            os.killpg(owner.pid, signal.SIGKILL)
        else:  # `mrnlab worker` from a script: the group is the script's
            os.kill(owner.pid, signal.SIGKILL)
    except (ProcessLookupError, psutil.NoSuchProcess):
        return True  # it ended by itself meanwhile
    except (PermissionError, psutil.AccessDenied):
        return False  # another user's
    return True


def _started(pid: int) -> float:
    """When the process started, in seconds since the machine did where that is known.

    The wall clock may be set while a process runs; the kernel's own count of the start does not move.
    """
    stat = Path(f"/proc/{pid}/stat")
    try:
        # The name in parentheses may hold spaces; the start is the 20th field after it, in clock ticks.
        ticks = int(stat.read_text().rpartition(")")[2].split()[19])
    except FileNotFoundError:
        return psutil.Process(pid).create_time()
    except ProcessLookupError:
        raise psutil.NoSuchProcess(pid) from None
    return ticks / os.sysconf("SC_CLK_TCK")


def _boot_id() -> str:
    """What tells this start of the machine from every other."""
    known = Path("/proc/sys/kernel/random/boot_id")
    return known.read_text().strip() if known.is_file() else f"{psutil.boot_time():.0f}"
