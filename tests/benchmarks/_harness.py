"""What the benchmarks share: arguments, a laboratory, clocks, turns, medians, and the last line."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np

__all__ = ["alternate", "arguments", "laboratory", "milliseconds", "processes", "ratio", "spread", "tell"]

Given, Measured = TypeVar("Given"), TypeVar("Measured")


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """A parser that shows the module's text and knows `--quick`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: whether it runs, not how fast")
    return parser


def tell(figures: Mapping[str, Any]) -> None:
    """Prints figures as one line of JSON. The last such line is the benchmark's contract."""
    print(json.dumps(figures), flush=True)


@contextmanager
def laboratory(folder: str | None = None, **variables: str) -> Iterator[Path]:
    """An MRNLAB_HOME for the block, in that folder or a temporary one; MRNLAB_DB does not count in it."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        home = folder or temporary
        with patch.dict(os.environ, {"MRNLAB_HOME": home, **variables}):
            os.environ.pop("MRNLAB_DB", None)
            yield Path(home)


def processes(quick: bool) -> Any:
    """How to start processes: anew, so that each pays for its own imports; `quick`: as copies of this one."""
    return multiprocessing.get_context("fork" if quick else "spawn")


def milliseconds(
    action: Callable[[], object], times: int = 1, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Of each of so many calls."""
    taken = []
    for _ in range(times):
        began = clock()
        action()
        taken.append(1000 * (clock() - began))
    return taken


def alternate(
    ways: Mapping[str, Callable[[Given], Measured]], rounds: Iterable[Given]
) -> dict[str, list[Measured]]:
    """What each way gives in each round. Which is first changes: no way always follows the same other."""
    results: dict[str, list[Measured]] = {name: [] for name in ways}
    names = list(ways)
    for number, given in enumerate(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            results[name].append(ways[name](given))
    return results


def spread(values: Sequence[float], digits: int = 3) -> dict[str, Any]:
    """Median and quartiles."""
    lower, middle, upper = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return {"median": round(middle, digits), "quartiles": [round(lower, digits), round(upper, digits)]}


def ratio(ours: Sequence[float], theirs: Sequence[float], digits: int = 3) -> dict[str, Any]:
    """Median and quartiles of ours over theirs, pair by pair."""
    return spread(np.divide(ours, theirs).tolist(), digits)
