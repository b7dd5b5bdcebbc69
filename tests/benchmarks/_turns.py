"""Loops in processes of their own that take turns, so that what else a machine does falls on all of them.

A loop runs as it always does, but asks `between()` before each of its steps, and waits there until it is its
turn again. Its peak memory is its process's own.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.benchmarks._harness import laboratory, processes

__all__ = ["Block", "Loop", "Memory", "Player", "Turns"]

_WARM_STEPS = 2
_READY_S = 600.0


@dataclass(frozen=True)
class Block:
    """What a loop did in one turn: seconds by the clock and of the processor, its words, its subwords and
    the places that its batches had for them.
    """

    steps: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    words: int = 0
    subwords: int = 0
    places: int = 0

    def __add__(self, other: Block) -> Block:
        return Block(*(one + two for one, two in zip(vars(self).values(), vars(other).values(), strict=True)))


@dataclass(frozen=True)
class Memory:
    """Peak bytes: of the process, and on the GPU where there is one."""

    peak: int
    cuda: int | None


class Turns:
    """What a loop asks before each step, whether to stop, and tells of each batch.

    Without a connection it is the short training before the one that counts, in which libraries and memory
    get ready (`warming`). With one it waits for turns at its other end, and reports each.
    """

    def __init__(self, connection: Connection | None) -> None:
        self.warming = connection is None
        self._connection = connection
        self._facts: dict[str, Any] = {}
        self._asked = 0
        self._left = _WARM_STEPS if self.warming else 0
        self._seen: list[tuple[int | Tensor, int | Tensor, int]] = []
        self._discount = 0.0

    def between(self) -> bool:
        """Whether the loop is to stop; returns when it is its turn."""
        if self._connection is None:
            self._left -= 1
            return self._left < 0
        if self._left == 0:
            self._connection.send(self._block() if self._asked else self._facts)
            self._asked = self._left = self._connection.recv()
            self._seen.clear()
            self._discount = 0.0
            self._cpu, self._clock = time.process_time(), time.perf_counter()
        self._left -= 1
        return self._asked == 0

    def saw(self, words: int | Tensor, subwords: int | Tensor, places: int) -> None:
        """Of the batch that is being trained on. Tensors are read when the turn is over."""
        self._seen.append((words, subwords, places))

    def tell(self, **facts: Any) -> None:
        """What is worth printing of the loop, before its first step."""
        self._facts |= facts

    def discount(self, seconds: float) -> None:
        """Leaves out time of this turn that is not the loop's, of the clock and of the processor."""
        self._discount += seconds

    def _block(self) -> Block:
        if _on_gpu():
            torch.cuda.synchronize()
        seconds, cpu = time.perf_counter() - self._clock, time.process_time() - self._cpu
        words, subwords, places = (int(sum(column)) for column in zip(*self._seen, strict=True))
        return Block(self._asked, seconds - self._discount, cpu - self._discount, words, subwords, places)


Loop = Callable[[Any, Turns], None]
"""A training on a job, to be run from its beginning until `between` says stop."""


class Player:
    """A loop in a process of its own, seen from outside."""

    def __init__(self, name: str, loop: Loop, job: Any, *, quick: bool) -> None:
        """Starts it, and waits until it is ready for its first step."""
        self.name = name
        self._connection, other = processes(quick).Pipe()
        self._process = processes(quick).Process(target=_run, args=(loop, job, other))
        self._process.start()
        other.close()
        if not self._connection.poll(_READY_S):
            raise TimeoutError(f"{name} was not ready for its first step after {_READY_S:.0f} s")
        self.facts: dict[str, Any] = self._answer()

    def play(self, steps: int) -> Block:
        """One turn."""
        self._connection.send(steps)
        block: Block = self._answer()
        return block

    def end(self) -> Memory:
        """Stops the loop."""
        self._connection.send(0)
        memory: Memory = self._answer()
        self._process.join()
        return memory

    def close(self) -> None:
        """Ends the process, whatever it does."""
        self._process.kill()
        self._process.join()

    def _answer(self) -> Any:
        try:
            return self._connection.recv()
        except EOFError:
            raise RuntimeError(f"{self.name} ended before its turn; what it printed says why") from None


def _run(loop: Loop, job: Any, connection: Connection) -> None:
    """In the process: a short training that is not counted, then the one that takes turns."""
    with laboratory():  # encoded text is cached there
        loop(job, Turns(None))
        gc.collect()
        loop(job, Turns(connection))
    connection.send(Memory(_peak_memory(), torch.cuda.max_memory_allocated() if _on_gpu() else None))


def _on_gpu() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_initialized()


def _peak_memory() -> int:
    """Most bytes that this process has had in memory so far."""
    status = Path("/proc/self/status")
    if status.is_file():  # the other figure counts the process that started this one, too
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
