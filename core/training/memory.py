"""Peak memory of a training, and errors that say what to do where a step finds none."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from core.errors import OutOfMemory

_MUCH = 0.05
"""Fraction of the device from which on it is worth saying that other programs hold it."""

_NO_MEMORY = re.compile(r"can't allocate memory|not enough memory|out of memory|CUBLAS_STATUS_ALLOC_FAILED")

# proc(5): writing "5" resets the peak, VmHWM, to what is held now.
_CLEAR_REFS, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def restart_process_peak() -> None:
    """Count this process's peak memory from here on: a warm worker trains many runs. Linux only."""
    with contextlib.suppress(OSError):
        _CLEAR_REFS.write_text("5", encoding="ascii")


def process_peak() -> int | None:
    """This process's peak memory in bytes since `restart_process_peak`; None without Linux."""
    try:
        peak = re.search(r"^VmHWM:\s+(\d+) kB$", _STATUS.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return None
    return None if peak is None else 1024 * int(peak[1])


@contextmanager
def memory_errors(device: torch.device, batch_size: int, field: str) -> Iterator[None]:
    """Around one step of `batch_size` sentences, or subwords at most where `field` is `batch_tokens`.

    Raises OutOfMemory, which names half of them, in place of the errors that torch reports it by.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        cause = _cause(device)
        if batch_size == 1:
            message = f"{cause} for single sentences. Clone it with a smaller max_length."
            raise OutOfMemory(message) from error
        unit, fits = "subwords" if field == "batch_tokens" else "sentences", batch_size // 2
        message = f"{cause} for batches of {batch_size} {unit}. Clone it with {field} {fits}."
        raise OutOfMemory(message, field, fits) from error


def _cause(device: torch.device) -> str:
    if device.type != "cuda":
        return "The memory was not enough"
    free, total = torch.cuda.mem_get_info(device)
    others = total - free - torch.cuda.memory_reserved(device)
    held = f", of which other programs hold {_gigabytes(others)}," if others > _MUCH * total else ""
    return f"The GPU's {_gigabytes(total)}{held} were not enough"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the CPU or the GPU had no memory left; torch reports it in several ways."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error)) is not None


def _gigabytes(number: int) -> str:
    return f"{number / 2**30:.3g} GB"
