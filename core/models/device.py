"""Which device a run trains on, and in which precision."""

from __future__ import annotations

import os
import platform
import re
from functools import cache
from pathlib import Path

import torch

from core.errors import DeviceError
from core.settings import yes_or_no

ALL_THREADS = torch.get_num_threads()
"""CPU threads that torch uses by default on this machine."""


def choose_device(name: str) -> torch.device:
    """The device called `auto`, `cpu`, `cuda` or `cuda:N`. Raises DeviceError where it is missing."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda":
        count = torch.cuda.device_count()
        if (device.index or 0) >= count:
            raise DeviceError(name, count)
    return device


def computes_in_half(precision: str, device: torch.device) -> bool:
    """Whether the encoder computes in bfloat16: asked for, or `auto` on hardware that is fast at it.

    MRNLAB_BF16 says what `auto` means without asking the hardware. Raises MRNLabError where it says neither.
    """
    if precision != "auto":
        return precision == "bf16"
    if (is_set := yes_or_no("MRNLAB_BF16")) is not None:
        return is_set
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # Older versions of torch have no get_capabilities; float32 is then right, only slower.
    capabilities: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def make_deterministic(seed: int, device: torch.device) -> None:
    """Same seed, same device: same numbers. Slower attention kernels are the price on a GPU."""
    torch.manual_seed(seed)
    if device.type == "cuda":
        # Read when the GPU's first matrix product is made; without it products may differ from run to run.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
        # It would fill what is about to be written: half of the kernels of a step.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined] # made by a class


@cache
def hardware_name(device: torch.device) -> str:
    """The model of the GPU, or of the machine's processor with its number of cores."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    processors = Path("/proc/cpuinfo")
    names = (
        re.findall(r"^model name\s*: (.+)$", processors.read_text(), re.MULTILINE)
        if processors.is_file()
        else []
    )
    return f"{names[0] if names else platform.processor() or platform.machine()}, {os.cpu_count()} cores"
