"""How small a snapshot of the relations is, and how long it takes to write one and to look at it.

`python -m tests.benchmarks.snapshots` prints JSON per size (tasks, labels, features): bytes in the store,
their ratio to the three covariances dense in float32, and milliseconds to encode, to store, and to read and
form the feature correlations. The covariances are random, of the highest rank there is, a direction for each
label: the hardest case, for what a run learns needs fewer. The last line holds the ratios (a tenth is asked
for) and the reading times (under 20 ms at 768 features).
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import text

from core.mrn.relations import MODES, Relations
from core.store import Store
from core.store.snapshot_codec import encode
from core.training.events import Snapshot
from tests.making import claimed

SIZES = ((3, 78, 768), (2, 47, 1536), (15, 300, 768))
TIMES = 15


def learned(tasks: int, labels: int, features: int) -> Relations:
    """Random covariances of the rank that so many labels allow."""
    random = np.random.default_rng(7)
    task, label = random.normal(size=(tasks, tasks)), random.normal(size=(labels, labels))
    factor = random.normal(size=(features, labels)) / np.sqrt(labels)
    return Relations(task @ task.T, label @ label.T, factor, 0.3)


def milliseconds(work: Callable[[int], object]) -> float:
    """The shortest of several times: what else runs on the machine only adds."""
    taken = []
    for turn in range(TIMES):
        began = time.perf_counter()
        work(turn)
        taken.append(1000 * (time.perf_counter() - began))
    return round(min(taken), 2)


def measured(store: Store, tasks: int, labels: int, features: int) -> dict[str, Any]:
    """One size, in numbers."""
    relations = learned(tasks, labels, features)
    run_id = claimed(store)
    encode_ms = milliseconds(lambda _: encode(relations))
    store_ms = milliseconds(lambda turn: store.add_snapshot(run_id, Snapshot(turn, 0.1 * turn, relations)))
    read_ms = milliseconds(lambda turn: store.relations(run_id, turn)[1].correlation("feature"))
    with store.transaction(write=False) as connection:
        sizes = (
            "SELECT length(task) + length(label) + length(factor), rank FROM snapshots WHERE run_id = :run"
        )
        size, rank = connection.execute(text(sizes), {"run": run_id}).first() or (0, 0)
    _, stored = store.relations(run_id)
    dense = 4 * (tasks**2 + labels**2 + features**2)
    return {
        "bytes": size,
        "dense_bytes": dense,
        "ratio": round(size / dense, 4),
        "directions": rank,
        "largest_error": max(
            float(np.max(np.abs(stored.correlation(mode) - relations.correlation(mode)))) for mode in MODES
        ),
        "encode_ms": encode_ms,
        "encode_and_store_ms": store_ms,
        "read_and_correlate_ms": read_ms,
    }


def main() -> None:
    """All sizes, then the figures that are asked for in one line."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{Path(folder) / 'snapshots.db'}")
        found = {",".join(map(str, size)): measured(store, *size) for size in SIZES}
        store.close()
    print(json.dumps(found, indent=2))
    print(
        json.dumps(
            {
                "ratio": {size: one["ratio"] for size, one in found.items()},
                "read_ms": {size: one["read_and_correlate_ms"] for size, one in found.items()},
            }
        )
    )


if __name__ == "__main__":
    main()
