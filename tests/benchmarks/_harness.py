"""What the benchmarks share: arguments, a laboratory, clocks, alternation, medians, and the last line."""

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

CONLL2003 = "../shared/data/conll2003"

Input = TypeVar("Input")
Result = TypeVar("Result")


def arguments(doc: str | None, *, data: str = "", device: bool = False) -> argparse.ArgumentParser:
    """A parser that shows the module's text and knows `--quick`; with this default `--data`; `--device`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: whether it runs, not how fast")
    if data:
        parser.add_argument(
            "--data", default=data, help="a corpus: name, or folder with CoNLL-2003's columns"
        )
    if device:
        parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    return parser


def minilm() -> str:
    """MiniLM's name, or the folder that BENCHMARK_MINILM names, where its package is not installed."""
    return os.environ.get("BENCHMARK_MINILM", "minilm")


def corpus_fields(data: str) -> dict[str, Any]:
    """The fields of a run on the three tasks of that corpus."""
    columns = {"columns": "tokens,pos,chunk,ner"} if Path(data).is_dir() else {}
    return {"corpus": data, "tasks": "pos,chunk,ner", **columns}


def print_json(figures: Mapping[str, Any]) -> None:
    """Print figures as one line of JSON. The last such line is the benchmark's contract."""
    print(json.dumps(figures), flush=True)


@contextmanager
def laboratory(folder: Path | None = None, **variables: str) -> Iterator[Path]:
    """Set MRNLAB_HOME to that folder, or a temporary one, and these variables; unset MRNLAB_DB otherwise."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        home = folder or Path(temporary)
        with patch.dict(os.environ):
            os.environ.pop("MRNLAB_DB", None)
            os.environ.update(MRNLAB_HOME=str(home), **variables)
            yield home


def processes(quick: bool) -> Any:
    """The context for new processes: `spawn`, so that each pays for its imports; `fork` if `quick` and there
    is no GPU, which a forked process could not use.
    """
    import torch

    forks = quick and not torch.cuda.is_available()
    return multiprocessing.get_context("fork" if forks else "spawn")


def milliseconds(
    action: Callable[[], object], times: int = 1, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """The duration of each call."""
    durations = []
    for _ in range(times):
        began = clock()
        action()
        durations.append(1000 * (clock() - began))
    return durations


def alternate(
    ways: Mapping[str, Callable[[Input], Result]], rounds: Iterable[Input]
) -> dict[str, list[Result]]:
    """The result of each way in each round. The first way changes from round to round."""
    results: dict[str, list[Result]] = {name: [] for name in ways}
    names = list(ways)
    for number, value in enumerate(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            results[name].append(ways[name](value))
    return results


def spread(values: Sequence[float], digits: int = 3) -> dict[str, Any]:
    """Median and quartiles."""
    lower, middle, upper = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return {"median": round(middle, digits), "quartiles": [round(lower, digits), round(upper, digits)]}


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
    """Median and quartiles of ours over theirs, pair by pair."""
    return spread(np.divide(ours, theirs).tolist())
