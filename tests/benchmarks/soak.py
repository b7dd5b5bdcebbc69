"""Hundreds of tiny runs, really trained, while workers are killed at random: is anything lost?

`python -m tests.benchmarks.soak --minutes 10` shares the time between SQLite and PostgreSQL (if installed).
Each description is first trained once, undisturbed. Every later run of it must have the same rows with the
same values, to the last bit, whatever happened to its workers. The last line is JSON: runs, faults, metric
rows and scores expected and found, and runs that did not succeed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import torch
from sqlalchemy import create_engine

from core.config import RunConfig
from core.errors import MRNLabError
from core.store import Run, RunState, Store
from jobs.engines.local import LocalEngine
from jobs.queue import control
from jobs.worker.liveness import reap
from tests.benchmarks._harness import arguments, laboratory, print_json
from tests.postgres import is_installed, started_server
from tests.small_training import prepare, train
from tests.supervised import owner_of, supervised
from tests.trained import toy_config, train_runs

_SLOTS = 2
_POLL_S = 0.1
_MAINTENANCE_S = 1.0
_FAULT_S = (1.0, 8.0)
_HOLD_S = 3.0
_RETRIES = 1000
_PATIENCE_S = 300.0
_BASE = {"batch_size": 4, "epochs": 12, "dropout": 0.1, "paradigm": "mrn"}
_RUNS: tuple[dict[str, object], ...] = (
    {"seed": 1},
    {"seed": 2, "prior": "map", "update_every": 5},
    {"seed": 3, "paradigm": "mtl"},
    {"seed": 4, "encoder_training": "frozen", "lr_encoder": None, "epochs": 40},
    {"seed": 5, "select_by": "loss"},
    {"seed": 6, "paradigm": "stl", "tasks": "ner"},
)

Rows = dict[tuple[str, str, str, int], str]


Fault = Callable[[Store, Run], None]


def stop(store: Store, run: Run) -> None:
    """A stop request; `maintain` resumes the run."""
    control.stop(store, [run.id])


def kill_worker(store: Store, run: Run) -> None:
    os.kill(owner_of(store, run.id).pid, signal.SIGKILL)


def terminate_worker(store: Store, run: Run) -> None:
    os.kill(owner_of(store, run.id).pid, signal.SIGTERM)


def kill_supervisor(store: Store, run: Run) -> None:
    parent = psutil.Process(owner_of(store, run.id).pid).parent()
    if parent is not None and parent.pid not in (1, os.getpid()):
        parent.kill()


def kill_both(store: Store, run: Run) -> None:
    kill_supervisor(store, run)
    kill_worker(store, run)


def freeze_worker(store: Store, run: Run) -> None:
    """As on a laptop whose lid is closed."""
    worker = psutil.Process(owner_of(store, run.id).pid)
    worker.suspend()
    time.sleep(_HOLD_S)
    worker.resume()


def lock_store(store: Store, _run: Run) -> None:
    """Another program locks the store."""
    sqlite = store.url.startswith("sqlite")
    lock = "BEGIN EXCLUSIVE" if sqlite else "BEGIN; LOCK TABLE runs, metrics IN EXCLUSIVE MODE"
    engine = create_engine(store.url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(lock)
        time.sleep(_HOLD_S)
        connection.exec_driver_sql("ROLLBACK")
    engine.dispose()


FAULTS = (stop, kill_worker, terminate_worker, kill_supervisor, kill_both, freeze_worker, lock_store)


def recorded(store: Store, run_id: int) -> Rows:
    """All metrics and scores of the run, exactly."""
    rows: Rows = {}
    for key in store.metric_keys([run_id]):
        for series in store.metrics([run_id], key):
            for step, value in zip(series.step.tolist(), series.value.tolist(), strict=True):
                rows[key.task, key.split, key.name, step] = float(value).hex()
    for score in store.scores([run_id]):
        values = dataclasses.asdict(score) | {"run_id": 0}
        rows[score.task, score.split, "scores", score.epoch] = json.dumps(values, sort_keys=True)
    return rows


def maintain(store: Store, engine: LocalEngine) -> None:
    """What an open page does: find lost runs and start workers; also resume what was stopped."""
    reap(store)
    if stopped := store.runs(states={RunState.CANCELLED, RunState.LOST}, with_facts=False):
        control.resume(store, [run.id for run in stopped], engine)
    engine.ensure_workers(store)


def soak(
    store: Store,
    engine: LocalEngine,
    configs: Sequence[RunConfig],
    seconds: float,
    faults: Sequence[Fault],
    **options: Any,
) -> dict[str, int]:
    """Train runs for that long, with at least one fault; count runs, faults and rows.

    The undisturbed worker has these options.
    """
    torch.set_num_threads(1)  # as in the workers
    reference = {
        config.to_json(): recorded(store, run_id)
        for config, run_id in zip(configs, train_runs(store, configs, **options), strict=True)
    }
    draw = random.Random(1)
    done: Counter[str] = Counter()
    ids: list[int] = []
    began = time.monotonic()
    deadline, next_fault, next_maintenance = began + seconds, began, began
    succeeded = False
    while not succeeded and time.monotonic() < deadline + _PATIENCE_S:
        if time.monotonic() >= next_maintenance:
            maintain(store, engine)
            next_maintenance = time.monotonic() + _MAINTENANCE_S
        if time.monotonic() < deadline or not done:
            if store.counts()[RunState.QUEUED] < _SLOTS and (not ids or seconds):
                ids += store.add_runs(configs, "soak", retries=_RETRIES)
            running = store.runs(states={RunState.RUNNING})
            if running and time.monotonic() >= next_fault:
                fault = draw.choice(faults)
                # The run may have ended since: then nothing was done.
                with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess, MRNLabError):
                    fault(store, draw.choice(running))
                    done[fault.__name__] += 1
                next_fault = time.monotonic() + draw.uniform(*_FAULT_S)
        else:
            runs = store.runs(ids, with_facts=False)
            succeeded = all(run.state is RunState.SUCCEEDED for run in runs)
        time.sleep(_POLL_S)
    counts = Counter(faults=done.total())
    for run in store.runs(ids, with_facts=False):
        expected, found = reference[run.config.to_json()], recorded(store, run.id)
        counts["runs" if run.state is RunState.SUCCEEDED else "lost_runs"] += 1
        counts["rows_expected"] += len(expected)
        counts["rows_found"] += len(found)
        counts["rows_different"] += len(set(expected.items()) ^ set(found.items()))
    print_json({"database": store.url.partition(":")[0], **counts, "faults": done})
    return counts


@contextlib.contextmanager
def databases(folder: Path, *, quick: bool) -> Iterator[list[str]]:
    """The URLs of empty stores: SQLite, and PostgreSQL if it is installed."""
    urls = [f"sqlite:///{folder / 'soak.db'}"]
    with contextlib.ExitStack() as stack:
        if not quick and is_installed():
            server = stack.enter_context(started_server())
            urls.append(stack.enter_context(server.database()))
        yield urls


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="in all, shared among the databases")
    args = parser.parse_args()
    settings = {"MRNLAB_CHECKPOINT_S": "0.3", "MRNLAB_HANG_S": "60", "OMP_NUM_THREADS": "1"}
    settings["MRNLAB_SLOTS"] = "1" if args.quick else str(_SLOTS)
    total: Counter[str] = Counter()
    with laboratory(None, **settings) as home, databases(home, quick=args.quick) as urls:
        configs = [toy_config(home, **(_BASE | values)) for values in _RUNS[: 1 if args.quick else None]]
        seconds = 0.0 if args.quick else 60 * args.minutes / len(urls)
        worker, options = "jobs.worker.loop", {}
        if args.quick:
            worker, options = "tests.small_training", {"prepare": prepare, "train": train}
        for url in urls:
            with laboratory(home, MRNLAB_DB=url), supervised(worker) as (store, engine):
                faults = FAULTS[: 1 if args.quick else None]
                total.update(soak(store, engine, configs, seconds, faults, **options))
    names = ("runs", "faults", "rows_expected", "rows_found", "lost_runs")
    print_json({name: total[name] for name in names})
    if total["lost_runs"] or total["rows_different"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
