"""How fast the store takes metrics from eight processes, and lists 10,000 runs.

`python -m tests.benchmarks.store_ingest` (`--db postgresql://...` names an empty database in place of a new
SQLite file) prints one line of JSON. The goals are 50,000 rows/s without a lock error, and 10,000 runs listed
and grouped in under 50 ms; a ratio of 1 or more meets its goal.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from typing import Any

from sqlalchemy import delete, func, select

from core.errors import StoreError
from core.store import MetricKey, Store
from core.store.schema import metrics, runs
from tests.benchmarks._harness import arguments, laboratory, milliseconds, print_json, processes
from tests.making import claimed, config, epoch_metrics, step_metrics

STEPS_PER_BATCH, ROWS_PER_STEP = 100, 4
GOAL_ROWS_PER_S, GOAL_LISTING_MS = 50_000, 50


def write(url: str, run_id: int, seconds: float, start: Any, results: Any) -> None:
    """In a process: write batches for that long; put rows, lock errors, slowest batch, start and end."""
    with contextlib.closing(Store.open(url)) as store:
        start.wait()
        began = time.time()
        step = errors = 0
        slowest_ms = 0.0
        while time.time() - began < seconds:
            batch = [step_metrics(step + number, loss=0.5) for number in range(STEPS_PER_BATCH)]
            try:
                (taken_ms,) = milliseconds(lambda: store.add_metrics(run_id, batch))  # noqa: B023
            except StoreError:
                errors += 1
                continue
            slowest_ms = max(slowest_ms, taken_ms)
            step += STEPS_PER_BATCH
        results.put((step * ROWS_PER_STEP, errors, slowest_ms, began, time.time()))


def ingest(url: str, seconds: float, writers: int, *, quick: bool) -> dict[str, Any]:
    """Figures of so many writers on one store."""
    with contextlib.closing(Store.open(url)) as store:
        ids = [claimed(store) for _ in range(writers)]
        url = store.url
    context = processes(quick)
    start, results = context.Barrier(writers), context.Queue()
    started = [context.Process(target=write, args=(url, id_, seconds, start, results)) for id_ in ids]
    for process in started:
        process.start()
    reports = [results.get(timeout=seconds + 120) for _ in started]
    for process in started:
        process.join()
    rows, errors, slowest_ms, began, ended = zip(*reports, strict=True)
    with contextlib.closing(Store.open(url)) as store, store.transaction() as connection:
        stored = connection.execute(select(func.count()).select_from(metrics)).scalar_one()
        assert stored == sum(rows), f"{stored} rows are stored, {sum(rows)} were acknowledged"
        connection.execute(delete(runs))
    per_second = sum(rows) / (max(ended) - min(began))
    return {
        "writers": writers,
        "rows_per_s": round(per_second),
        "lock_errors": sum(errors),
        "slowest_batch_ms": round(max(slowest_ms)),
        "rows_ratio": round(per_second / GOAL_ROWS_PER_S, 2),
    }


def listing(url: str, number: int) -> dict[str, Any]:
    """Milliseconds to list and group so many runs, ten seeds each, and to read their dev scores."""
    configs = [config(seed=run % 10, **{"lambda": 0.001 + run // 10 / 1000}) for run in range(number)]
    with contextlib.closing(Store.open(url)) as store:
        ids = store.add_runs(configs)
        with store.transaction():
            for run_id in ids:
                epochs = [epoch_metrics(10 * epoch, epoch, epoch / 10) for epoch in (1, 2, 3)]
                store.add_metrics(run_id, epochs)

    def list_runs() -> None:
        groups = Counter(run.configuration_id for run in store.runs())
        assert len(groups) == number / 10

    with contextlib.closing(Store.open(url)) as store:  # a new one, with empty caches
        first_ms, *again_ms = milliseconds(list_runs, 6)
        listing_ms = sorted(again_ms)[2]
        (scores_ms,) = milliseconds(lambda: store.best_metrics(ids, MetricKey("", "dev", "score")))
        with store.transaction() as connection:
            connection.execute(delete(runs))
    return {
        "runs": number,
        "first_listing_ms": round(first_ms, 1),
        "listing_ms": round(listing_ms, 1),
        "best_scores_ms": round(scores_ms, 1),
        "listing_ratio": round(GOAL_LISTING_MS / listing_ms, 2),
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--db", help="the URL of an empty database; its runs are deleted again")
    args = parser.parse_args()
    writers, seconds, number = (2, 0.2, 100) if args.quick else (8, 5.0, 10_000)
    with laboratory() as home:
        urls = [args.db or f"sqlite:///{home / name}" for name in ("ingest.db", "listing.db")]
        ingested = ingest(urls[0], seconds, writers, quick=args.quick)
        print_json({"ingest": ingested, "listing": listing(urls[1], number)})


if __name__ == "__main__":
    main()
