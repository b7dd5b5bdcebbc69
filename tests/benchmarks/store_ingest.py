"""How fast the store takes metrics from eight processes, and lists 10,000 runs.

`python -m tests.benchmarks.store_ingest` (`--db postgresql://...` names an empty database in place of a new
SQLite file) prints JSON in one line: numbers of this run, and their ratios to the goals (50,000 rows/s with
no lock error, 10,000 runs listed and grouped in under 50 ms; 1 or more meets it).
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
from tests.benchmarks._harness import arguments, laboratory, milliseconds, processes, tell
from tests.making import claimed, config, epoch_metrics, step_metrics

STEPS_PER_BATCH, ROWS_PER_STEP = 100, 4
ROWS_ASKED, LISTING_ASKED_MS = 50_000, 50


def write(url: str, run_id: int, seconds: float, start: Any, results: Any) -> None:
    """Writes batches for that long; gives rows, lock errors, the slowest batch, when it began and ended."""
    with contextlib.closing(Store.open(url)) as store:
        start.wait()
        began = time.time()
        step = errors = 0
        slowest = 0.0
        while time.time() - began < seconds:
            batch = [step_metrics(step + number, loss=0.5) for number in range(STEPS_PER_BATCH)]
            tried = time.perf_counter()
            try:
                store.add_metrics(run_id, batch)
            except StoreError:
                errors += 1
                continue
            slowest = max(slowest, time.perf_counter() - tried)
            step += STEPS_PER_BATCH
        results.put((step * ROWS_PER_STEP, errors, slowest, began, time.time()))


def ingest(url: str, seconds: float, number: int, *, quick: bool) -> dict[str, Any]:
    """So many writers on one store."""
    with contextlib.closing(Store.open(url)) as store:
        ids = [claimed(store) for _ in range(number)]
        url = store.url
    context = processes(quick)
    start, results = context.Barrier(number), context.Queue()
    writers = [context.Process(target=write, args=(url, id_, seconds, start, results)) for id_ in ids]
    for writer in writers:
        writer.start()
    reports = [results.get(timeout=seconds + 120) for _ in writers]
    for writer in writers:
        writer.join()
    rows, errors, slowest, began, ended = zip(*reports, strict=True)
    with contextlib.closing(Store.open(url)) as store, store.transaction(write=False) as connection:
        stored = connection.execute(select(func.count()).select_from(metrics)).scalar_one()
    assert stored == sum(rows), f"{stored} rows are there, {sum(rows)} were acknowledged"
    per_second = sum(rows) / (max(ended) - min(began))
    return {
        "writers": number,
        "rows": sum(rows),
        "rows_per_s": round(per_second),
        "lock_errors": sum(errors),
        "slowest_batch_s": round(max(slowest), 3),
        "rows_of_slowest_and_fastest_writer": [min(rows), max(rows)],
        "rows_ratio": round(per_second / ROWS_ASKED, 2),
    }


def listing(url: str, number: int) -> dict[str, Any]:
    """Runs of ten seeds a configuration: listed, grouped by configuration, with their dev scores."""
    began = time.perf_counter()
    configs = [config(seed=one % 10, **{"lambda": 0.001 + one // 10 / 1000}) for one in range(number)]
    described = time.perf_counter()
    with contextlib.closing(Store.open(url)) as store:
        ids = store.add_runs(configs)
        queued = time.perf_counter()
        with store.transaction():
            for run_id in ids:
                epochs = [epoch_metrics(10 * epoch, epoch, epoch / 10) for epoch in (1, 2, 3)]
                store.add_metrics(run_id, epochs)
    with contextlib.closing(Store.open(url)) as store:  # anew: nothing of the runs is kept in memory

        def listed() -> None:
            groups = Counter(run.configuration_id for run in store.runs())
            assert len(groups) == number / 10

        first, *again = milliseconds(listed, 6)
        listing_ms = sorted(again)[2]
        with store.transaction():
            for run in store.runs(limit=20):
                store.request_stop(run.id)
        (changed_ms,) = milliseconds(listed)
        (scores_ms,) = milliseconds(lambda: store.best_metrics(ids, MetricKey("", "dev", "score")))
    return {
        "runs": number,
        "describe_s": round(described - began, 2),
        "queue_s": round(queued - described, 2),
        "first_listing_ms": round(first, 1),
        "listing_ms": round(listing_ms, 1),
        "listing_after_20_changes_ms": round(changed_ms, 1),
        "best_scores_ms": round(scores_ms, 1),
        "listing_ratio": round(LISTING_ASKED_MS / listing_ms, 2),
    }


def empty(url: str) -> None:
    """Takes out of a database what was measured with."""
    with contextlib.closing(Store.open(url)) as store, store.transaction() as connection:
        connection.execute(delete(runs))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long the writers write")
    parser.add_argument("--db", help="the URL of an empty database; its runs are deleted again")
    asked = parser.parse_args()
    writers, seconds, number = (2, 0.2, 100) if asked.quick else (8, asked.seconds, 10_000)
    with laboratory() as home:
        urls = [asked.db or f"sqlite:///{home / name}" for name in ("ingest.db", "listing.db")]
        figures = {"ingest": ingest(urls[0], seconds, writers, quick=asked.quick)}
        empty(urls[0])
        figures["listing"] = listing(urls[1], number)
        empty(urls[1])
    tell(figures)


if __name__ == "__main__":
    main()
