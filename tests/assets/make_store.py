"""Makes the small store of the present schema that later versions must still read.

`python -m tests.assets.make_store` writes store-REVISION.db beside this file. Run it once when a schema is
released, and keep the file: it stands for the stores that people have.
"""

from __future__ import annotations

from pathlib import Path

from core.store import ErrorInfo, RunState, Store
from core.store.migrations import HEAD
from tests.making import (
    OWNER,
    Clock,
    claimed,
    config,
    epoch_metrics,
    run_facts,
    snapshot,
    split_result,
    step_metrics,
)

ASSETS = Path(__file__).resolve().parent


def main() -> None:
    """A run that succeeded, one that failed, one that waits."""
    path = ASSETS / f"store-{HEAD}.db"
    path.unlink(missing_ok=True)
    store = Store.open(f"sqlite:///{path}", clock=Clock())
    done = claimed(store)
    store.set_facts(done, run_facts())
    store.add_metrics(done, [*(step_metrics(step) for step in (1, 2, 3)), epoch_metrics(3, 1, 0.5)])
    store.add_snapshot(done, snapshot(3))
    for split in ("dev", "test"):
        store.add_result(done, split_result(split))
    store.finish(done, RunState.SUCCEEDED, best_epoch=1, checkpoint="checkpoints/1", owner=OWNER)
    store.add_keywords([done], ["keep"])
    failed = claimed(store, paradigm="mtl")
    error = ErrorInfo("TrainingError", "The loss of ner is not a number at step 2.", "Traceback")
    store.finish(failed, RunState.FAILED, error=error, owner=OWNER)
    store.add_runs([config(paradigm="stl", tasks=("pos",))], sweep="single")
    with store.transaction() as connection:
        # Paths of the machine that made it are nobody's business.
        connection.exec_driver_sql("UPDATE runs SET log = NULL")
    store.close()


if __name__ == "__main__":
    main()
