"""Processors, GPUs, disk, and who can reach the dashboard."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from core.paths import home
from jobs.doctor.finding import Finding, problem, remark
from jobs.engines.slots import gpu_count
from jobs.exposure import reachable_dashboards

__all__ = ["disk_findings", "exposure", "gpu_findings", "gpus", "kept", "size_of"]

_QUERY = ["--query-gpu=name,memory.total,memory.free", "--format=csv,noheader"]
_PATIENCE_S = 10
_LITTLE_DISK = 2 * 1024**3
_KINDS = ("checkpoints", "cache", "logs", "uploads")


def gpus() -> list[str]:
    """Each GPU with its memory, as nvidia-smi tells; empty where there is none, or it does not answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        told = subprocess.run(
            [program, *_QUERY], capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    names = ("", "", " free of memory")
    lines = [line.split(", ") for line in told.stdout.splitlines()] if told.returncode == 0 else []
    return [", ".join(part + name for part, name in zip(line, names, strict=False)) for line in lines]


def gpu_findings(torch: str | None = None) -> Iterator[Finding]:
    """A GPU that training cannot use. `torch`: the version installed."""
    if torch is None:
        torch = importlib.metadata.version("torch")
    if gpu_count() and "+cpu" in torch:
        yield problem(
            "devices",
            f"This machine has {gpu_count()} GPU(s), but torch {torch} is a build without CUDA: runs train "
            "on the processor. Install torch's CUDA build.",
        )


def size_of(folder: Path) -> int:
    """Bytes of all files below; what goes away meanwhile counts nothing."""
    total = 0
    for path in folder.rglob("*") if folder.is_dir() else ():
        try:
            total += path.lstat().st_size if not path.is_dir() else 0
        except FileNotFoundError:
            continue
    return total


def kept() -> dict[str, int]:
    """Bytes of each kind of thing in the laboratory's folder."""
    return {kind: size_of(home() / kind) for kind in _KINDS}


def disk_findings(free: int) -> Iterator[Finding]:
    """A disk that is nearly full."""
    if free < _LITTLE_DISK:
        largest = max(kept().items(), key=lambda one: one[1])
        advice = (
            f"; {home() / 'cache'} can be removed, it is made anew"
            if largest[0] == "cache"
            else f"; most of what is ours is in {home() / largest[0]}"
        )
        yield problem("disk", f"Only {free / 1024**3:.1f} GiB are free under {home()}{advice}.")


def exposure() -> Iterator[Finding]:
    """Dashboards of this user that other machines can reach."""
    for process, places in reachable_dashboards().items():
        yield remark(
            "dashboard",
            f"The dashboard of process {process} can be reached from other machines ({', '.join(places)}). "
            "Unless it asks for a login, anybody there can use this laboratory (docs/security.md).",
        )
