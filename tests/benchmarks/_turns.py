"""Training loops in processes of their own that take turns, so that all meet the same load of the machine.

A loop runs as it always does, but calls `Turns.wait` before each step, which blocks until its next turn.
"""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from tests.benchmarks._harness import laboratory, processes

TURN = 5
"""Steps of a turn: so few that all meet the same load of the machine."""
_WARM_UP_STEPS = 2
_READY_S = 600.0


@dataclass(frozen=True)
class Block:
    """What a loop did in one turn: wall-clock and processor seconds, words, subwords, and the positions that
    its batches had for subwords, padding included.
    """

    steps: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    words: int = 0
    subwords: int = 0
    positions: int = 0

    def __add__(self, other: Block) -> Block:
        return Block(*map(sum, zip(astuple(self), astuple(other), strict=True)))


class Turns:
    """A loop's side of the connection. Without a connection, the loop warms up for a few steps."""

    def __init__(self, connection: Connection | None) -> None:
        self.warming_up = connection is None
        self._connection = connection
        self._facts: dict[str, Any] = {}
        self._asked = 0
        self._left = _WARM_UP_STEPS if self.warming_up else 0
        self._counts: list[tuple[int | Tensor, int | Tensor, int]] = []
        self._excluded_s = 0.0

    def wait(self) -> bool:
        """Wait for the next turn; whether the loop must stop."""
        if self._connection is None:
            self._left -= 1
            return self._left < 0
        if self._left == 0:
            self._connection.send(self._block() if self._asked else self._facts)
            self._asked = self._left = self._connection.recv()
            self._counts.clear()
            self._excluded_s = 0.0
            self._cpu, self._clock = time.process_time(), time.perf_counter()
        self._left -= 1
        return self._asked == 0

    def count(self, words: int | Tensor, subwords: int | Tensor, positions: int) -> None:
        """Count a batch. Tensors are read at the end of the turn: no step waits for a device."""
        self._counts.append((words, subwords, positions))

    def describe(self, **facts: Any) -> None:
        """Facts about the loop, to be printed."""
        self._facts |= facts

    def exclude(self, seconds: float) -> None:
        """Subtract seconds from this turn."""
        self._excluded_s += seconds

    def _block(self) -> Block:
        if _on_gpu():
            torch.cuda.synchronize()
        seconds, cpu = time.perf_counter() - self._clock, time.process_time() - self._cpu
        sums = (int(sum(column)) for column in zip(*self._counts, strict=True))
        return Block(self._asked, seconds - self._excluded_s, cpu - self._excluded_s, *sums)


Loop = Callable[[Any, Turns], None]
"""A training on a job that runs until `Turns.wait` says stop."""


class Player:
    """A loop in its process, seen from outside. Ends the process with its `with` block."""

    def __init__(self, name: str, loop: Loop, job: Any, *, quick: bool) -> None:
        """Start the loop. Others can be started until `wait_until_ready`."""
        self.name = name
        self.facts: dict[str, Any] = {}
        self._connection, other = processes(quick).Pipe()
        self._process = processes(quick).Process(target=_run, args=(loop, job, other))
        self._process.start()
        other.close()

    def wait_until_ready(self) -> None:
        """Wait until the loop is ready for its first step, and read its facts."""
        if not self._connection.poll(_READY_S):
            raise TimeoutError(f"{self.name} was not ready for its first step after {_READY_S:.0f} s")
        self.facts = self._answer()

    def play(self, steps: int) -> Block:
        """Give the loop a turn of so many steps."""
        self._connection.send(steps)
        block: Block = self._answer()
        return block

    def end(self) -> tuple[int, int | None]:
        """Stop the loop; peak bytes of its process, and on the GPU if there is one."""
        self._connection.send(0)
        peaks: tuple[int, int | None] = self._answer()
        return peaks

    def __enter__(self) -> Player:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()

    def _answer(self) -> Any:
        try:
            return self._connection.recv()
        except EOFError:
            raise RuntimeError(f"{self.name} ended before its turn; its output says why") from None


class Program:
    """A program that answers each line on its standard input with JSON. Ends with its `with` block."""

    def __init__(self, command: Iterable[str]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([*command], stdin=pipe, stdout=pipe, text=True)
        self.facts = self._answer()
        """What it says before the first question."""

    def ask(self, question: object = "") -> dict[str, Any]:
        """Its answer. Raises RuntimeError where it has ended."""
        assert self._process.stdin is not None
        print(question, file=self._process.stdin, flush=True)
        return self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith('{"'):  # libraries log there, too
                answer: dict[str, Any] = json.loads(line)
                return answer
        raise RuntimeError(f"a program ended with exit code {self._process.wait()}; its output says why")


def _run(loop: Loop, job: Any, connection: Connection) -> None:
    """In the process: warm up, then take turns."""
    with laboratory():  # encoded text is cached there
        loop(job, Turns(None))
        warm_up_peak = _peak_bytes()  # on the longest sentences; each training of ours counts its peak anew
        gc.collect()
        loop(job, Turns(connection))
    connection.send(
        (max(warm_up_peak, _peak_bytes()), torch.cuda.max_memory_allocated() if _on_gpu() else None)
    )


def _on_gpu() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_initialized()


def _peak_bytes() -> int:
    status = Path("/proc/self/status")
    if status.is_file():  # getrusage also counts the process that started this one
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS
