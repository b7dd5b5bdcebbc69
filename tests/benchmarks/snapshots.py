"""How small a snapshot of the relations is, and how long it takes to write one and to look at it.

`python -m tests.benchmarks.snapshots` prints JSON per size (tasks, labels, features): bytes in the store,
their ratio to the three covariances dense in float32, and milliseconds to encode, to store, and to read and
form the feature correlations, the shortest of several. The covariances are random, of the highest rank there
is, a direction for each label: the hardest case, for what a run learns needs fewer. The last line holds the
ratios (a tenth is asked for) and the reading times (under 20 ms at 768 features).
"""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import numpy as np
from sqlalchemy import func, select

from core.mrn.relations import MODES
from core.records import Snapshot
from core.store import Store
from core.store import schema as stored_in
from core.store.snapshot_codec import encode
from tests.benchmarks._harness import arguments, laboratory, milliseconds, tell
from tests.making import claimed, relations

SIZES = ((3, 78, 768), (2, 47, 1536), (15, 300, 768))


def measured(store: Store, size: tuple[int, int, int], times: int) -> dict[str, Any]:
    """One size, in numbers."""
    tasks, labels, features = size
    drawn = relations(7, tasks, labels, features, rank=labels)
    run_id, step = claimed(store), itertools.count(1)

    def store_one() -> None:
        store.add_snapshot(run_id, Snapshot(next(step), 0.1, drawn))

    encode_ms = milliseconds(lambda: encode(drawn), times)
    store_ms = milliseconds(store_one, times)
    read_ms = milliseconds(lambda: store.relations(run_id, 1)[1].correlation("feature"), times)
    columns = stored_in.snapshots.c
    bytes_ = func.length(columns.task) + func.length(columns.label) + func.length(columns.factor)
    with store.transaction(write=False) as connection:
        size_, rank = connection.execute(
            select(bytes_, columns.rank).where(columns.run_id == run_id)
        ).fetchmany(1)[0]
    _, read = store.relations(run_id)
    dense = 4 * (tasks**2 + labels**2 + features**2)
    errors = [np.max(np.abs(read.correlation(mode) - drawn.correlation(mode))) for mode in MODES]
    return {
        "bytes": size_,
        "dense_bytes": dense,
        "ratio": round(size_ / dense, 4),
        "directions": rank,
        "largest_error": float(max(errors)),
        "encode_ms": round(min(encode_ms), 2),
        "encode_and_store_ms": round(min(store_ms), 2),
        "read_and_correlate_ms": round(min(read_ms), 2),
    }


def main() -> None:
    """All sizes, then the figures that are asked for in one line."""
    quick = arguments(__doc__).parse_args().quick
    figures = {}
    with laboratory(), contextlib.closing(Store.open()) as store:
        for size in SIZES[: 1 if quick else None]:
            figures[",".join(map(str, size))] = measured(store, size, 1 if quick else 15)
    tell(figures)
    tell(
        {
            "ratio": {size: figure["ratio"] for size, figure in figures.items()},
            "read_ms": {size: figure["read_and_correlate_ms"] for size, figure in figures.items()},
        }
    )


if __name__ == "__main__":
    main()
