"""Losses of the last steps, read from the device a few steps at a time instead of at every step."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from core.errors import NotFinite
from core.events import Sink
from core.metrics import LEARNING_RATE, LOSS, PENALTY, TOTAL, StepMetrics


class StepLosses(NamedTuple):
    """The losses of a step: those of tasks and the words they are over (T,), penalty and total (scalars)."""

    tasks: Tensor
    words: Tensor
    penalty: Tensor
    total: Tensor


_SLOW_S = 1.0
"""Slow steps are sent after this time, however few: somebody may watch them."""


class StepLog:
    """Collects step metrics on the device; `flush` reads them at once, sends them to the sink, checks them.

    Reading a loss makes the CPU wait for the device, so it is done once every `every` steps, or every second
    where those take longer; the first step is sent at once. `before`: the seconds that a resumed training
    has taken so far.
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
        self._sink, self._tasks, self._every, self._clock = sink, tuple(tasks), every, clock
        self._pending: list[tuple[int, float, float, float, Tensor]] = []
        self._began = clock() - before
        self._flushed_at = -math.inf
        self.last_penalty = 0.0
        self.last_loss = 0.0

    @property
    def seconds(self) -> float:
        return self._clock() - self._began

    def add(self, step: int, epoch: float, lr: float, losses: StepLosses) -> None:
        """Add one step, with the result of `train_step`."""
        scalars = torch.stack([losses.penalty.detach(), losses.total.detach()])
        values = torch.cat([losses.tasks.detach(), losses.words.to(losses.tasks.dtype), scalars])
        self._pending.append((step, epoch, self.seconds, lr, values))
        if len(self._pending) >= self._every or self.seconds - self._flushed_at >= _SLOW_S:
            self.flush()

    def flush(self) -> None:
        """Send the pending steps. Raises NotFinite, naming step and task, for a loss that is not finite."""
        if not self._pending:
            return
        rows = torch.stack([values for *_, values in self._pending]).double().cpu().tolist()
        pending, self._pending = self._pending, []
        self._flushed_at = self.seconds
        count = len(self._tasks)
        for (step, epoch, seconds, lr, _), row in zip(pending, rows, strict=True):
            losses, words, (penalty, total) = row[:count], row[count : 2 * count], row[2 * count :]
            values = {
                (task, LOSS.name): loss for task, loss, n in zip(self._tasks, losses, words, strict=True) if n
            }
            whole = {LOSS: total, PENALTY: penalty, LEARNING_RATE: lr}
            values |= {(TOTAL, metric.name): value for metric, value in whole.items()}
            self._sink(StepMetrics(step, epoch, seconds, values))
            for (task, name), value in values.items():
                if not math.isfinite(value):
                    subject = f"loss of task {task}" if task else f"{'total ' * (name == LOSS.name)}{name}"
                    raise NotFinite(
                        f"The {subject} is not a number at step {step} ({value}). Lower the learning rates, "
                        "or use fp32 precision if this ran in bf16.",
                        step,
                        task,
                        value,
                    )
            self.last_penalty, self.last_loss = penalty, total
