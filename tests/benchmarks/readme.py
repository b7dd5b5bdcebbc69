"""The figures of README, measured anew: `python -m tests.benchmarks.readme [--whole --seeds 10]`.

Trains the runs of Launch's cards in a laboratory of its own, one after the other in this process, and prints
what README says of them: the rows of its table, and the sentence on scarce data. `--whole` trains the card
that fine-tunes MiniLM too, some minutes; `--seeds` adds seeds to the card of scarce data. A test holds README
to the sentence.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence

from core.config import RunConfig
from core.evaluation.statistics import PairedDifference
from core.store import RunState, Store
from dashboard.launch.presets import FINE_TUNE, SCARCE, TRY_IT
from jobs.processes import this_process
from jobs.results import ResultRow, ResultTable, difference, tabulate
from jobs.worker import Worker

__all__ = ["scarce_data", "table_rows"]

_TRY_IT = {
    "stl": "STL, three runs, frozen encoder, 5 epochs",
    "mtl": "MTL, frozen encoder, 5 epochs",
    "mrn": "MRN, frozen encoder, 5 epochs",
}
_FINE_TUNED = "MRN, whole encoder trained, 3 epochs"


def table_rows(*, whole: bool = False) -> list[str]:
    """The rows of README's table: each paradigm of the first card; `whole`: the card that fine-tunes too."""
    with _laboratory() as store:
        table = _trained(store, TRY_IT.configs)
        lines = [_row(_TRY_IT[row.config.paradigm], row, store) for row in table.rows]
        if whole:
            tuned = _trained(store, FINE_TUNE.configs)
            lines += [_row(_FINE_TUNED, row, store) for row in tuned.rows]
        return lines


def scarce_data(seeds: int = 5) -> str:
    """README's sentence on the card of scarce data."""
    kinds = dict.fromkeys(config.with_(seed=1) for config in SCARCE.configs)
    with _laboratory() as store:
        return _scarce(
            _trained(store, [kind.with_(seed=seed) for kind in kinds for seed in range(1, seeds + 1)])
        )


@contextlib.contextmanager
def _laboratory() -> Iterator[Store]:
    """An empty store in a folder of its own."""
    before = os.environ.get("MRNLAB_HOME")
    with tempfile.TemporaryDirectory() as home:
        os.environ["MRNLAB_HOME"] = home
        store = Store.open()
        try:
            yield store
        finally:
            store.close()
            del os.environ["MRNLAB_HOME"]
            if before is not None:
                os.environ["MRNLAB_HOME"] = before


def _trained(store: Store, configs: Sequence[RunConfig]) -> ResultTable:
    """The test scores of these runs, trained one after the other. Raises RuntimeError where one fails."""
    ids = store.add_runs(configs)
    worker = Worker(store, this_process(), log_to=lambda _path: contextlib.nullcontext())
    while worker.train_next():
        pass
    runs = store.runs(ids)
    for run in runs:
        if run.state is not RunState.SUCCEEDED:
            raise RuntimeError(f"run {run.id} is {run.state}: {run.error and run.error.message}")
    return tabulate(runs, store.scores(ids, with_reports=False), "test", conditions=store.conditions(runs))


def _row(name: str, row: ResultRow, store: Store) -> str:
    seconds = sum(run.seconds or 0.0 for run in store.runs(row.run_ids))
    scores = (f"{100 * row.cells[task].summary.mean:.2f}" for task in ("pos", "chunk", "ner"))
    return f"| {name} | {seconds:.0f} s | {' | '.join(scores)} |"


def _scarce(table: ResultTable) -> str:
    rows = {(row.config.paradigm, row.config.alignment): row for row in table.rows}
    mtl, apart, related = (rows[key] for key in (("mtl", None), ("mrn", "disjoint"), ("mrn", "exact")))
    gains, control = (
        " and ".join(_gain(difference(row, mtl, task)) for task in ("pos-a", "pos-b"))
        for row in (related, apart)
    )
    return (
        f"MRN gains {gains} points over MTL (paired 95% interval, each by itself); the same penalty without "
        f"relations between the tasks (`disjoint`) gains {control}."
    )


def _gain(found: PairedDifference | None) -> str:
    if found is None or found.low is None or found.high is None:
        raise RuntimeError("two seeds at least have an interval")
    return f"{100 * found.mean:.1f} ± {50 * (found.high - found.low):.1f}"


def main() -> None:
    """Measures and prints."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--whole", action="store_true", help="fine-tune MiniLM too")
    asked.add_argument("--seeds", type=int, default=5, help="seeds of the card of scarce data")
    options = asked.parse_args()
    print("\n".join([*table_rows(whole=options.whole), scarce_data(options.seeds)]))


if __name__ == "__main__":
    main()
