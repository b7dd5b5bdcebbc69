"""Runs a study to its end: queues the runs that are missing, waits, and goes on to the next stage.

The runs of a study are ordinary runs of the store, found by their description, whoever launched them. All
that is known of a study is in the store, so one that was killed goes on where it was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

from filelock import FileLock

from core.config import RunConfig
from core.config.fields import comma_list
from core.errors import ConfigError, MRNLabError
from core.evaluation.costs import run_cost
from core.paths import cache_dir
from core.recording.owner import process
from core.recording.placed import placed
from core.registry import FROZEN, FULL
from core.store import ACTIVE, Run, RunState, Store
from core.store.records import MetricKey, Owner, StoredScore
from core.studies import load_study
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
from core.tasks.scores import rarer_half_f1
from core.wording import percent
from jobs.engines import Engine
from jobs.engines.local import slot_count, start
from jobs.queue import control
from jobs.queue.estimates import costs
from jobs.queue.submit import check, up_to_date
from jobs.worker.maintenance import QueueMaintenance
from jobs.worker.process import is_alive, kill

_POLL_S = 1.0
# The next setting is queued while so many runs per slot still wait: no slot idles, and settings end in order.
_WAITING_PER_SLOT = 4
# A run whose worker died is queued again, but not for ever: it may be the run that kills it.
_MOST_ATTEMPTS = 3


@dataclass(frozen=True)
class Standing:
    """How many of a study's runs have succeeded, wait or train, and failed, of how many."""

    done: int
    active: int
    failed: int
    total: int


@dataclass(frozen=True, eq=False)
class Progress:
    """What has become of a study's runs: what they scored on dev, which failed, which wait or run."""

    layouts: Sequence[Layout]
    dev: DevScores
    failed: Mapping[RunConfig, Run]
    active: Mapping[RunConfig, Run]
    succeeded: Mapping[RunConfig, Run]

    @cached_property
    def planned(self) -> list[list[Planned]]:
        """Every run of each setting."""
        return [planned(layout, self.dev, self.failed) for layout in self.layouts]

    def listed(self) -> list[tuple[Planned, Run | None]]:
        """Every run, with the run of the store that stands for it; None where it is to come."""
        known = {**self.failed, **self.active, **self.succeeded}
        return [(plan, None if plan.open else known.get(plan.run)) for of in self.planned for plan in of]

    @cached_property
    def standing(self) -> Standing:
        """How far the study is. The first arm stands for one that is yet to be chosen."""
        runs = {plan.run for of_setting in self.planned for plan in of_setting}
        # Those that were stopped or lost are taken up again, as `follow` does.
        failures = {config for config, run in self.failed.items() if run.state is RunState.FAILED}
        done, active = (len(runs & known.keys()) for known in (self.succeeded, self.active))
        return Standing(done, active, len(runs & failures), len(runs))


@dataclass(frozen=True)
class Outstanding:
    """How many runs of a setting are to come before an arm is chosen and after, and for how long.

    `seconds` is None where no past run tells. `done` have succeeded and `failed` have failed. A run of
    several settings counts in the first.
    """

    setting: str
    part: str
    done: int
    failed: int
    search: int
    final: int
    seconds: float | None

    @property
    def to_run(self) -> int:
        """How many runs are to come."""
        return self.search + self.final

    @property
    def runs(self) -> int:
        """How many runs there are in all."""
        return self.done + self.failed + self.to_run


@dataclass(frozen=True)
class Version:
    """What is run of a study: all of it or some parts or settings (names with commas), over its own encoders
    or over another, with its own seeds or so many.
    """

    study: str
    part: str | None = None
    setting: str | None = None
    encoder: str | None = None
    encoder_training: str = FULL
    seeds: int | None = None

    def definition(self) -> Study:
        """The whole study over these encoders. Raises ConfigError."""
        study = load_study(self.study, self.encoder, self.encoder_training)
        return study if self.seeds is None else study.with_seeds(self.seeds)

    def layouts(self) -> list[Layout]:
        """Its settings with their runs, in the order asked for. Raises ConfigError for an unknown name."""
        study = self.definition()
        parts = _names("part", self.part, study.parts())
        settings = {setting.name: setting for setting in study.settings if setting.part in parts}
        return laid_out(study, [settings[name] for name in _names("setting", self.setting, list(settings))])

    def arguments(self) -> list[str]:
        """The arguments of `mrnlab` that run it."""
        options = {"--part": self.part, "--setting": self.setting, "--encoder": self.encoder}
        given = [word for option, value in options.items() if value for word in (option, value)]
        return ["study", self.study, *given, *["--frozen"] * (self.encoder_training == FROZEN)]


