"""Milliseconds by the wall clock, with nothing left to do on the device."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

__all__ = ["Effort", "milliseconds", "once"]


@dataclass(frozen=True)
class Effort:
    """How often a thing is repeated: until `seconds` are over, but no fewer than `least` times."""

    least: int
    seconds: float


def once(action: Callable[[], object], device: torch.device) -> float:
    """Milliseconds of one call."""
    _wait(device)
    began = time.perf_counter()
    action()
    _wait(device)
    return 1000 * (time.perf_counter() - began)


def milliseconds(action: Callable[[], object], device: torch.device, effort: Effort) -> list[float]:
    """Of each call, after one that is not counted."""
    once(action, device)
    ended = time.perf_counter() + effort.seconds
    times: list[float] = []
    while len(times) < effort.least or time.perf_counter() < ended:
        times.append(once(action, device))
    return times


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
