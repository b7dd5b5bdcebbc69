"""The figures of README, measured again: `python -m tests.benchmarks.readme`.

Trains the runs of Launch's first card and of scarce data in a temporary laboratory, one after the other in
this process, and prints what MTL and MRN gain over STL, and README's sentences on scarce data. A test holds
README to them.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

from core.evaluation.statistics import paired_difference
from core.results.table import ResultRow, tabulate
from core.store import Store
from dashboard.shared.presets import SCARCE, TRY_IT, LaunchPreset
from tests.benchmarks._harness import arguments, laboratory
from tests.tiny import tiny_bert
from tests.trained import train_runs


def first_card(seeds: int = 5, **changes: Any) -> str:
    """What sharing gains on the first card."""
    rows = {row.config.paradigm: row for row in _trained(TRY_IT, seeds, changes)}
    mtl, mrn = (" and ".join(_gains(rows[paradigm], rows["stl"])) for paradigm in ("mtl", "mrn"))
    return f"MTL gains {mtl} points over STL, MRN {mrn}."


def scarce_data(seeds: int = 5, **changes: Any) -> str:
    """README's sentence on the card of scarce data."""
    rows = {(row.config.paradigm, row.config.alignment): row for row in _trained(SCARCE, seeds, changes)}
    related = rows["mrn", "exact"]
    over_mtl, over_penalty = (
        " and ".join(_gains(related, rows[key])) for key in (("mtl", None), ("mrn", "disjoint"))
    )
    return f"MRN gains {over_mtl} over MTL, {over_penalty} over the same penalty without relations."


def _trained(card: LaunchPreset, seeds: int, changes: dict[str, Any]) -> tuple[ResultRow, ...]:
    """The test scores of the card's runs with so many seeds; `changes` of fields make other runs."""
    with laboratory(), contextlib.closing(Store.open()) as store:
        configs = [config.with_(**changes) for config in card.configs if config.seed <= seeds]
        ids = train_runs(store, configs)
        runs = store.runs(ids)
        scores = store.scores(ids, with_reports=False)
        return tabulate(runs, scores, "test", conditions=store.conditions(runs)).rows


def _gains(row: ResultRow, baseline: ResultRow) -> list[str]:
    """The gain in points on `pos-a` and on `pos-b`, each with its 95% interval."""
    gains = []
    for task in ("pos-a", "pos-b"):
        gain = paired_difference(row.cells[task].by_seed, baseline.cells[task].by_seed)
        assert gain is not None
        assert gain.low is not None
        assert gain.high is not None
        gains.append(f"{100 * gain.mean:.1f} [{100 * gain.low:.1f}, {100 * gain.high:.1f}]")
    return gains


def main() -> None:
    seeds: int = 5
    changes: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        if arguments(__doc__).parse_args().quick:
            seeds = 2
            changes = {"epochs": 1, "fraction": 0.3, "encoder": str(tiny_bert(Path(folder), positions=256))}
        print(first_card(seeds, **changes), scarce_data(seeds, **changes), sep="\n")


if __name__ == "__main__":
    main()