def _names(option: str, text: str | None, known: Sequence[str]) -> Sequence[str]:
    """The names in a list, each once; all for None. Raises ConfigError for an unknown name."""
    if text is None:
        return known
    names = list(dict.fromkeys(comma_list(text)))
    for name in names or [text]:
        if name not in known:
            raise ConfigError(option, f"--{option}: '{name}' is not one of {', '.join(known)}.")
    return names


def laid_out(study: Study, settings: Sequence[Setting]) -> list[Layout]:
    """These settings with their runs as the store has them.

    Raises ConfigError where an arm does not make a run.
    """

    @cache  # settings share runs
    def place(run: RunConfig) -> RunConfig:
        # A corpus that is not here is told when its setting is checked; other settings can be run.
        with contextlib.suppress(MRNLabError):
            return placed(run)
        return run

    return [lay_out(study, setting, place) for setting in settings]


def sweep_of(study: str) -> str:
    """What the labels of all runs of a study begin with."""
    return f"study {study}/"


def sweep_name(layout: Layout) -> str:
    """What the runs of a setting are labelled with."""
    return sweep_of(layout.study.name) + layout.setting.name


class StudyRuns:
    """The runs of these layouts in the store, whoever launched them.

    A run that succeeded counts before one that waits, and that before one that failed; of several the newest.
    A base run without its weights, as a record has it, does not count: it is trained again for runs to come.
    Runs on text that has changed since, or whose alignment `auto` would choose otherwise, do not count. No
    corpus is read for that unless it `may_read` (`up_to_date`).
    """

    def __init__(self, store: Store, layouts: Sequence[Layout], *, may_read: bool = True) -> None:
        self._store, self._layouts, self._may_read = store, layouts, may_read
        self._wanted = {run for layout in layouts for run in layout.runs()}
        self._bases = {run for layout in layouts for run in layout.bases.values()}
        self._states: dict[int, RunState] | None = None
        self._progress = Progress(layouts, DevScores({}), {}, {}, {})
        self._results: tuple[Progress, list[Result]] | None = None

    def look(self) -> Progress:
        """What has become of them by now; the same object where no run has changed its state."""
        runs = [
            run
            for run in self._store.runs(archived=None, with_facts=False)
            if run.config_problem is None and run.config in self._wanted
            if not (run.config in self._bases and _lacks_weights(run))
        ]
        states = {run.id: run.state for run in runs}
        if states != self._states:
            self._states = states
            self._progress = self._sorted(runs)
        return self._progress

    def results(self) -> list[Result]:
        """What the settings say as far as they have been run."""
        progress = self.look()
        if self._results is None or self._results[0] is not progress:
            succeeded = progress.succeeded
            scores = self._store.scores([run.id for run in succeeded.values()], "test")
            # Facts, which hold the cost, are large: read for studies alone that report it.
            reports_cost = any(layout.study.papers for layout in self._layouts)
            known = self._store.runs([run.id for run in succeeded.values()]) if reports_cost else []
            final = FinalScores(
                _by_run(succeeded, scores, attrgetter("score")),
                _by_run(succeeded, scores, lambda score: rarer_half_f1(score.report)),
                lambda config: task_correlations(self._store, succeeded[config]),
                self._dev_curves([layout for layout in self._layouts if layout.study.by_epoch]),
                {run.config: run_cost(run.facts) for run in known},
                {score.task: score.score_name for score in scores},
            )
            analysed = [analyse(layout, progress.dev, final, progress.failed) for layout in self._layouts]
            self._results = (progress, analysed)
        return self._results[1]

    def _sorted(self, runs: Sequence[Run]) -> Progress:
        best: dict[RunConfig, Run] = {}
        # In any precision: workers on several machines would else replace each other's runs for ever.
        known = up_to_date(self._store, runs, any_precision=True, may_read=self._may_read)
        for run in known:  # the newest first
            if run.config not in best or _rank(run) > _rank(best[run.config]):
                best[run.config] = run
        succeeded, active, failed = (
            {config: run for config, run in best.items() if _rank(run) == rank} for rank in (2, 1, 0)
        )
        scores = self._store.scores([run.id for run in succeeded.values()], "dev", with_reports=False)
        dev = DevScores(_by_run(succeeded, scores, attrgetter("score")))
        return Progress(self._layouts, dev, failed, active, succeeded)

    def _dev_curves(self, layouts: Sequence[Layout]) -> dict[RunConfig, dict[int, dict[str, float]]]:
        """By run, epoch and task the score on the development sentences, of these settings' runs."""
        wanted = {run for layout in layouts for run in layout.runs()}
        runs = {run.id: config for config, run in self._progress.succeeded.items() if config in wanted}
        keys = {
            (run_id, MetricKey(task, "dev", "score")): -1
            for run_id, config in runs.items()
            for task in config.tasks
        }
        curves: dict[RunConfig, dict[int, dict[str, float]]] = {}
        for curve in self._store.metrics_since(keys):
            by_epoch = curves.setdefault(runs[curve.run_id], {})
            for epoch, score in zip(curve.epoch.tolist(), curve.value.tolist(), strict=True):
                by_epoch.setdefault(round(epoch), {})[curve.key.task] = score
        return curves


