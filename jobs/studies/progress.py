"""The progress of a study: the state of its runs, and the runs still to come.
The runs of a study are ordinary runs of the store, found by their description, whoever launched them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from operator import attrgetter

from core.config import RunConfig
from core.config.fields import comma_list
from core.corpora.loading import pinned_name
from core.errors import ConfigError, MRNLabError
from core.evaluation.costs import run_cost
from core.metrics import DEV_SCORE
from core.recording.resolve import with_absolute_paths
from core.registry import FROZEN, FULL
from core.store import ACTIVE, Run, RunState, Store
from core.store.types import StoredScore
from core.studies import load_study
from core.studies.analysis import FinalScores, Floats, Result, analyse
from core.studies.study import (
    DevByRun,
    Setting,
    SettingRuns,
    Study,
    StudyRun,
    planned_runs,
    remaining,
    with_runs,
)
from core.tasks.scores import rarer_half_f1
from jobs.queue.estimates import costs
from jobs.queue.submit import up_to_date


@dataclass(frozen=True)
class RunCounts:
    """The numbers of a study's runs that have succeeded, wait or train, and have failed, and of all."""

    done: int
    active: int
    failed: int
    total: int


@dataclass(frozen=True, eq=False)
class RunsByState:
    """The runs of a study by state, with the dev scores of the successful ones."""

    settings: Sequence[SettingRuns]
    dev: DevByRun
    failed: Mapping[RunConfig, Run]
    active: Mapping[RunConfig, Run]
    succeeded: Mapping[RunConfig, Run]

    @cached_property
    def planned_runs(self) -> list[list[StudyRun]]:
        """All planned runs of each setting."""
        return [planned_runs(setting_runs, self.dev, self.failed) for setting_runs in self.settings]

    def listed(self) -> list[tuple[StudyRun, Run | None]]:
        """Every planned run with its run in the store; None where it is to come."""
        by_config = {**self.failed, **self.active, **self.succeeded}
        return [
            (plan, None if plan.open else by_config.get(plan.config))
            for plans in self.planned_runs
            for plan in plans
        ]

    @cached_property
    def counts(self) -> RunCounts:
        """The counts of runs by state; a candidate still to be chosen counts as the first candidate."""
        runs = {plan.config for plans in self.planned_runs for plan in plans}
        # Stopped and lost runs are not failures: `follow` queues them again.
        failures = {config for config, run in self.failed.items() if run.state is RunState.FAILED}
        done, active = (len(runs & by_config.keys()) for by_config in (self.succeeded, self.active))
        return RunCounts(done, active, len(runs & failures), len(runs))


@dataclass(frozen=True)
class SettingCounts:
    """The counts of a setting's runs, and the seconds that the runs to come take.

    `search` runs come before a candidate is chosen, `final` runs after. `seconds` is None without an
    estimate. A run of several settings counts in the first.
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
        """The number of runs to come."""
        return self.search + self.final

    @property
    def runs(self) -> int:
        """The number of all runs."""
        return self.done + self.failed + self.to_run


@dataclass(frozen=True)
class StudyOptions:
    """The options of a study, each by default the study's own.

    `part` and `setting` are names separated by commas, `seeds` is the number of seeds.
    """

    study: str
    part: str | None = None
    setting: str | None = None
    encoder: str | None = None
    encoder_training: str = FULL
    seeds: int | None = None

    def definition(self) -> Study:
        """The whole study with these encoders and seeds. Raises ConfigError."""
        study = load_study(self.study, self.encoder, self.encoder_training)
        return study if self.seeds is None else study.with_seeds(self.seeds)

    def settings(self) -> list[SettingRuns]:
        """The chosen settings with their runs, in order. Raises ConfigError for an unknown name."""
        study = self.definition()
        parts = _names("part", self.part, study.parts())
        settings = {setting.name: setting for setting in study.settings if setting.part in parts}
        return settings_with_runs(
            study, [settings[name] for name in _names("setting", self.setting, list(settings))]
        )

    def arguments(self) -> list[str]:
        """The arguments of `mrnlab` that run the study with these options."""
        options = {"--part": self.part, "--setting": self.setting, "--encoder": self.encoder}
        given = [word for option, value in options.items() if value for word in (option, value)]
        return ["study", self.study, *given, *["--frozen"] * (self.encoder_training == FROZEN)]


def _names(option: str, text: str | None, choices: Sequence[str]) -> Sequence[str]:
    """The names in a list, each once; all for None. Raises ConfigError for an unknown name."""
    if text is None:
        return choices
    names = list(dict.fromkeys(comma_list(text)))
    for name in names or [text]:
        if name not in choices:
            raise ConfigError(option, f"--{option}: '{name}' is not one of {', '.join(choices)}.")
    return names


def settings_with_runs(study: Study, settings: Sequence[Setting]) -> list[SettingRuns]:
    """These settings with their runs, with absolute paths as in the store.

    Raises ConfigError where a candidate does not make a run.
    """

    pinned = cache(pinned_name)

    @cache  # settings share runs
    def resolved(run: RunConfig) -> RunConfig:
        # A missing corpus is reported when its setting is checked; other settings can be run.
        with contextlib.suppress(MRNLabError):
            return with_absolute_paths(run, pinned)
        return run

    return [with_runs(study, setting, resolved) for setting in settings]


def sweep_prefix(study: str) -> str:
    """What the names of the sweeps of a study begin with."""
    return f"study {study}/"


def sweep_name(setting_runs: SettingRuns) -> str:
    """The name of the sweep of a setting's runs."""
    return sweep_prefix(setting_runs.study.name) + setting_runs.setting.name


