"""A setting's scores on the test sentences and differences to the reference; tables beside published ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.config import RunConfig
from core.evaluation.comparison import Comparison, compare_paired, compare_rows
from core.evaluation.costs import Cost, cost_of
from core.evaluation.statistics import MeanSD, summary
from core.studies.published import ABOVE, BELOW, WITHIN, Published, matching
from core.studies.study import (
    DevByRun,
    Method,
    Paper,
    Setting,
    SettingRuns,
    Study,
    chosen_candidate,
    planned_runs,
)

Floats = NDArray[np.floating]

MEAN = "mean"
"""The name of the mean over a setting's targets, beside the targets' own."""

RARE = "rarer labels"
"""The name of the mean over the targets of the F1 of the rarer half of their labels."""


@dataclass(frozen=True)
class FinalScores:
    """Scores on the test sentences, by run and task, in [0, 1].

    `rare` is the mean F1 of the rarer half of each task's labels, where known. `relations` gives a run's
    learned task correlations (T, T), in the order of its tasks; None where it learned none. `dev_curves` are
    the scores on the development sentences after each epoch, where known.
    """

    by_run: Mapping[RunConfig, Mapping[str, float]]
    rare: Mapping[RunConfig, Mapping[str, float]] = field(default_factory=dict)
    relations: Callable[[RunConfig], Floats | None] = lambda _: None
    dev_curves: Mapping[RunConfig, Mapping[int, Mapping[str, float]]] = field(default_factory=dict)
    costs: Mapping[RunConfig, Cost | None] = field(default_factory=dict)
    score_names: Mapping[str, str] = field(default_factory=dict)
    """By task the name of its headline score, where known."""


@dataclass(frozen=True)
class Outcome:
    """One method in one setting: the candidate that dev chose, and its scores per target and in the mean.

    `candidate` is None while that is open, or where every one failed. `differences` are those from the
    reference, `from_base` those from the method's own base; both are empty where the method is that itself.
    `failed` counts the method's failed runs. `learned` is the correlation of the targets with other tasks, in
    the mean over pairs, summed up over seeds. `published` has the published figure for each target, where the
    method was trained and scored as there. `cost` is for one seed, summed over the models of STL. `dev_curve`
    is the mean over targets on the development sentences after each epoch, summed up over seeds.
    `score_names` has the name of each target's headline score, where known.
    """

    method: Method
    candidate: Mapping[str, Any] | None
    dev: MeanSD | None
    by_seed: Mapping[str, Mapping[int, float]]
    failed: int
    published: Mapping[str, Published]
    learned: MeanSD | None = None
    cost: Cost | None = None
    dev_curve: Mapping[int, MeanSD] = field(default_factory=dict)
    score_names: Mapping[str, str] = field(default_factory=dict)
    differences: dict[str, Comparison] = field(default_factory=dict)
    from_base: dict[str, Comparison] = field(default_factory=dict)

    @cached_property
    def scores(self) -> dict[str, MeanSD]:
        """Per target, and for their mean, the scores summed up over seeds."""
        return {target: summary(scores.values()) for target, scores in self.by_seed.items()}

    def measures(self, target: str) -> tuple[str, ...]:
        """The names of the headline scores of a target, or of all where it is their mean."""
        names = self.score_names.values() if target == MEAN else [self.score_names.get(target, "")]
        return tuple(filter(None, names))

    @property
    def chosen(self) -> str:
        """The chosen candidate in words: `open` while there is none, empty where there was no choice."""
        return "open" if self.candidate is None else self.method.describe(self.candidate)

    def verdict(self, target: str) -> str:
        """`WITHIN`, `ABOVE` or `BELOW` the published figure; empty where there is none, or no score yet."""
        if target not in self.scores or target not in self.published:
            return ""
        return self.published[target].verdict(self.scores[target].mean)


@dataclass(frozen=True)
class Result:
    """One setting: its methods in order, the reference among them.

    `done` of `planned` runs are recorded. While some are missing, a comparison needs two seeds.
    """

    setting: Setting
    reference: str
    outcomes: tuple[Outcome, ...]
    done: int
    planned: int

    @property
    def is_complete(self) -> bool:
        """Whether no run is missing."""
        return self.done == self.planned

    def outcome(self, method: str) -> Outcome:
        """The outcome of the method. Raises KeyError."""
        return {outcome.method.name: outcome for outcome in self.outcomes}[method]


def joined(results: Sequence[Result]) -> list[Result]:
    """The results with one for settings of the same runs: the first, with the methods of the others too.

    A difference keeps the p of its own setting, which is corrected for the methods there.
    """
    merged: list[Result] = []
    for result in results:
        place = next(
            (at for at, each in enumerate(merged) if each.setting.is_same_data(result.setting)), None
        )
        if place is None:
            merged.append(result)
            continue
        first = merged[place]
        known = {outcome.method.name for outcome in first.outcomes}
        more = tuple(outcome for outcome in result.outcomes if outcome.method.name not in known)
        merged[place] = replace(first, outcomes=first.outcomes + more)
    return merged


def analyse(
    setting_runs: SettingRuns, dev: DevByRun, test: FinalScores, failed: Collection[RunConfig] = frozenset()
) -> Result:
    """The analysis of a setting's finished runs.

    Dev alone chooses candidates; their scores are then read on the test sentences.

    The p-values of differences on a target are corrected over the methods.
    """
    outcomes = {name: _outcome(setting_runs, name, dev, test, failed) for name in setting_runs.candidates}
    planned = {run.config for run in planned_runs(setting_runs, dev, failed)}
    done = len(planned & dev.by_run.keys())
    return with_differences(setting_runs.study, setting_runs.setting, outcomes, done, len(planned))


def with_differences(
    study: Study, setting: Setting, outcomes: dict[str, Outcome], done: int, planned: int
) -> Result:
    """The result of a setting; adds the differences to the outcomes of its methods."""
    reference = study.reference
    least = 1 if done == planned else 2
    bases = {name: outcome.method.base for name, outcome in outcomes.items() if outcome.method.base}
    for target in (*setting.targets, MEAN, RARE):
        scored = {name: each.by_seed[target] for name, each in outcomes.items() if target in each.by_seed}
        # The family of a table of methods with this baseline (`ResultTable.comparisons`).
        for (name, base), difference in compare_rows(scored, baseline=reference).items():
            if base == reference and difference.seeds >= least:
                outcomes[name].differences[target] = difference
        for name, difference in _from_bases(outcomes, bases, target).items():
            if difference.seeds >= least:
                outcomes[name].from_base[target] = difference
    return Result(setting, reference, tuple(outcomes.values()), done, planned)


def _from_bases(
    outcomes: Mapping[str, Outcome], bases: Mapping[str, str], target: str
) -> dict[str, Comparison]:
    """On the target, of each method from the one that `bases` names; p corrected for their number."""
    return compare_paired(
        {
            name: (outcomes[name].by_seed.get(target, {}), outcomes[base].by_seed.get(target, {}))
            for name, base in bases.items()
        }
    )


def _outcome(
    setting_runs: SettingRuns, name: str, dev: DevByRun, test: FinalScores, failed: Collection[RunConfig]
) -> Outcome:
    method, targets, seeds = setting_runs.methods[name], setting_runs.setting.targets, setting_runs.seeds
    candidates = setting_runs.candidates[name]
    needed = {
        *setting_runs.search_of(name, *candidates),
        *(run for candidate in candidates for run in candidate.runs_with(seeds)),
    }
    lost = sum(run in failed for run in needed)
    published = {
        target: cell
        for target, cell in matching(candidates[0].runs[seeds[0]][0]).items()
        if target in targets
    }
    candidate = chosen_candidate(setting_runs, name, dev, failed)
    if candidate is None:
        return Outcome(method, None, None, {}, lost, published)
    on_dev = _by_seed(candidate.search if len(candidates) > 1 else candidate.runs, targets, dev.by_run).get(
        MEAN
    )
    by_seed = _by_seed(candidate.runs, targets, test.by_run)
    if rare := _by_seed(candidate.runs, targets, test.rare).get(MEAN):
        by_seed[RARE] = rare
    learned = [
        correlation
        for run in candidate.runs_with(seeds)
        if run in test.by_run and (correlation := _learned(run, targets, test)) is not None
    ]
    return Outcome(
        method,
        candidate.values,
        summary(on_dev.values()) if on_dev else None,
        by_seed,
        lost,
        published,
        summary(learned) if learned else None,
        cost_of([test.costs.get(run) for run in runs] for runs in candidate.runs.values()),
        _dev_curve(candidate.runs, targets, test.dev_curves),
        {target: test.score_names[target] for target in targets if target in test.score_names},
    )


def _dev_curve(
    runs_by_seed: Mapping[int, Sequence[RunConfig]],
    targets: tuple[str, ...],
    curves: Mapping[RunConfig, Mapping[int, Mapping[str, float]]],
) -> dict[int, MeanSD]:
    """By epoch the mean over targets, over the seeds that have them all after it."""
    curve = {}
    for epoch in sorted(
        {epoch for runs in runs_by_seed.values() for run in runs for epoch in curves.get(run, {})}
    ):
        at_epoch = {run: by_epoch.get(epoch, {}) for run, by_epoch in curves.items()}
        if means := _by_seed(runs_by_seed, targets, at_epoch).get(MEAN):
            curve[epoch] = summary(means.values())
    return curve


def _learned(run: RunConfig, targets: tuple[str, ...], test: FinalScores) -> float | None:
    """The mean correlation over pairs of tasks with a target; None where the run learned none."""
    matrix = test.relations(run)
    if matrix is None or len(run.tasks) < 2:
        return None
    is_target = np.array([task in targets for task in run.tasks])
    return float(matrix[np.triu(is_target[:, None] | is_target[None, :], k=1)].mean())


def _by_seed(
    runs_by_seed: Mapping[int, Sequence[RunConfig]],
    targets: tuple[str, ...],
    scores: Mapping[RunConfig, Mapping[str, float]],
) -> dict[str, dict[int, float]]:
    """Per target, and for their mean, the score of each seed; the mean where a seed has all targets."""
    by_target: dict[str, dict[int, float]] = {}
    for seed, runs in runs_by_seed.items() if scores else ():
        scored = {task: score for run in runs for task, score in scores.get(run, {}).items()}
        of_seed = {target: scored[target] for target in targets if target in scored}
        if len(of_seed) == len(targets):
            of_seed[MEAN] = math.fsum(of_seed.values()) / len(targets)
        for target, score in of_seed.items():
            by_target.setdefault(target, {})[seed] = score
    return by_target


@dataclass(frozen=True)
class TableView:
    """A published table with our figures: a row per model under a paradigm, for example `BERT (STL)`.

    `paper` has the title, and the rows that stand in the table as reported. `tasks` has MEAN last where these
    have it.
    """

    paper: Paper
    tasks: tuple[str, ...]
    rows: Mapping[str, Outcome]

    @property
    def summary(self) -> str:
        """A sentence with the number of figures that agree with published ones; empty without any."""
        if not self.paper.is_compared:
            return ""
        counts = Counter(outcome.verdict(task) for outcome in self.rows.values() for task in self.tasks)
        compared = counts[WITHIN] + counts[ABOVE] + counts[BELOW]
        if not compared:
            return "No run of yours matches a published row yet."
        return (
            f"Figures beside a published one: {compared}. Within its standard deviation: {counts[WITHIN]}, "
            f"above: {counts[ABOVE]}, below: {counts[BELOW]}."
        )


def table_view(study: Study, part: str, results: Sequence[Result]) -> TableView | None:
    """The table that this part repeats, from the results that belong to it; None where there is none.

    A setting whose `model` is empty has no row in it.
    """
    part_results = [result for result in results if result.setting.part == part and result.setting.model]
    if part not in study.papers or not part_results:
        return None
    rows = {
        f"{result.setting.model} ({outcome.method.title})": outcome
        for result in part_results
        for outcome in result.outcomes
    }
    paper = study.papers[part]
    has_mean = any(MEAN in row.scores for row in paper.reported)
    return TableView(paper, (*part_results[0].setting.targets, *[MEAN] * has_mean), rows)