def _by_run(
    runs: Mapping[RunConfig, Run],
    scores: Iterable[StoredScore],
    figure: Callable[[StoredScore], float | None],
) -> dict[RunConfig, dict[str, float]]:
    """By run and task this figure of its scores; none where it is undefined."""
    by_run: dict[int, dict[str, float]] = {run.id: {} for run in runs.values()}
    for score in scores:
        value = figure(score)
        if score.tokens and value is not None and math.isfinite(value):
            by_run[score.run_id][score.task] = value
    return {config: by_run[run.id] for config, run in runs.items()}


def task_correlations(store: Store, run: Run) -> Floats | None:
    """The task correlations (T, T) that the run learned in the end; None where it learned none, or the store
    has none of them, as of a run from a record.
    """
    if run.config.paradigm != "mrn" or "task" not in (run.config.learn or ()) or not store.snapshots(run.id):
        return None
    return store.relations(run.id)[1].correlation("task")


def _lacks_weights(run: Run) -> bool:
    """Whether no task can be added to a run that has succeeded (`trained_here`)."""
    return run.state is RunState.SUCCEEDED and (run.checkpoint is None or run.archived)


def _rank(run: Run) -> int:
    return 2 if run.state is RunState.SUCCEEDED else int(run.state in ACTIVE)


def outstanding(store: Store, progress: Progress) -> list[Outstanding]:
    """What is still to be run, setting by setting, by what is known without reading a corpus."""
    counted: set[RunConfig] = set()
    lines: list[Outstanding] = []
    lots: list[list[RunConfig]] = []
    for layout, of_setting in zip(progress.layouts, progress.planned, strict=True):
        plan = [each for each in of_setting if each.run not in counted]
        search, final = remaining(plan, progress.dev, progress.failed)
        runs = {each.run for each in plan}
        counted |= runs
        lots.append([*search, *final])
        done, failed = (sum(run in ended for run in runs) for ended in (progress.succeeded, progress.failed))
        setting = layout.setting
        lines.append(Outstanding(setting.name, setting.part, done, failed, len(search), len(final), None))
    return [
        replace(line, seconds=estimate.seconds)
        for line, estimate in zip(lines, costs(store, lots), strict=True)
    ]


