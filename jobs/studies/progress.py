"""What has become of a study's runs, and what is still to be run.

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
from core.errors import ConfigError, MRNLabError
from core.evaluation.costs import run_cost
from core.recording.placed import placed
from core.registry import FROZEN, FULL
from core.store import ACTIVE, Run, RunState, Store
from core.store.records import MetricKey, StoredScore
from core.studies import load_study
from core.studies.analysis import FinalScores, Floats, Result, analyse
from core.studies.study import (
    DevScores,
    Layout,
    Planned,
    Setting,
    Study,
    lay_out,
    planned,
    remaining,
)
from core.tasks.scores import rarer_half_f1
from jobs.queue.estimates import costs
from jobs.queue.submit import up_to_date


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


def launch_prefix(study: str) -> str:
    """What the labels of all runs of a study begin with."""
    return f"study {study}/"


def launch_label(layout: Layout) -> str:
    """What the runs of a setting are labelled with."""
    return launch_prefix(layout.study.name) + layout.setting.name


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
