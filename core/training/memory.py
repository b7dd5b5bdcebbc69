"""Track the peak device memory of each step; where a step runs out, estimate the largest batch that fits."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from core.errors import OutOfMemory
from core.events import Usage

_SPARE = 0.1
"""Fraction of the device that is left free: batches differ, and memory is lost between its pieces."""
_MUCH = 0.05
"""Fraction of the device from which on it is worth saying that other programs hold it."""

_NO_MEMORY = re.compile(r"can't allocate memory|not enough memory|out of memory|CUBLAS_STATUS_ALLOC_FAILED")
_REQUESTED = re.compile(r"[Tt]ried to allocate ([\d.]+) ([KMG]?i?B|bytes)")
_UNITS = {"B": 1, "bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

# proc(5): writing "5" resets the peak, VmHWM, to what is held now.
_CLEAR_REFS, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@dataclass(frozen=True)
class Memory:
    """Bytes of a device.

    All it has, the part that this process could have, the part that it holds now, and its peak since the step
    began.
    """

    total: int
    available: int
    held: int
    peak: int


class Gauge:
    """A GPU's memory counters. `start` reads torch's own, so that no step waits for the device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._most = 0
        torch.cuda.reset_peak_memory_stats(device)  # a run before this one in the same worker left its own

    def start(self) -> int:
        """Bytes held now; `read().peak` is counted from here on."""
        self._most = self.most()
        torch.cuda.reset_peak_memory_stats(self._device)
        held: int = torch.cuda.memory_allocated(self._device)
        return held

    def read(self) -> Memory:
        free, total = torch.cuda.mem_get_info(self._device)
        return Memory(
            total=total,
            available=free + torch.cuda.memory_reserved(self._device),
            held=torch.cuda.memory_allocated(self._device),
            peak=torch.cuda.max_memory_allocated(self._device),
        )

    def most(self) -> int:
        """The peak in bytes since the gauge was made."""
        return max(self._most, torch.cuda.max_memory_allocated(self._device))


def gauge_of(device: torch.device) -> Gauge | None:
    """The gauge of a GPU; None for a CPU."""
    return Gauge(device) if device.type == "cuda" else None


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


class StepMemory:
    """Watches the steps of a training, to explain with figures one that runs out of memory.

    A step has `batch_size` sentences, or at most `batch_tokens` subwords where that is set.
    """

    def __init__(
        self, batch_size: int, batch_tokens: int | None, optimiser: torch.optim.Optimizer, gauge: Gauge | None
    ) -> None:
        self._batch_size, self._optimiser, self._gauge = batch_tokens or batch_size, optimiser, gauge
        in_subwords = batch_tokens is not None
        self._unit, self._field = ("subwords", "batch_tokens") if in_subwords else ("sentences", "batch_size")

    def usage(self, seconds: float) -> Usage:
        """The cost of the training, given its seconds."""
        if self._gauge is None:
            return Usage(seconds, process_peak(), "process")
        return Usage(seconds, self._gauge.most(), "gpu")

    @contextmanager
    def step(self) -> Iterator[None]:
        """Around one step. Raises OutOfMemory, which names the batch size, or budget, that would fit."""
        before = 0 if self._gauge is None else self._gauge.start()
        try:
            yield
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise self._out_of_memory(before, str(error)) from error

    def _out_of_memory(self, before: int, torch_message: str) -> OutOfMemory:
        size, fits, about = self._batch_size, self._batch_size / 2, ""
        cause = "The memory was not enough"
        if self._gauge is not None:
            now = self._gauge.read()
            others = now.total - now.available
            held = f", of which other programs hold {_gigabytes(others)}," * (others > _MUCH * now.total)
            cause = f"The GPU's {_gigabytes(now.total)}{held} were not enough"
            fits = fitting(size, now, before, before + self._constant(), _requested(torch_message))
            if not self._optimiser.state:  # a first step that was cut short has not shown all that it needs
                fits = min(fits, size / 2)
            about = f": about {int(fits)} would fit"
        if size == 1:
            return OutOfMemory(f"{cause} for single sentences. Clone it with a smaller max_length.")
        cause = f"{cause} for batches of {size} {self._unit}"
        if fits < 1:
            return OutOfMemory(
                f"{cause}, nor for single ones. Clone it with a smaller encoder, or with a frozen one."
            )
        fitted = _rounded(fits)
        return OutOfMemory(f"{cause}{about}. Clone it with {self._field} {fitted}.", self._field, fitted)

    def _constant(self) -> int:
        """The bytes of a step that do not depend on its batch: gradients, at first Adam's moments."""
        weights = (weight for group in self._optimiser.param_groups for weight in group["params"])
        trained: int = sum(weight.nbytes for weight in weights if weight.requires_grad)
        return trained if self._optimiser.state else 3 * trained


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the CPU or the GPU had no memory left; torch reports it in several ways."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error)) is not None


def fitting(batch_size: int, now: Memory, before: int, constant: int, requested: int) -> float:
    """How many sentences, or subwords, there was room for: fewer than `batch_size`, a tenth left free.

    `before` bytes were held when the step began, `constant` are needed whatever the batch, `requested` could
    not be had. All beyond `before` at the peak is taken as what the sentences need.
    """
    for_sentences = max(now.peak, now.held) + requested - before
    room = (1 - _SPARE) * now.available - constant
    if for_sentences <= 0:  # nothing is known of what the sentences took
        return batch_size / 2 if room > 0 else 0.0
    return max(0.0, min(batch_size - 1.0, room * batch_size / for_sentences))


def _requested(torch_message: str) -> int:
    """The bytes that torch tried to allocate, from its message; 0 if it has no number."""
    match = _REQUESTED.search(torch_message)
    return 0 if match is None else int(float(match[1]) * _UNITS.get(match[2], 1))


def _rounded(fits: float) -> int:
    """The next usual batch size below: powers of two, and from 24 on also three quarters of them."""
    power = int(2 ** math.floor(math.log2(fits)))
    larger = power * 3 // 2
    return larger if power >= 16 and larger <= fits else power


def _gigabytes(number: int) -> str:
    return f"{number / 2**30:.3g} GB"
