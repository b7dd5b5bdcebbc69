"""The figures of README, measured again: `python -m tests.benchmarks.readme`.

Trains the runs of Launch's cards in a temporary laboratory, one after the other in this process, and prints
the rows of README's table and its sentence on scarce data. A test holds README to the sentence.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.config import RunConfig
from core.evaluation.statistics import MeanSD, paired_difference
from core.store import Store
from dashboard.launch.presets import FINE_TUNE, SCARCE, TRY_IT, LaunchPreset
from jobs.reports.table import ResultRow, ResultTable, tabulate
from tests.benchmarks._harness import arguments, laboratory
from tests.tiny import tiny_bert
from tests.trained import train_runs

_TRAININGS = {"frozen": "frozen", "full": "fine-tuned"}


def table_rows(seeds: int = 5, **changes: Any) -> list[str]:
    """The rows of README's table; `changes` of fields make other runs than README's."""
    rows = []
    with laboratory(), contextlib.closing(Store.open()) as store:
        for card in (TRY_IT, FINE_TUNE):
            for row in _train(store, _seeded(card, seeds, changes)).rows:
                config = row.config
                name = f"{config.paradigm.upper()}, {_TRAININGS[config.encoder_training]} {config.encoder}"
                seconds = sum(run.seconds or 0.0 for run in store.runs(row.run_ids))
                cells = (_score(row.cells[task].summary) for task in card.configs[0].tasks)
                rows.append(
                    f"| {card.title} | {name} | {len(row.run_ids)} | {seconds:.0f} s | {' | '.join(cells)} |"
                )
    return rows


def _score(score: MeanSD) -> str:
    return f"{100 * score.mean:.1f} ± {100 * (score.sd or 0.0):.1f}"


def _seeded(card: LaunchPreset, seeds: int, changes: Mapping[str, Any]) -> list[RunConfig]:
    """The card's runs with so many seeds."""
    return [config.with_(**changes) for config in card.configs if config.seed <= seeds]


def scarce_data(seeds: int = 5, **changes: Any) -> str:
    """README's sentence on the card of scarce data."""
    with laboratory(), contextlib.closing(Store.open()) as store:
        table = _train(store, _seeded(SCARCE, seeds, changes))
    rows = {(row.config.paradigm, row.config.alignment): row for row in table.rows}
    related = rows["mrn", "exact"]
    return (
        f"MRN gains {_gains(related, rows['mtl', None])} points over MTL (paired 95% interval, each by "
        f"itself), and {_gains(related, rows['mrn', 'disjoint'])} over the same penalty without relations "
        "between the tasks (`disjoint`)."
    )


def _train(store: Store, configs: Sequence[RunConfig]) -> ResultTable:
    """The test scores of these runs, trained one after the other."""
    ids = train_runs(store, configs)
    runs = store.runs(ids)
    return tabulate(runs, store.scores(ids, with_reports=False), "test", conditions=store.conditions(runs))


def _gains(row: ResultRow, baseline: ResultRow) -> str:
    gains = []
    for task in ("pos-a", "pos-b"):
        gain = paired_difference(row.cells[task].by_seed, baseline.cells[task].by_seed)
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
            changes = {"epochs": 1, "fraction": 0.3, "encoder": str(tiny_bert(Path(folder), positions=256))}
        print("\n".join([*table_rows(seeds, **changes), scarce_data(seeds, **changes)]))


if __name__ == "__main__":
    main()
