"""The runs of a study in the store: ordinary runs, found by their description, whoever launched them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.config import RunConfig
from core.costs import Cost, run_cost
from core.errors import MRNLabError
from core.evaluation import rarer_half_f1
from core.store import ACTIVE, Run, RunState, Store
from core.studies.analysis import FinalScores, Floats, Result, analyse
from core.studies.plan import DevScores, Layout, Planned, lay_out, planned, remaining
from core.studies.study import Setting, Study
from jobs.cost import cost
from jobs.reuse import up_to_date
from jobs.submit import placed

__all__ = ["Outstanding", "Progress", "StudyRuns", "laid_out", "listed", "outstanding"]


@dataclass(frozen=True)
class Progress:
    """What has become of a study's runs: what they scored on dev, which failed, which wait or run."""

    dev: DevScores
    failed: Mapping[RunConfig, Run]
    active: Mapping[RunConfig, Run]
    succeeded: Mapping[RunConfig, Run]


@dataclass(frozen=True)
class Outstanding:
    """How many runs of a setting are to come before an arm is chosen and after, and for how long.

    `seconds` is None where that cannot be told, because of `problem`.
    """

    setting: str
    search: int
    final: int
    seconds: float | None
    problem: str


def laid_out(study: Study, settings: Sequence[Setting]) -> list[Layout]:
    """These settings with their runs as the store has them.

    Raises ConfigError where an arm does not make a run.
    """
    return [lay_out(study, setting, _placed) for setting in settings]


def _placed(run: RunConfig) -> RunConfig:
    try:
        return placed(run)
    except MRNLabError:
        return (
            run  # its corpus is not here; told when the setting is checked, and no reason to leave others out
        )


