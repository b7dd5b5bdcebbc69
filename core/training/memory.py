"""What a training step takes of the device's memory, and the batch size that fits where it was not enough."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from core.errors import OutOfMemory

_SPARE = 0.1
"""Share of the device that is left free: batches differ, and memory is lost between its pieces."""
_MUCH = 0.05
"""Share of the device from which on it is worth saying that other programs hold it."""

_NO_MEMORY = re.compile(r"can't allocate memory|not enough memory|out of memory|CUBLAS_STATUS_ALLOC_FAILED")
_ASKED = re.compile(r"[Tt]ried to allocate ([\d.]+) ([KMG]?i?B|bytes)")
_UNITS = {"B": 1, "bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


# proc(5): "5" sets the peak back to what is held now; VmHWM is that peak.
_CLEAR_REFS, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@dataclass(frozen=True)
class Memory:
    """Bytes of a device: what it has, what this process could have of that, what it holds now, and the most
    that it held since the step began.
    """

    total: int
    available: int
    held: int
    peak: int


class Gauge(Protocol):
    """What a device tells of its memory."""

    def start(self) -> int:
        """Bytes held now; the peak is counted from here on."""
        ...

    def read(self) -> Memory:
        """The figures now."""
        ...

    def most(self) -> int:
        """The most bytes held since there is this gauge."""
        ...


class CudaGauge:
    """The figures of a GPU. `start` asks torch's own counters, so that no step waits for the device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._most = 0
        torch.cuda.reset_peak_memory_stats(device)  # a run before this one in the same worker left its own

    def start(self) -> int:
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
        return max(self._most, torch.cuda.max_memory_allocated(self._device))


def gauge_of(device: torch.device) -> Gauge | None:
    """The gauge of a GPU; None for a device that does not tell."""
    return CudaGauge(device) if device.type == "cuda" else None


def restart_process_peak() -> None:
    """Count this process's peak memory from here on: a warm worker trains many runs. Linux alone can."""
    with contextlib.suppress(OSError):
        _CLEAR_REFS.write_text("5", encoding="ascii")


def process_peak() -> int | None:
    """The most bytes of memory that this process had since `restart_process_peak`; None without Linux."""
    try:
        status = _STATUS.read_text(encoding="ascii")
    except OSError:
        return None
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return None if found is None else 1024 * int(found[1])


class StepMemory:
    """Watches the steps of one training, so that a step which finds no memory is told with figures.

    A step has `batch_size` sentences, or that many subwords at most where it is a `budget`.
    """

    def __init__(
        self,
        batch_size: int,
        optimiser: torch.optim.Optimizer,
        gauge: Gauge | None,
        *,
        budget: bool = False,
    ) -> None:
        self._batch_size, self._optimiser, self._gauge = batch_size, optimiser, gauge
        self._unit, self._field = ("subwords", "batch_tokens") if budget else ("sentences", "batch_size")

    @contextmanager
    def step(self) -> Iterator[None]:
        """Around one step. Raises OutOfMemory, which names the batch size, or budget, that would fit."""
        before = 0 if self._gauge is None else self._gauge.start()
        try:
            yield
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise self._told(before, str(error)) from error

    def _told(self, before: int, message: str) -> OutOfMemory:
        size = self._batch_size
        told = "The memory was not enough"
        fits = size / 2
        if self._gauge is not None:
            now = self._gauge.read()
            others = now.total - now.available
            told = f"The GPU's {_gigabytes(now.total)} were not enough"
            if others > _MUCH * now.total:
                told = (
                    f"The GPU's {_gigabytes(now.total)}, of which other programs hold {_gigabytes(others)}, "
                    "were not enough"
                )
            fits = fitting(size, now, before, before + self._constant(), _asked(message))
            if not self._optimiser.state:
                # The first step was cut short, somewhere: all that it needs was not seen yet.
                fits = min(fits, size / 2)
        if size == 1:
            return OutOfMemory(f"{told} for single sentences. Clone it with a smaller max_length.")
        told = f"{told} for batches of {size} {self._unit}"
        if fits < 1:
            return OutOfMemory(
                f"{told}, nor for single ones. Clone it with a smaller encoder, or with a frozen one."
            )
        about = f": about {int(fits)} would fit" if self._gauge is not None else ""
        fitted = _rounded(fits)
        return OutOfMemory(f"{told}{about}. Clone it with {self._field} {fitted}.", self._field, fitted)

    def _constant(self) -> int:
        """Bytes that a step adds however small its batch: gradients, and at first Adam's two averages."""
        trained: int = sum(
            weight.numel() * weight.element_size()
            for group in self._optimiser.param_groups
            for weight in group["params"]
            if weight.requires_grad
        )
        return trained if self._optimiser.state else 3 * trained


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the processor or the GPU had no memory left; torch says so in several ways."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error)) is not None


def fitting(batch_size: int, now: Memory, before: int, constant: int, asked: int) -> float:
    """How many sentences, or subwords, a step would have had room for: fewer than `batch_size`, a tenth left
    free.

    `before` bytes were held when the step began, `constant` are needed whatever the batch, `asked` is what
    could not be had. All that the step held at its peak and asked for beyond `before` is taken as what its
    sentences need.
    """
    for_sentences = max(now.peak, now.held) + asked - before
    room = (1 - _SPARE) * now.available - constant
    if for_sentences <= 0:  # nothing is known of what the sentences took
        return batch_size / 2 if room > 0 else 0.0
    return max(0.0, min(batch_size - 1.0, room * batch_size / for_sentences))


def _asked(message: str) -> int:
    """The bytes that torch says it tried to have; 0 where it does not say."""
    found = _ASKED.search(message)
    return 0 if found is None else int(float(found[1]) * _UNITS.get(found[2], 1))


def _rounded(fits: float) -> int:
    """A batch size as one writes it, no larger: powers of two, and three quarters of those from 24 on."""
    power = int(2 ** math.floor(math.log2(fits)))
    larger = power * 3 // 2
    return larger if power >= 16 and larger <= fits else power


def _gigabytes(number: int) -> str:
    return f"{number / 2**30:.3g} GB"
