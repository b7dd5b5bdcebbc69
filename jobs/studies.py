"""Runs a study to its end: queues the runs that are missing, waits, and goes on to the next stage.

All that is known of a study is in the store, so one that was killed goes on where it was.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.config import RunConfig
from core.errors import MRNLabError
from core.evaluation import rarer_half_f1
from core.evaluation.costs import Cost, run_cost
from core.recording.placed import placed
from core.store import ACTIVE, Run, RunState, Store
from core.studies.analysis import MEAN, FinalScores, Floats, Result, analyse
from core.studies.study import (
    DevScores,
    Layout,
    Planned,
    Setting,
    Study,
    chosen_arm,
    dev_mean,
    lay_out,
    next_runs,
    planned,
    remaining,
)
from core.wording import percent
from jobs import control
from jobs.engines import Engine
from jobs.engines.local import slot_count
from jobs.estimates import cost
from jobs.submit import check, up_to_date
from jobs.worker.maintenance import Tender

# The runs of a study in the store: ordinary runs, found by their description, whoever launched them.


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


_POLL_S = 1.0
# The next setting is queued while so many runs per slot still wait: no slot idles, and settings end in order.
_WAITING_PER_SLOT = 4
# A run whose worker died is queued again, but not for ever: it may be the run that kills it.
_MOST_ATTEMPTS = 3


def sweep_of(study: str) -> str:
    """What the labels of all runs of a study begin with."""
    return f"study {study}/"


def sweep_name(layout: Layout) -> str:
    """What the runs of a setting are labelled with."""
    return sweep_of(layout.study.name) + layout.setting.name


def follow(
    store: Store,
    layouts: Sequence[Layout],
    tell: Callable[[str], object],
    *,
    engine: Engine | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Queues what is missing and waits until every setting is at its end; whether all went well.

    Runs that failed are told once and not tried again; those that were lost are, and those stopped before.
    A setting that cannot be run here (no corpus, say) is told and left out. Raises MRNLabError where no
    worker can be started.
    """
    runs = StudyRuns(store, layouts)
    ended = runs.look().failed.values()
    control.resume(store, [run.id for run in ended if run.state is not RunState.FAILED], engine)
    following = _Following(store, runs, layouts, tell)
    tender = Tender(store, engine)
    seen: Progress | None = None
    while True:
        found = runs.look()
        if found is not seen:
            seen = found
            tender.moved()
            if following.at_end(found):
                return following.well and not found.failed
        tender.look()
        tender.check()
        sleep(_POLL_S)


class _Following:
    """What has been queued and told so far."""

    def __init__(
        self, store: Store, runs: StudyRuns, layouts: Sequence[Layout], tell: Callable[[str], object]
    ) -> None:
        self._store, self._runs, self._tell = store, runs, tell
        self._layouts = list(layouts)
        self._checked: set[str] = set()
        self._told: set[str] = set()
        self._ended: set[str] = set()
        self.well = True

    def at_end(self, found: Progress) -> bool:
        """Queues what may be queued now; whether nothing is left to run."""
        lost = [run for run in found.failed.values() if run.state is RunState.LOST]
        if again := [run.id for run in lost if run.attempt < _MOST_ATTEMPTS]:
            control.resume(self._store, again)
            return False
        for run in found.failed.values():
            self._once(_failure(run))
        room = _WAITING_PER_SLOT * slot_count() - _waiting(found)
        known = set(found.active)
        left = False
        for layout in list(self._layouts):
            due = next_runs(layout, found.dev, found.failed)
            self._tell_stages(layout, found, at_end=not due)
            new = [run for run in due if run not in known]
            if new and room > 0 and not self._queue(layout, new):
                continue
            left = left or bool(due)
            known |= set(new)
            room -= len(new)
        return not left

    def _queue(self, layout: Layout, new: Sequence[RunConfig]) -> bool:
        """Whether these runs could be queued. Before its first, all of a setting are checked."""
        name = layout.setting.name
        try:
            if name not in self._checked:
                check(list(layout.runs()))
                self._checked.add(name)
        except MRNLabError as error:
            self._tell(f"{name} is left out: {error}")
            self._layouts.remove(layout)
            self.well = False
            return False
        self._store.add_runs(new, sweep_name(layout))
        return True

    def _tell_stages(self, layout: Layout, found: Progress, *, at_end: bool) -> None:
        name = layout.setting.name
        if name in self._ended:
            return
        searched = [family for family, arms in layout.arms.items() if len(arms) > 1]
        chosen = {family: chosen_arm(layout, family, found.dev, found.failed) for family in searched}
        if searched and all(chosen.values()):
            told = [
                f"{family} {layout.study.family(family).describe(arm.values)} "
                f"({_percent(dev_mean(arm, layout.study.search_seeds, layout.setting.targets, found.dev))})"
                for family, arm in chosen.items()
                if arm is not None
            ]
            self._once(f"{name}: dev chose {', '.join(told)}.")
        if at_end:
            self._ended.add(name)
            result = next(one for one in self._runs.results() if one.setting.name == name)
            scores = [
                f"{one.family.name} {percent(one.scores[MEAN].mean)}%"
                + (f" ({one.differences[MEAN].verdict})" if MEAN in one.differences else "")
                for one in result.outcomes
                if MEAN in one.scores
            ]
            self._once(f"{name} is done: {', '.join(scores) or 'no family has a score'}.")

    def _once(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            self._tell(message)


def _waiting(found: Progress) -> int:
    return sum(run.state is RunState.QUEUED for run in found.active.values())


def _percent(score: float | None) -> str:
    return "–" if score is None else f"{percent(score)}%"


def _failure(run: Run) -> str:
    why = "" if run.error is None else f": {run.error.message}"
    return (
        f"Run {run.id} ({run.sweep or 'no sweep'}) {run.state}{why} `mrnlab retry {run.id}` tries it again."
    )