class StudyRuns:
    """The runs of these layouts in the store, whoever launched them.

    A run that succeeded counts before one that waits, and that before one that failed; of several the newest.
    Runs on text that has changed since, or whose alignment `auto` would choose otherwise, do not count.
    Looked at again and again, it reads only what is new.
    """

    def __init__(self, store: Store, layouts: Sequence[Layout]) -> None:
        self._store, self._layouts = store, layouts
        self._wanted = {run: run for layout in layouts for run in layout.runs()}
        self._ours: dict[int, RunConfig | None] = {}
        self._scores: dict[tuple[str, int], dict[str, float]] = {}
        self._rare: dict[int, dict[str, float]] = {}
        self._learned: dict[int, Floats | None] = {}
        self._costs: dict[int, Cost | None] = {}
        self._states: dict[int, RunState] | None = None
        self._progress = Progress(DevScores({}), {}, {}, {})
        self._results: tuple[Progress, list[Result]] | None = None

    def look(self) -> Progress:
        """What has become of them by now; the same object where no run has changed its state."""
        ours = [
            (description, run)
            for run in self._store.runs(archived=None, with_facts=False)
            if (description := self._description(run)) is not None
        ]
        states = {run.id: run.state for _, run in ours}
        if states != self._states:
            self._states = states
            self._progress = self._sorted(ours)
        return self._progress

    def _sorted(self, ours: Sequence[tuple[RunConfig, Run]]) -> Progress:
        best: dict[RunConfig, Run] = {}
        # In any precision: workers on several machines would else replace each other's runs for ever.
        runs = [run for _, run in ours]
        valid = {run.id for run in up_to_date(self._store, runs, any_precision=True)}
        for description, run in ours:  # the newest first
            if run.id not in valid:
                continue
            if description not in best or _rank(run) > _rank(best[description]):
                best[description] = run
        succeeded, active, failed = (
            {description: run for description, run in best.items() if _rank(run) == rank}
            for rank in (2, 1, 0)
        )
        return Progress(DevScores(self._scored("dev", succeeded)), failed, active, succeeded)

    def results(self) -> list[Result]:
        """What the settings say as far as they have been run."""
        found = self.look()
        if self._results is None or self._results[0] is not found:
            final = FinalScores(
                self._scored("test", found.succeeded),
                self._rare_on_test(found.succeeded),
                lambda run: self._task_correlations(found.succeeded[run]),
                self._costs_of(found.succeeded),
            )
            analysed = [analyse(layout, found.dev, final, found.failed) for layout in self._layouts]
            self._results = (found, analysed)
        return self._results[1]

    def _description(self, run: Run) -> RunConfig | None:
        if run.id not in self._ours:  # a run's description never changes
            self._ours[run.id] = None if run.config_problem else self._wanted.get(run.config)
        return self._ours[run.id]

    def _task_correlations(self, run: Run) -> Floats | None:
        """What this run learned of its tasks in the end; None where it learned nothing or did not say."""
        if run.config.paradigm != "mrn" or not run.config.learn or "task" not in run.config.learn:
            return None
        if run.id not in self._learned:
            known = self._store.snapshots(run.id)
            self._learned[run.id] = self._store.relations(run.id)[1].correlation("task") if known else None
        return self._learned[run.id]

    def _costs_of(self, runs: Mapping[RunConfig, Run]) -> dict[RunConfig, Cost | None]:
        """What these runs took; read for studies that report it alone, for facts are large."""
        if not any(layout.study.papers for layout in self._layouts):
            return {}
        unread = [run.id for run in runs.values() if run.id not in self._costs]
        self._costs |= {run.id: run_cost(run.facts) for run in (self._store.runs(unread) if unread else ())}
        return {description: self._costs.get(run.id) for description, run in runs.items()}

    def _rare_on_test(self, runs: Mapping[RunConfig, Run]) -> dict[RunConfig, dict[str, float]]:
        """What these runs scored on the rarer half of each task's labels."""
        unread = [run.id for run in runs.values() if run.id not in self._rare]
        for run_id in unread:
            self._rare[run_id] = {}
        for score in self._store.scores(unread, "test") if unread else ():
            if (value := rarer_half_f1(score.report)) is not None:
                self._rare[score.run_id][score.task] = value
        return {description: self._rare[run.id] for description, run in runs.items()}

    def _scored(self, split: str, runs: Mapping[RunConfig, Run]) -> dict[RunConfig, dict[str, float]]:
        unread = [run.id for run in runs.values() if (split, run.id) not in self._scores]
        for run_id in unread:
            self._scores[split, run_id] = {}
        for score in self._store.scores(unread, split, with_reports=False) if unread else ():
            if math.isfinite(score.score):
                self._scores[split, score.run_id][score.task] = score.score
        return {description: self._scores[split, run.id] for description, run in runs.items()}


def _rank(run: Run) -> int:
    return 2 if run.state is RunState.SUCCEEDED else int(run.state in ACTIVE)


def listed(store: Store, layouts: Sequence[Layout]) -> list[tuple[Planned, Run | None]]:
    """Every run of these settings, with the run of the store that stands for it; None where it is to come."""
    found = StudyRuns(store, layouts).look()
    known = {**found.failed, **found.active, **found.succeeded}
    return [
        (one, None if one.open else known.get(one.run))
        for layout in layouts
        for one in planned(layout, found.dev, found.failed)
    ]


def outstanding(store: Store, layouts: Sequence[Layout]) -> list[Outstanding]:
    """What is still to be run, setting by setting. A run of several settings counts in the first."""
    found = StudyRuns(store, layouts).look()
    counted: set[RunConfig] = set()
    plan = []
    for layout in layouts:
        search, final = (
            [run for run in runs if run not in counted] for runs in remaining(layout, found.dev, found.failed)
        )
        counted.update(search, final)
        seconds: float | None = None
        problem = ""
        try:
            seconds = cost(store, search + final).seconds
        except MRNLabError as error:
            problem = str(error)
        plan.append(Outstanding(layout.setting.name, len(search), len(final), seconds, problem))
    return plan