class StudyRuns:
    """The runs of these settings in the store, whoever launched them.

    A successful run is preferred to a queued one, and that to a failed one; of several the newest. A base run
    without weights, as from a record, does not count: it is trained again for runs to come. Runs on text that
    has changed since, or whose alignment `auto` would choose otherwise, do not count. Without `may_read` no
    corpus is read for that (`up_to_date`).
    """

    def __init__(self, store: Store, settings: Sequence[SettingRuns], *, may_read: bool = True) -> None:
        self._store, self._settings, self._may_read = store, settings, may_read
        self._wanted = {run for setting_runs in settings for run in setting_runs.runs()}
        self._bases = {run for setting_runs in settings for run in setting_runs.bases.values()}
        self._states: dict[int, RunState] | None = None
        self._by_state = RunsByState(settings, DevByRun({}), {}, {}, {})
        self._results: tuple[RunsByState, list[Result]] | None = None

    def look(self) -> RunsByState:
        """The runs by state; the same object as before where no run has changed its state."""
        runs = [
            run
            for run in self._store.runs(archived=None)
            if run.config_problem is None and run.config in self._wanted
            if not (run.config in self._bases and _has_no_weights(run))
        ]
        states = {run.id: run.state for run in runs}
        if states != self._states:
            self._states = states
            self._by_state = self._sorted(runs)
        return self._by_state

    def results(self) -> list[Result]:
        """The results of the settings' finished runs."""
        by_state = self.look()
        if self._results is None or self._results[0] is not by_state:
            succeeded = by_state.succeeded
            scores = self._store.scores([run.id for run in succeeded.values()], "test")
            # Facts, which hold the cost, are large: they are read only for studies that report it.
            reports_cost = any(setting_runs.study.papers for setting_runs in self._settings)
            costly = [run.id for run in succeeded.values()] if reports_cost else []
            final = FinalScores(
                _by_run(succeeded, scores, attrgetter("score")),
                _by_run(succeeded, scores, lambda score: rarer_half_f1(score.report)),
                lambda config: task_correlations(self._store, succeeded[config]),
                self._dev_curves(
                    [setting_runs for setting_runs in self._settings if setting_runs.study.by_epoch]
                ),
                {run.config: run_cost(run.facts) for run in self._store.runs_with_facts(costly)},
                {score.task: score.score_name for score in scores},
            )
            analysed = [
                analyse(setting_runs, by_state.dev, final, by_state.failed) for setting_runs in self._settings
            ]
            self._results = (by_state, analysed)
        return self._results[1]

    def _sorted(self, runs: Sequence[Run]) -> RunsByState:
        best: dict[RunConfig, Run] = {}
        # In any precision: else workers on several machines would replace each other's runs for ever.
        current = up_to_date(self._store, runs, any_precision=True, may_read=self._may_read)
        for run in current:  # the newest first
            if run.config not in best or _rank(run) > _rank(best[run.config]):
                best[run.config] = run
        succeeded, active, failed = (
            {config: run for config, run in best.items() if _rank(run) == rank} for rank in (2, 1, 0)
        )
        scores = self._store.scores([run.id for run in succeeded.values()], "dev", with_reports=False)
        dev = DevByRun(_by_run(succeeded, scores, attrgetter("score")))
        return RunsByState(self._settings, dev, failed, active, succeeded)

    def _dev_curves(self, settings: Sequence[SettingRuns]) -> dict[RunConfig, dict[int, dict[str, float]]]:
        """The dev scores of these settings' runs by run, epoch and task."""
        wanted = {run for setting_runs in settings for run in setting_runs.runs()}
        runs = {run.id: config for config, run in self._by_state.succeeded.items() if config in wanted}
        keys = {(run_id, DEV_SCORE.key(task)): -1 for run_id, config in runs.items() for task in config.tasks}
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
    """This figure of the runs' scores by run and task, where it is defined."""
    by_run: dict[int, dict[str, float]] = {run.id: {} for run in runs.values()}
    for score in scores:
        value = figure(score)
        if score.tokens and value is not None and math.isfinite(value):
            by_run[score.run_id][score.task] = value
    return {config: by_run[run.id] for config, run in runs.items()}


def task_correlations(store: Store, run: Run) -> Floats | None:
    """The task correlations (T, T) that the run learned in the end.

    None where it learned none, or the store has none, as for a run from a record.
    """
    if run.config.paradigm != "mrn" or "task" not in (run.config.learn or ()) or not store.snapshots(run.id):
        return None
    return store.relations(run.id)[1].correlation("task")


def _has_no_weights(run: Run) -> bool:
    """Whether a successful run has no weights to which a task could be added."""
    return run.state is RunState.SUCCEEDED and (run.checkpoint is None or run.archived)


def _rank(run: Run) -> int:
    return 2 if run.state is RunState.SUCCEEDED else int(run.state in ACTIVE)


def counts_by_setting(store: Store, by_state: RunsByState) -> list[SettingCounts]:
    """The counts of runs by setting, without reading a corpus."""
    counted: set[RunConfig] = set()
    lines: list[SettingCounts] = []
    lots: list[list[RunConfig]] = []
    for setting_runs, plans in zip(by_state.settings, by_state.planned_runs, strict=True):
        plan = [each for each in plans if each.config not in counted]
        search, final = remaining(plan, by_state.dev, by_state.failed)
        runs = {each.config for each in plan}
        counted |= runs
        lots.append([*search, *final])
        done, failed = (sum(run in ended for run in runs) for ended in (by_state.succeeded, by_state.failed))
        setting = setting_runs.setting
        lines.append(SettingCounts(setting.name, setting.part, done, failed, len(search), len(final), None))
    return [
        replace(line, seconds=estimate.seconds)
        for line, estimate in zip(lines, costs(store, lots), strict=True)
    ]
