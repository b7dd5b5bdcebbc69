"""The figures of README, measured again: `python -m tests.benchmarks.readme`.

Trains the runs of Launch's cards in a temporary laboratory, one after the other in this process, and prints
the rows of README's table and its sentence on scarce data. A test holds README to the sentence.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.config import RunConfig
from core.store import Store
from dashboard.launch.presets import FINE_TUNE, SCARCE, TRY_IT
from jobs.results import ResultRow, ResultTable, difference, tabulate
from tests.benchmarks._harness import arguments, laboratory
from tests.tiny import tiny_bert
from tests.trained import train_runs

_ROWS = {
    ("stl", "frozen"): "STL, three runs, frozen encoder, 5 epochs",
    ("mtl", "frozen"): "MTL, frozen encoder, 5 epochs",
    ("mrn", "frozen"): "MRN, frozen encoder, 5 epochs",
    ("mrn", "full"): "MRN, whole encoder trained, 3 epochs",
}


def table_rows(**changes: Any) -> list[str]:
    """The rows of README's table; `changes` of fields make other runs than README's."""
    rows = []
    with laboratory(), contextlib.closing(Store.open()) as store:
        for card in (TRY_IT, FINE_TUNE):
            for row in _train(store, [config.with_(**changes) for config in card.configs]).rows:
                name = _ROWS[row.config.paradigm, row.config.encoder_training]
                seconds = sum(run.seconds or 0.0 for run in store.runs(row.run_ids))
                scores = (f"{100 * row.cells[task].summary.mean:.2f}" for task in ("pos", "chunk", "ner"))
                rows.append(f"| {name} | {seconds:.0f} s | {' | '.join(scores)} |")
    return rows


def scarce_data(seeds: int = 5, **changes: Any) -> str:
    """README's sentence on the card of scarce data."""
    conditions = dict.fromkeys(config.with_(seed=1) for config in SCARCE.configs)
    configs = [config.with_(seed=seed, **changes) for config in conditions for seed in range(1, seeds + 1)]
    with laboratory(), contextlib.closing(Store.open()) as store:
        rows = {(row.config.paradigm, row.config.alignment): row for row in _train(store, configs).rows}
    mtl = rows["mtl", None]
    return (
        f"MRN gains {_gains(rows['mrn', 'exact'], mtl)} points over MTL (paired 95% interval, each by "
        "itself); the same penalty without relations between the tasks (`disjoint`) gains "
        f"{_gains(rows['mrn', 'disjoint'], mtl)}."
    )


def _train(store: Store, configs: Sequence[RunConfig]) -> ResultTable:
    """The test scores of these runs, trained one after the other."""
    ids = train_runs(store, configs)
    runs = store.runs(ids)
    return tabulate(runs, store.scores(ids, with_reports=False), "test", conditions=store.conditions(runs))


def _gains(row: ResultRow, baseline: ResultRow) -> str:
    gains = []
    for task in ("pos-a", "pos-b"):
        gain = difference(row, baseline, task)
        assert gain is not None
        assert gain.low is not None
        assert gain.high is not None
        gains.append(f"{100 * gain.mean:.1f} ± {50 * (gain.high - gain.low):.1f}")
    return " and ".join(gains)


def main() -> None:
    seeds: int = 5
    changes: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        if arguments(__doc__).parse_args().quick:
            seeds = 2
            changes = {"epochs": 1, "fraction": 0.03, "encoder": str(tiny_bert(Path(folder), positions=256))}
        print("\n".join([*table_rows(**changes), scarce_data(seeds, **changes)]))


if __name__ == "__main__":
    main()
