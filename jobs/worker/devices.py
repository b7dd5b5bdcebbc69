"""The GPUs and cores of this machine, found without importing torch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import psutil

from core.settings import count

_NVIDIA_SMI_TIMEOUT_S = 10
# GPU devices of NVIDIA's driver, WSL and AMD's driver.
_GPU_PATHS = (Path("/dev/nvidiactl"), Path("/dev/dxg"), Path("/dev/kfd"))


@cache
def gpu_count() -> int:
    """How many CUDA devices a process started here would see, without importing torch."""
    visible, listed = os.environ.get("CUDA_VISIBLE_DEVICES"), _devices()
    if visible is None:
        return sum(line.startswith("GPU ") for line in listed or ())
    devices: list[str] = []
    for device in (name.strip() for name in visible.split(",")):
        # CUDA reads the list up to the first unknown name, and sees only one part of a divided GPU.
        if device in ("", "-1", *devices) or not (listed is None or _is_listed(device, listed)):
            break
        devices.append(device)
        if device.startswith("MIG-"):
            break
    return len(devices)


def _is_listed(device: str, listed: list[str]) -> bool:
    """Whether a name of CUDA_VISIBLE_DEVICES (a number, or a UUID or its beginning) is among `listed`."""
    if device.isdigit():
        return int(device) < sum(line.startswith("GPU ") for line in listed)
    return any(line.partition("UUID: ")[2].startswith(device) for line in listed)


def _devices() -> list[str] | None:
    """The lines of nvidia-smi on GPUs and their parts; None without nvidia-smi."""
    # Not by nvidia-ml-py: a call into a driver that hangs has no timeout, and a process of its own has one.
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


def is_missing_device(device: str) -> bool:
    """Whether no process started here could train on that device; False where that is unknown."""
    kind, _, number = device.partition(":")
    if kind != "cuda" or (_devices() is None and any(path.exists() for path in _GPU_PATHS)):
        return False  # a GPU without nvidia-smi: in a container, or of another maker
    return int(number or 0) >= gpu_count()


def fixed_slots() -> int | None:
    """How many workers may train at once: `MRNLAB_SLOTS`, else `MRNLAB_RUNS_PER_GPU` (1) per GPU.

    It is 1 on a machine of one core, and None where several cores can be shared (`jobs.worker.cores`).
    Raises MRNLabError where a setting is not a whole number.
    """
    return count("MRNLAB_SLOTS") or gpu_count() * _runs_per_gpu() or (1 if core_count() == 1 else None)


def core_count() -> int:
    """The cores that runs may use here: of this process and its container, and by OMP_NUM_THREADS."""
    if sys.platform == "linux":
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    cores = min(cores, _physical_cores() or cores, _granted_cores() or cores)
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(wanted)) if wanted.isdecimal() and int(wanted) else cores


@cache
def _physical_cores() -> int | None:
    """The cores without hyperthreads, as torch counts them; None where that is unknown."""
    return psutil.cpu_count(logical=False)


@cache
def _granted_cores() -> int | None:
    """The container's limit of processor time in cores, at least 1; None without a limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, int(quota) // int(period))
    except (OSError, ValueError):  # no container, or "max"
        return None


def slot_device(slot: int) -> str:
    """The device on which runs with device `auto` train in that slot, always the same."""
    gpus = gpu_count()
    return f"cuda:{slot // _runs_per_gpu() % gpus}" if gpus > 1 else "auto"


def _runs_per_gpu() -> int:
    return count("MRNLAB_RUNS_PER_GPU") or 1
