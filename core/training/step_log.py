"""Losses of the last steps, read from the device a few steps at a time instead of at every step."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from core.errors import NotFinite
from core.records import TOTAL, Sink, StepMetrics

_TELL_S = 1.0
"""Slow steps are told after this time, however few: somebody may watch them."""


class StepLog:
    """Collects step metrics on the device; `flush` reads them at once, checks them and tells the sink.

    Reading a loss makes the processor wait for the device, so it is done once every `every` steps, or every
    second where those take longer; the first step is told at once. `before`: the seconds that a training
    which is resumed has taken so far.
    """

    def __init__(
        self,
        sink: Sink,
        tasks: Sequence[str],
        every: int = 10,
        before: float = 0.0,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sink = sink
        self._tasks = tuple(tasks)
        self._every = every
        self._pending: list[tuple[int, float, float, float, Tensor]] = []
        self._clock = clock
        self._began = clock() - before
        self._told_at = -math.inf
        self.last_penalty = 0.0
        self.last_loss = 0.0

    @property
    def seconds(self) -> float:
        """Seconds since training began."""
        return self._clock() - self._began

    def add(
        self,
        step: int,
        epoch: float,
        rate: float,
        losses: Tensor,
        counts: Tensor,
        penalty: Tensor,
        total: Tensor,
    ) -> None:
        """One step: losses and word counts (T,) of the tasks, the penalty and the total loss (scalars)."""
        values = torch.cat(
            [losses.detach(), counts.to(losses.dtype), penalty.detach()[None], total.detach()[None]]
        )
        self._pending.append((step, epoch, self.seconds, rate, values))
        if len(self._pending) >= self._every or self.seconds - self._told_at >= _TELL_S:
            self.flush()

    def flush(self) -> None:
        """Tell the sink what is pending.

        Raises NotFinite with the step and the task where a loss is not a number.
        """
        if not self._pending:
            return
        rows = torch.stack([entry[-1] for entry in self._pending]).double().cpu().tolist()
        pending, self._pending = self._pending, []
        self._told_at = self.seconds
        for (step, epoch, seconds, rate, _), row in zip(pending, rows, strict=True):
            count = len(self._tasks)
            losses, words, (penalty, total) = row[:count], row[count : 2 * count], row[2 * count :]
            values = {
                (task, "loss"): loss for task, loss, n in zip(self._tasks, losses, words, strict=True) if n
            }
            values |= {(TOTAL, "loss"): total, (TOTAL, "penalty"): penalty, (TOTAL, "lr"): rate}
            self._sink(StepMetrics(step, epoch, seconds, values))
            self._check(step, values)
            self.last_penalty, self.last_loss = penalty, total

    @staticmethod
    def _check(step: int, values: dict[tuple[str, str], float]) -> None:
        for (task, name), value in values.items():
            if not math.isfinite(value):
                whose = f"The loss of task {task}" if task else f"The {'total ' * (name == 'loss')}{name}"
                raise NotFinite(
                    f"{whose} is not a number at step {step} ({value}). Lower the learning rates, or use "
                    "fp32 precision if this ran in bf16."
                )
