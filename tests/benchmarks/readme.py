"""The figures of README, measured anew: `python -m tests.benchmarks.readme [--whole --seeds 10]`.

Trains the runs of Launch's cards in a laboratory of its own, one after the other in this process, and prints
what README says of them: the rows of its table, and the sentence on scarce data. `--whole` trains the card
that fine-tunes MiniLM too, some minutes; `--seeds` adds seeds to the card of scarce data. A test holds README
to the sentence.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.config import RunConfig
from core.evaluation.statistics import PairedDifference
from core.recording.owner import this_process
from core.store import RunState, Store
from dashboard.launch.presets import FINE_TUNE, SCARCE, TRY_IT
from jobs.results import ResultRow, ResultTable, difference, tabulate
from jobs.worker.loop import Worker
from tests.benchmarks._harness import arguments, laboratory
from tests.tiny import tiny_bert

__all__ = ["scarce_data", "table_rows"]

_ROWS = {
    ("stl", "frozen"): "STL, three runs, frozen encoder, 5 epochs",
    ("mtl", "frozen"): "MTL, frozen encoder, 5 epochs",
    ("mrn", "frozen"): "MRN, frozen encoder, 5 epochs",
    ("mrn", "full"): "MRN, whole encoder trained, 3 epochs",
}


def table_rows(*, whole: bool = False, **changes: Any) -> list[str]:
    """The rows of README's table: each paradigm of the first card; `whole`: the card that fine-tunes too.
    `changes` of fields make other runs than README's.
    """
    cards = [TRY_IT, FINE_TUNE] if whole else [TRY_IT]
    with laboratory(), contextlib.closing(Store.open()) as store:
        tables = [_trained(store, [config.with_(**changes) for config in card.configs]) for card in cards]
        return [_row(row, store) for table in tables for row in table.rows]


def scarce_data(seeds: int = 5, **changes: Any) -> str:
    """README's sentence on the card of scarce data."""
    kinds = dict.fromkeys(config.with_(seed=1) for config in SCARCE.configs)
    configs = [kind.with_(seed=seed, **changes) for kind in kinds for seed in range(1, seeds + 1)]
    with laboratory(), contextlib.closing(Store.open()) as store:
        return _sentence(_trained(store, configs))


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


def _row(row: ResultRow, store: Store) -> str:
    name = _ROWS[row.config.paradigm, row.config.encoder_training]
    seconds = sum(run.seconds or 0.0 for run in store.runs(row.run_ids))
    scores = (f"{100 * row.cells[task].summary.mean:.2f}" for task in ("pos", "chunk", "ner"))
    return f"| {name} | {seconds:.0f} s | {' | '.join(scores)} |"


def _sentence(table: ResultTable) -> str:
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
    parser = arguments(__doc__)
    parser.add_argument("--whole", action="store_true", help="fine-tune MiniLM too")
    parser.add_argument("--seeds", type=int, default=5, help="seeds of the card of scarce data")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        changes: dict[str, Any] = {}
        if asked.quick:
            changes = {"epochs": 1, "fraction": 0.03, "encoder": str(tiny_bert(Path(folder), positions=256))}
        rows = table_rows(whole=asked.whole, **changes)
        print("\n".join([*rows, scarce_data(2 if asked.quick else asked.seeds, **changes)]))


if __name__ == "__main__":
    main()
