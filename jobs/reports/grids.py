"""The table of a grid of simulated tasks, and what became of planted relations, read from the store."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from core.config import RunConfig
from core.store import Run, Store
from core.studies.simulator import PLANTED, point_of
from core.studies.study import Layout
from core.transfer.grid import COLUMNS, PlantedTasks
from jobs.reports.studies import StudyRuns


class GridRuns:
    """The runs of these layouts that have succeeded, with what was planted in each and its score on test."""

    def __init__(self, store: Store, layouts: Sequence[Layout]) -> None:
        self._store, self._layouts = store, layouts
        found = StudyRuns(store, layouts).look().succeeded
        with_facts = {run.id: run for run in store.runs([run.id for run in found.values()])}
        self._runs: Mapping[RunConfig, Run] = {config: with_facts[run.id] for config, run in found.items()}
        scores = store.scores(list(with_facts), "test", with_reports=False)
        self._scores = {(score.run_id, score.task): score.score for score in scores}

    def table(self) -> pd.DataFrame:
        """A row for each run of the grids, as `core.transfer.grid` has it."""
        rows = {}
        for layout in self._layouts:
            if (point := point_of(layout.setting)) is None:
                continue
            for family, arms in layout.arms.items():
                for seed, (config,) in arms[0].runs.items():
                    if (run := self._runs.get(config)) is None:
                        continue
                    beside = family != layout.study.reference
                    # NER alone once, whatever stands beside it elsewhere.
                    nan = math.nan
                    ami = float(np.mean(self._ami(run))) if beside else nan
                    n_syn, tasks, alpha = (
                        (point.words_beside, point.tasks, point.alpha) if beside else (nan, 0, nan)
                    )
                    f1 = 100 * self._scores[run.id, "ner"]
                    rows[point.part, config] = (point.part, point.words, n_syn, tasks, ami, alpha, f1, seed)
        return pd.DataFrame(list(rows.values()), columns=list(COLUMNS))

    def planted(self) -> PlantedTasks | None:
        """What was planted, measured and learned, over the seeds of which all runs are there; None where
        there is no such seed.
        """
        for layout in self._layouts:
            if layout.setting.part == PLANTED:
                whole = [seed for seed in layout.seeds if self._is_whole(layout, seed)]
                return self._planted(layout, whole) if whole else None
        return None

    def _is_whole(self, layout: Layout, seed: int) -> bool:
        return all(config in self._runs for arms in layout.arms.values() for config in arms[0].runs[seed])

    def _planted(self, layout: Layout, seeds: Sequence[int]) -> PlantedTasks:
        target, *tasks = layout.setting.base["tasks"]
        gains, ami, learned = (np.empty((len(seeds), len(tasks))) for _ in range(3))
        alphas = np.empty(len(tasks))
        for row, seed in enumerate(seeds):
            runs = {name: self._runs[arms[0].runs[seed][0]] for name, arms in layout.arms.items()}
            alone = self._scores[runs.pop("stl").id, target]
            joint = runs.pop("mrn")
            correlations = self._store.relations(joint.id)[1].correlation("task")
            ami[row] = self._ami(joint)
            alphas[:] = joint.facts["planted"]["alphas"][1:]
            learned[row] = correlations[0, 1:]
            for run in runs.values():
                place = tasks.index(run.config.tasks[1])
                gains[row, place] = 100 * (self._scores[run.id, target] - alone)
        return PlantedTasks(alphas, ami, gains, learned)

    @staticmethod
    def _ami(run: Run) -> list[float]:
        """That of the run's first task with each other one."""
        return list(run.facts["planted"]["ami"][0][1:])