def follow(
    store: Store,
    layouts: Sequence[Layout],
    tell: Callable[[str], object],
    *,
    keep: Callable[[Iterable[Run]], None] | None = None,
    engine: Engine | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Queues what is missing and waits until every setting is at its end; whether all went well.

    `keep` is given the study's finished runs whenever there is a new one.

    Failed runs are reported once; lost and cancelled runs are queued again. A setting that cannot be run here
    (no corpus, say) is reported and left out. Raises MRNLabError where no worker can be started.
    """
    runs = StudyRuns(store, layouts)
    _resume(store, runs, engine)
    queue = _StudyQueue(store, runs, layouts, tell)
    maintenance = QueueMaintenance(store, engine)
    seen: Progress | None = None
    while True:
        progress = runs.look()
        if progress is not seen:
            seen = progress
            if keep is not None:
                keep(progress.succeeded.values())
            if queue.at_end(progress):
                return queue.well and not progress.failed
        maintenance.look()
        maintenance.check_starts()
        sleep(_POLL_S)


def _resume(store: Store, runs: StudyRuns, engine: Engine | None = None) -> None:
    """Queue again what was stopped or lost."""
    ended = runs.look().failed.values()
    control.resume(store, [run.id for run in ended if run.state is not RunState.FAILED], engine)


_followers: list[Any] = []  # kept, so that each is reaped once it has ended


def _follower_card(store: Store, study: str) -> Path:
    return cache_dir("studies") / f"{hashlib.sha256(store.url.encode()).hexdigest()[:12]}-{study}.json"


def follower(store: Store, study: str) -> Owner | None:
    """The process that `start_study` has left to follow this study, while it lives."""
    try:
        owner = Owner(**json.loads(_follower_card(store, study).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return owner if is_alive(owner) else None


def start_study(store: Store, version: Version) -> list[str]:
    """Queue the first runs that are missing, and leave the others to a process of its own: `mrnlab study`.

    Returns what is left out, a sentence each. Raises MRNLabError where nothing of it can be run here.
    """
    layouts, notes = version.layouts(), list[str]()
    runs = StudyRuns(store, layouts)
    _resume(store, runs)
    queue = _StudyQueue(store, runs, layouts, notes.append)
    at_end = queue.at_end(runs.look())
    if at_end and not queue.well:
        raise MRNLabError(" ".join(notes))
    card = _follower_card(store, version.study)
    with FileLock(card.with_suffix(".lock")):  # two pages may start it at once
        if follower(store, version.study) is None:
            command = [sys.executable, "-c", "from jobs.cli import main; main()", *version.arguments()]
            child = start(command, store)
            _followers[:] = [other for other in _followers if other.poll() is None] + [child]
            card.write_text(json.dumps(dataclasses.asdict(process(child.pid))))
    return [] if queue.well else notes


def stop_study(store: Store, study: str) -> list[control.Answer]:
    """End the process that follows the study, and stop the study's runs that wait or train."""
    if (owner := follower(store, study)) is not None:
        kill(owner)
    active = store.runs(states=ACTIVE, with_facts=False)
    return control.stop(store, [run.id for run in active if (run.sweep or "").startswith(sweep_of(study))])


class _StudyQueue:
    """Queues the runs of settings, and tells each stage once."""

    def __init__(
        self, store: Store, runs: StudyRuns, layouts: Sequence[Layout], tell: Callable[[str], object]
    ) -> None:
        self._store, self._runs, self._tell = store, runs, tell
        self._layouts = list(layouts)
        self._checked: set[str] = set()
        self._messages: set[str] = set()
        self._ended: set[str] = set()
        self.well = True

    def at_end(self, progress: Progress) -> bool:
        """Queues what may be queued now; whether nothing is left to run."""
        lost = [run for run in progress.failed.values() if run.state is RunState.LOST]
        if again := [run.id for run in lost if run.attempt < _MOST_ATTEMPTS]:
            control.resume(self._store, again)
            return False
        for run in progress.failed.values():
            why = "" if run.error is None else f": {run.error.message}"
            self._tell_once(
                f"Run {run.id} ({run.sweep or 'no sweep'}) {run.state.word}{why} `mrnlab retry {run.id}` "
                "tries it again."
            )
        waiting = sum(run.state is RunState.QUEUED for run in progress.active.values())
        room = _WAITING_PER_SLOT * slot_count() - waiting
        known = set(progress.active)
        is_left = False
        for layout in list(self._layouts):
            due = next_runs(layout, progress.dev, progress.failed)
            self._tell_stages(layout, progress, at_end=not due)
            new = [run for run in due if run not in known]
            if new and room > 0 and not self._queue(layout, new):
                continue
            is_left = is_left or bool(due)
            known |= set(new)
            room -= len(new)
        return not is_left

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
        with self._store.queueing_alone():
            now = self._runs.look()  # another command or page may have queued them meanwhile
            known = {*now.failed, *now.active, *now.succeeded}
            self._store.add_runs([run for run in new if run not in known], sweep_name(layout))
        return True

    def _tell_stages(self, layout: Layout, progress: Progress, *, at_end: bool) -> None:
        study, setting = layout.study, layout.setting
        if setting.name in self._ended:
            return
        chosen = {
            family: chosen_arm(layout, family, progress.dev, progress.failed)
            for family, arms in layout.arms.items()
            if len(arms) > 1
        }
        if chosen and all(chosen.values()):
            choices = []
            for family, arm in chosen.items():
                if arm is not None:
                    mean = dev_mean(arm, study.search_seeds_of(setting), setting.targets, progress.dev)
                    choices.append(
                        f"{family} {layout.families[family].describe(arm.values)} ({percent(mean)})"
                    )
            self._tell_once(f"{setting.name}: dev chose {', '.join(choices)}.")
        if at_end:
            self._ended.add(setting.name)
            result = next(result for result in self._runs.results() if result.setting.name == setting.name)
            scores = [
                f"{outcome.family.name} {percent(outcome.scores[MEAN].mean)}"
                + (f" ({outcome.differences[MEAN].verdict})" if MEAN in outcome.differences else "")
                for outcome in result.outcomes
                if MEAN in outcome.scores
            ]
            self._tell_once(f"{setting.name} is done: {', '.join(scores) or 'no family has a score'}.")

    def _tell_once(self, message: str) -> None:
        if message not in self._messages:
            self._messages.add(message)
            self._tell(message)
