"""The rows of the tables of runs on all pages, in their order.

With thousands of runs, to group them takes longer than the rest of the page: what does not change while runs
train is kept from one draw to the next.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from core.config import RunConfig
from core.results.samples import (
    by_conditions,
    by_configuration,
    one_per_seed,
    readable,
    succeeded_one_per_seed,
    text_names,
)
from core.store import Conditions, Store
from core.store.types import Run, RunState

Family = tuple[str, float, str, str]
"""Corpus, share, score of POS and text: only rows that agree in them are compared."""
_KEPT = 8


@dataclass(frozen=True)
class Row:
    """The runs of a line, newest first. `condition` is what its name has beside the configuration's."""

    runs: Sequence[Run]
    condition: str = ""
    text: str = ""
    is_readable: bool = True

    @property
    def config(self) -> RunConfig:
        return self.runs[0].config

    @property
    def family(self) -> Family:
        return self.config.corpus, self.config.fraction, self.config.pos_score, self.text


@dataclass(frozen=True)
class Rows:
    """The rows of some runs by the places of their runs, in the order of the runs.

    `configurations` is their number. `families` has by family the places of the rows with a run that has
    succeeded.
    """

    places: Sequence[Sequence[int]]
    rows: Sequence[Row]
    configurations: int
    families: Mapping[Family, Sequence[int]]

    def row(self, place: int, runs: Sequence[Run]) -> Row:
        """The row with its runs as they are now."""
        row = self.rows[place]
        return Row([runs[at] for at in self.places[place]], row.condition, row.text, row.is_readable)


class _Known:
    """Rows by what decides on them, the last used ones."""

    def __init__(self) -> None:
        self._kept: list[tuple[Any, Rows]] = []
        self._lock = threading.Lock()

    def rows(self, runs: Sequence[Run], conditions: Mapping[int, Conditions], *, grouped: bool) -> Rows:
        """The rows of these runs. What is stored of a run's description never changes."""
        # Nearly all of it are the same objects, which Python compares at once.
        decisive = grouped, [(run.id, run.state, run.config) for run in runs], conditions
        with self._lock:
            kept = next((kept for kept in self._kept if kept[0] == decisive), None)
        if kept is None:
            kept = decisive, _grouped(runs, conditions, grouped=grouped)
        with self._lock:
            self._kept = [kept, *(other for other in self._kept if other is not kept)][:_KEPT]
        return kept[1]


rows_of = _Known().rows


def _grouped(runs: Sequence[Run], conditions: Mapping[int, Conditions], *, grouped: bool) -> Rows:
    known, _ = readable(runs, conditions)
    texts, known_ids = text_names(known, conditions), {run.id for run in known}
    configurations = by_configuration(runs)
    rows = []
    for row_runs in configurations.values() if grouped else [[run] for run in runs]:
        kept = [run for run in row_runs if run.id in known_ids]
        for condition, alike in by_conditions(kept, conditions, texts).items():
            text = next((texts[run.id] for run in alike if run.id in texts), "")
            rows.append(Row(alike, condition, text))
        if others := [run for run in row_runs if run.id not in known_ids]:
            rows.append(Row(others, is_readable=False))
    families: dict[Family, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row.is_readable and any(run.state is RunState.SUCCEEDED for run in row.runs):
            families[row.family].append(place)
    places = {run.id: place for place, run in enumerate(runs)}
    return Rows([[places[run.id] for run in row.runs] for row in rows], rows, len(configurations), families)


def sorted_places(
    store: Store,
    rows: Rows,
    runs: Sequence[Run],
    conditions: Mapping[int, Conditions],
    sort: str,
    *,
    grouped: bool,
) -> Sequence[int]:
    """The places of the rows by their mean, highest first; rows without a value last, in the order given."""
    every = range(len(rows.rows))
    values: Mapping[int, float]
    split, _, task = sort.partition("-")
    if task:
        values = store.mean_scores(split, task)
    elif sort == "lambda":
        values = {run.id: -run.config.lambda_ for run in runs if run.config.lambda_ is not None}
    elif sort == "time":
        values = {run.id: run.seconds for run in runs if run.seconds is not None}
    else:
        return every[::-1] if sort == "old" else every
    counted = succeeded_one_per_seed if task and grouped else one_per_seed

    def place(at: int) -> tuple[bool, float]:
        of_row = counted(rows.row(at, runs).runs, conditions)
        known = [values[run.id] for run in of_row if run.id in values]
        return not known, -fmean(known) if known else 0.0

    return sorted(every, key=place)
