"""Runs a study to its end: queues the runs that are missing, waits, and goes on to the next stage.

All that is known of a study is in the store, so one that was killed goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from core.config import RunConfig
from core.errors import MRNLabError
from core.store import Run, RunState, Store
from core.studies.analysis import MEAN
from core.studies.plan import Layout, chosen_arm, dev_mean, next_runs
from jobs import control
from jobs.engines import Engine
from jobs.engines.slots import slot_count
from jobs.study_runs import Progress, StudyRuns
from jobs.submit import check
from jobs.tending import Tender
from jobs.wording import percent

__all__ = ["follow", "sweep_name", "sweep_of"]

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
                f"{family} {layout.study.family(family).told(arm.values)} "
                f"({_percent(dev_mean(arm, layout.study.search_seeds, layout.setting.targets, found.dev))})"
                for family, arm in chosen.items()
                if arm is not None
            ]
            self._once(f"{name}: dev chose {', '.join(told)}.")
        if at_end:
            self._ended.add(name)
            result = next(one for one in self._runs.results() if one.setting.name == name)
            scores = [
                f"{one.family.name} {percent(one.scores[MEAN].mean)}"
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


def _percent(share: float | None) -> str:
    return "–" if share is None else percent(share)


def _failure(run: Run) -> str:
    why = "" if run.error is None else f": {run.error.message}"
    return (
        f"Run {run.id} ({run.sweep or 'no sweep'}) {run.state}{why} `mrnlab retry {run.id}` tries it again."
    )
