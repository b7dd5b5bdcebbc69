"""Which process this is: the owner of the runs that it trains."""

from __future__ import annotations

import hashlib
import os
import socket
from functools import cache
from pathlib import Path

import psutil

from core.store.types import Owner


def hostname() -> str:
    """The name of this machine, by which workers are drained."""
    return socket.gethostname()


def this_process() -> Owner:
    """Host, pid, start time and boot of the process that calls."""
    return process(os.getpid())


def process(pid: int) -> Owner:
    """Host, pid, start time and boot of another process of this machine. Raises psutil.NoSuchProcess."""
    return Owner(hostname(), pid, started_at(pid), boot_id())


def started_at(pid: int) -> float:
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


@cache
def boot_id() -> str:
    """This start of the machine, the namespaces that process numbers and start times hold in, the machine.

    Written `boot/namespaces/machine`; a part that the system does not tell is empty.
    """
    boot_file = Path("/proc/sys/kernel/random/boot_id")
    start = boot_file.read_text().strip() if boot_file.is_file() else f"{psutil.boot_time():.0f}"
    places = [Path("/proc/self/ns") / name for name in ("pid", "time")]
    namespaces = " ".join(os.readlink(link) for link in places if link.is_symlink())
    machine = Path("/etc/machine-id")
    identity = machine.read_text().strip() if machine.is_file() else ""
    return f"{start}/{_short(namespaces)}/{_short(identity)}"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8] if text else ""
