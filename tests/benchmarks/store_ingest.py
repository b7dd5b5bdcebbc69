"""How fast the store takes metrics from eight processes, and lists 10,000 runs.

`python -m tests.benchmarks.store_ingest` (`--db postgresql://...` names an empty database in place of a new
SQLite file) prints JSON: numbers of this run, and their ratios to the goals
(50,000 rows/s with no lock error, 10,000 runs listed and grouped in under 50 ms; 1 or more
meets it).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from collections import Counter
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from sqlalchemy import delete, func, select

from core.errors import StoreError
from core.store import MetricKey, Store
from core.store.tables import metrics, runs
from tests.making import claimed, config, epoch_metrics, step_metrics

WRITERS = 8
STEPS_PER_BATCH = 100
ROWS_PER_STEP = 4
ROWS_ASKED = 50_000
LISTED = 10_000
LISTING_ASKED_MS = 50

Answers = Any  # multiprocessing's queue has no public type that takes a parameter at run time


def write(url: str, run_id: int, seconds: float, start: Barrier, answers: Answers) -> None:
    """Writes batches for that long; tells rows, lock errors, the slowest batch, when it began and ended."""
    store = Store.open(url)
    start.wait()
    began = time.time()
    step = errors = 0
    slowest = 0.0
    while time.time() - began < seconds:
        batch = [step_metrics(step + one, loss=0.5) for one in range(STEPS_PER_BATCH)]
        tried = time.perf_counter()
        try:
            store.add_metrics(run_id, batch)
        except StoreError:
            errors += 1
            continue
        slowest = max(slowest, time.perf_counter() - tried)
        step += STEPS_PER_BATCH
    answers.put((step * ROWS_PER_STEP, errors, slowest, began, time.time()))
    store.close()


def ingest(url: str, seconds: float) -> dict[str, Any]:
    """Eight writers on one store."""
    store = Store.open(url)
    ids = [claimed(store) for _ in range(WRITERS)]
    processes = multiprocessing.get_context("spawn")
    start, answers = processes.Barrier(WRITERS), processes.Queue()
    writers = [
        processes.Process(target=write, args=(store.url, run_id, seconds, start, answers)) for run_id in ids
    ]
    for writer in writers:
        writer.start()
    told = [answers.get(timeout=seconds + 120) for _ in writers]
    for writer in writers:
        writer.join()
    rows, errors, slowest, began, ended = zip(*told, strict=True)
    with store.transaction(write=False) as connection:
        found = connection.execute(select(func.count()).select_from(metrics)).scalar_one()
    store.close()
    assert found == sum(rows), f"{found} rows are there, {sum(rows)} were acknowledged"
    per_second = sum(rows) / (max(ended) - min(began))
    return {
        "writers": WRITERS,
        "rows": sum(rows),
        "rows_per_s": round(per_second),
        "lock_errors": sum(errors),
        "slowest_batch_s": round(max(slowest), 3),
        "rows_of_slowest_and_fastest_writer": [min(rows), max(rows)],
        "rows_ratio": round(per_second / ROWS_ASKED, 2),
    }


def listing(url: str) -> dict[str, Any]:
    """10,000 runs of 1,000 configurations: listed, grouped by configuration, with their dev scores."""
    store = Store.open(url)
    began = time.perf_counter()
    configs = [
        config(seed=number % 10, **{"lambda": 0.001 + number // 10 / 1000}) for number in range(LISTED)
    ]
    built = time.perf_counter()
    ids = store.add_runs(configs)
    queued = time.perf_counter()
    with store.transaction():
        for run_id in ids:
            store.add_metrics(run_id, [epoch_metrics(10 * epoch, epoch, epoch / 10) for epoch in (1, 2, 3)])
    store.close()
    store = Store.open(url)

    def listed() -> float:
        """Milliseconds of listing and grouping."""
        tried = time.perf_counter()
        groups = Counter(run.configuration_id for run in store.runs())
        took = 1000 * (time.perf_counter() - tried)
        assert len(groups) == LISTED / 10
        return took

    first = listed()
    again = sorted(listed() for _ in range(5))[2]
    changed = store.runs(limit=20)
    with store.transaction():
        for run in changed:
            store.request_stop(run.id)
    after_changes = listed()
    scored = time.perf_counter()
    assert len(store.best_metrics(ids, MetricKey("", "dev", "score"))) == LISTED
    scores_ms = 1000 * (time.perf_counter() - scored)
    store.close()
    return {
        "runs": LISTED,
        "describe_s": round(built - began, 2),
        "queue_s": round(queued - built, 2),
        "first_listing_ms": round(first, 1),
        "listing_ms": round(again, 1),
        "listing_after_20_changes_ms": round(after_changes, 1),
        "best_scores_ms": round(scores_ms, 1),
        "listing_ratio": round(LISTING_ASKED_MS / again, 2),
    }


def emptied(url: str) -> None:
    """Takes out of a database what was measured with."""
    store = Store.open(url)
    with store.transaction() as connection:
        connection.execute(delete(runs))
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long the writers write")
    parser.add_argument("--db", help="the URL of an empty database; its runs are deleted again")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        urls = [asked.db or f"sqlite:///{Path(folder) / name}" for name in ("ingest.db", "listing.db")]
        found = {"ingest": ingest(urls[0], asked.seconds)}
        if asked.db:
            emptied(asked.db)
        found["listing"] = listing(urls[1])
        if asked.db:
            emptied(asked.db)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
