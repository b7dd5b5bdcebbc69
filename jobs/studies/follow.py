"""Runs a study to its end: queues the runs that are missing, waits, and goes on to the next stage.

The runs of a study are ordinary runs of the store, found by their description, whoever launched them. All
state of a study is in the store, so a study that was killed goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from core.config import RunConfig
from core.errors import MRNLabError
from core.store import Run, RunState, Store
from core.studies.analysis import MEAN
from core.studies.study import (
    SettingRuns,
    chosen_candidate,
    dev_mean,
    next_runs,
)
from core.wording import percent
from jobs.engines import Engine
from jobs.queue import control
from jobs.queue.maintenance import QueueMaintenance
from jobs.queue.submit import check, queue_runs
from jobs.studies.followers import start_follower
from jobs.studies.progress import RunsByState, StudyOptions, StudyRuns, sweep_name
from jobs.worker.cores import train_at_once

_POLL_S = 1.0
# The next setting is queued while so many runs per slot still wait: no slot idles, and settings end in order.
_WAITING_PER_SLOT = 4
# A run whose worker died is queued again, but not for ever: the run may be the cause.
_MOST_ATTEMPTS = 3


def follow(
    store: Store,
    settings: Sequence[SettingRuns],
    report: Callable[[str], object],
    *,
    keep: Callable[[Iterable[Run]], None] | None = None,
    stages: bool = True,
    is_over: Callable[[], bool] = lambda: False,
    engine: Engine | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Queues missing runs, waits until every setting is at its end, and returns whether all succeeded.

    `keep` is given the study's finished runs whenever there is a new one. `stages`: what dev chose, and the
    scores of each setting at its end, are reported. Once `is_over`, what waits is stopped, and what trains
    goes on by itself; it returns False then.

    Failed runs are reported once; lost and cancelled runs are queued again. A setting that cannot be run
    here, for instance without its corpus, is reported and left out. Raises MRNLabError where no worker can be
    started.
    """
    runs = StudyRuns(store, settings)
    _resume(store, runs, engine)
    queue = _StudyQueue(store, runs, settings, report, stages=stages)
    maintenance = QueueMaintenance(store, engine)
    seen: RunsByState | None = None
    while True:
        by_state = runs.look()
        if by_state is not seen:
            seen = by_state
            if keep is not None:
                keep(by_state.succeeded.values())
            if queue.has_ended(by_state):
                return queue.is_complete and not by_state.failed
        if is_over():
            waiting = [run.id for run in runs.look().active.values() if run.state is RunState.QUEUED]
            control.stop(store, waiting)
            return False
        maintenance.look()
        maintenance.check_starts()
        sleep(_POLL_S)


def _resume(store: Store, runs: StudyRuns, engine: Engine | None = None) -> None:
    """Queues the runs again that were stopped or lost."""
    ended = runs.look().failed.values()
    control.resume(store, [run.id for run in ended if run.state is not RunState.FAILED], engine)


def start_study(store: Store, options: StudyOptions) -> list[str]:
    """Queues the first missing runs, starts a process (`mrnlab study`) for the others, and returns notes.

    The notes are sentences on settings that are left out. Raises MRNLabError where none can be run here.
    """
    settings, notes = options.settings(), list[str]()
    runs = StudyRuns(store, settings)
    _resume(store, runs)
    queue = _StudyQueue(store, runs, settings, notes.append)
    has_ended = queue.has_ended(runs.look())
    if has_ended and not queue.is_complete:
        raise MRNLabError(" ".join(notes))
    start_follower(store, options.study, options.arguments())
    return [] if queue.is_complete else notes


class _StudyQueue:
    """Queues the runs of settings, and reports each stage once."""

    def __init__(
        self,
        store: Store,
        runs: StudyRuns,
        settings: Sequence[SettingRuns],
        report: Callable[[str], object],
        *,
        stages: bool = True,
    ) -> None:
        self._store, self._runs, self._report = store, runs, report
        self._settings = list(settings)
        self._stages = stages
        self._checked: set[str] = set()
        self._messages: set[str] = set()
        self._ended: set[str] = set()
        self.is_complete = True

    def has_ended(self, by_state: RunsByState) -> bool:
        """Queues the runs that may be queued now, and returns whether none is left to run."""
        lost = [run for run in by_state.failed.values() if run.state is RunState.LOST]
        if again := [run.id for run in lost if run.attempt < _MOST_ATTEMPTS]:
            control.resume(self._store, again)
            return False
        for run in by_state.failed.values():
            why = "" if run.error is None else f": {run.error.message}"
            self._report_once(
                f"Run {run.id} ({run.sweep or 'no sweep'}) {run.state.word}{why} `mrnlab retry {run.id}` "
                "tries it again."
            )
        waiting = sum(run.state is RunState.QUEUED for run in by_state.active.values())
        room = _WAITING_PER_SLOT * train_at_once(self._store) - waiting
        begun = set(by_state.active)
        is_left = False
        for setting_runs in list(self._settings):
            due = next_runs(setting_runs, by_state.dev, by_state.failed)
            if self._stages:
                self._report_stages(setting_runs, by_state, has_ended=not due)
            new = [run for run in due if run not in begun]
            if new and room > 0 and not self._queue(setting_runs, new):
                continue
            is_left = is_left or bool(due)
            begun |= set(new)
            room -= len(new)
        return not is_left

    def _queue(self, setting_runs: SettingRuns, new: Sequence[RunConfig]) -> bool:
        """Queues these runs, after a check of the whole setting; returns whether that was possible."""
        name = setting_runs.setting.name
        try:
            if name not in self._checked:
                check(list(setting_runs.runs()))
                self._checked.add(name)
        except MRNLabError as error:
            self._report(f"{name} is left out: {error}")
            self._settings.remove(setting_runs)
            self.is_complete = False
            return False
        with self._store.queueing_alone():
            now = self._runs.look()  # another command or page may have queued them meanwhile
            begun = {*now.failed, *now.active, *now.succeeded}
            missing = [run for run in new if run not in begun]
            queue_runs(self._store, missing, sweep_name(setting_runs))
        return True

    def _report_stages(self, setting_runs: SettingRuns, by_state: RunsByState, *, has_ended: bool) -> None:
        study, setting = setting_runs.study, setting_runs.setting
        if setting.name in self._ended:
            return
        chosen = {
            method: chosen_candidate(setting_runs, method, by_state.dev, by_state.failed)
            for method, candidates in setting_runs.candidates.items()
            if len(candidates) > 1
        }
        if chosen and all(chosen.values()):
            choices = []
            for method, candidate in chosen.items():
                if candidate is not None:
                    mean = dev_mean(candidate, study.search_seeds_of(setting), setting.targets, by_state.dev)
                    values = setting_runs.methods[method].describe(candidate.values)
                    choices.append(f"{method} {values} ({percent(mean)})")
            self._report_once(f"{setting.name}: dev chose {', '.join(choices)}.")
        if has_ended:
            self._ended.add(setting.name)
            result = next(result for result in self._runs.results() if result.setting.name == setting.name)
            scores = [
                f"{outcome.method.name} {percent(outcome.scores[MEAN].mean)}"
                + (f" ({outcome.differences[MEAN].verdict})" if MEAN in outcome.differences else "")
                for outcome in result.outcomes
                if MEAN in outcome.scores
            ]
            self._report_once(f"{setting.name} is done: {', '.join(scores) or 'no method has a score'}.")

    def _report_once(self, message: str) -> None:
        if message not in self._messages:
            self._messages.add(message)
            self._report(message)
