"""A setting's scores on the test sentences and differences to the reference; tables beside published ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.config import RunConfig
from core.evaluation.costs import Cost, cost_of
from core.evaluation.statistics import MeanSD, PairedDifference, holm, paired_difference, significant, summary
from core.studies.published import ABOVE, BELOW, WITHIN, Published, Reported, matching
from core.studies.study import DevScores, Family, Layout, Setting, Study, chosen_arm

Floats = NDArray[np.floating]

MEAN = "mean"
"""The name of the mean over a setting's targets, beside the targets' own."""

RARE = "rarer labels"
"""The name of the mean over the targets of the F1 of the rarer half of their labels."""

HELPS, HURTS, NOT_SHOWN = "helps", "hurts", "no difference shown"


@dataclass(frozen=True)
class FinalScores:
    """Scores on the test sentences, by run and task, in [0, 1].

    `rare` is the mean F1 of the rarer half of each task's labels, where known. `relations` gives a run's
    learned task correlations (T, T), in the order of its tasks; None where it learned none.
    """

    by_run: Mapping[RunConfig, Mapping[str, float]]
    rare: Mapping[RunConfig, Mapping[str, float]] = field(default_factory=dict)
    relations: Callable[[RunConfig], Floats | None] = lambda _: None
    costs: Mapping[RunConfig, Cost | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Difference:
    """A family less the reference, seed by seed. `p_holm` is corrected for the families of the setting."""

    paired: PairedDifference
    p_holm: float | None = None

    @property
    def verdict(self) -> str:
        """What the corrected p-value says. Without one (a single seed, no spread) nothing is shown."""
        if not significant(self.p_holm):
            return NOT_SHOWN
        return HELPS if self.paired.mean > 0 else HURTS


@dataclass(frozen=True)
class Outcome:
    """One family in one setting: the arm that dev chose, and its scores per target and in the mean.

    `arm` is None while that is open, or where every arm failed. `differences` is empty for the reference.
    `failed` counts the family's failed runs. `learned` is the correlation of the targets with other tasks, in
    the mean over pairs, summed up over seeds. `published` has the published figure for each target, where the
    family was trained and scored as there. `cost` is for one seed, summed over the models of STL.
    """

    family: Family
    arm: Mapping[str, Any] | None
    dev: MeanSD | None
    by_seed: Mapping[str, Mapping[int, float]]
    scores: Mapping[str, MeanSD]
    differences: Mapping[str, Difference] = field(default_factory=dict)
    failed: int = 0
    learned: MeanSD | None = None
    published: Mapping[str, Published] = field(default_factory=dict)
    cost: Cost | None = None

    @property
    def chosen(self) -> str:
        """The chosen arm in words; empty where there was no choice."""
        return "" if self.arm is None else self.family.describe(self.arm)


@dataclass(frozen=True)
class Result:
    """One setting: its families in order, the reference among them."""

    setting: Setting
    reference: str
    outcomes: tuple[Outcome, ...]

    def outcome(self, family: str) -> Outcome:
        """That family's. Raises KeyError."""
        return {outcome.family.name: outcome for outcome in self.outcomes}[family]


def analyse(
    layout: Layout, dev: DevScores, test: FinalScores, failed: Collection[RunConfig] = frozenset()
) -> Result:
    """The setting as far as it is known: arms are chosen by dev alone, then read off the test sentences."""
    outcomes = [_outcome(layout, family, dev, test, failed) for family in layout.arms]
    reference = next(outcome for outcome in outcomes if outcome.family.name == layout.study.reference)
    for target in (*layout.setting.targets, MEAN, RARE):
        _compare(outcomes, reference, target)
    return Result(layout.setting, layout.study.reference, tuple(outcomes))


def _outcome(
    layout: Layout, name: str, dev: DevScores, test: FinalScores, failed: Collection[RunConfig]
) -> Outcome:
    family, targets, seeds = layout.study.family(name), layout.setting.targets, layout.study.seeds
    arms = layout.arms[name]
    lost = {run for arm in arms for run in (*layout.search_of(arms, arm), *arm.of(seeds)) if run in failed}
    published = {
        target: cell for target, cell in matching(arms[0].runs[seeds[0]][0]).items() if target in targets
    }
    arm = chosen_arm(layout, name, dev, failed)
    if arm is None:
        return Outcome(family, None, None, {}, {}, failed=len(lost), published=published)
    on_dev = _by_seed(arm.search if len(arms) > 1 else arm.runs, targets, dev.by_run).get(MEAN)
    by_seed = _by_seed(arm.runs, targets, test.by_run)
    if rare := _by_seed(arm.runs, targets, test.rare).get(MEAN):
        by_seed[RARE] = rare
    return Outcome(
        family,
        arm.values,
        summary(on_dev.values()) if on_dev else None,
        by_seed,
        {target: summary(scores.values()) for target, scores in by_seed.items()},
        failed=len(lost),
        published=published,
        cost=cost_of([test.costs.get(run) for run in runs] for runs in arm.runs.values()),
        learned=_learned(arm.of(seeds), targets, test),
    )


def _learned(runs: Iterable[RunConfig], targets: tuple[str, ...], test: FinalScores) -> MeanSD | None:
    correlations = []
    for run in runs:
        matrix = test.relations(run) if run in test.by_run else None
        if matrix is not None and len(run.tasks) > 1:
            is_target = np.array([task in targets for task in run.tasks])
            pairs = np.triu(is_target[:, None] | is_target[None, :], k=1)
            correlations.append(float(matrix[pairs].mean()))
    return summary(correlations) if correlations else None


def _by_seed(
    runs_by_seed: Mapping[int, Sequence[RunConfig]],
    targets: tuple[str, ...],
    scores: Mapping[RunConfig, Mapping[str, float]],
) -> dict[str, dict[int, float]]:
    """Per target, and for their mean, the score of each seed; the mean where a seed has all targets."""
    by_target: dict[str, dict[int, float]] = {}
    for seed, runs in runs_by_seed.items():
        scored = {task: score for run in runs for task, score in scores.get(run, {}).items()}
        for target in targets:
            if target in scored:
                by_target.setdefault(target, {})[seed] = scored[target]
        if set(targets) <= scored.keys():
            mean = math.fsum(scored[target] for target in targets) / len(targets)
            by_target.setdefault(MEAN, {})[seed] = mean
    return by_target


def _compare(outcomes: list[Outcome], reference: Outcome, target: str) -> None:
    """Add the differences on this target, with p-values corrected over the families, to the outcomes."""
    paired = {
        place: difference
        for place, outcome in enumerate(outcomes)
        if outcome.family != reference.family and target in outcome.by_seed and target in reference.by_seed
        if (difference := paired_difference(outcome.by_seed[target], reference.by_seed[target])) is not None
    }
    tested = {place: difference.p for place, difference in paired.items() if difference.p is not None}
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    for place, difference in paired.items():
        known = {target: Difference(difference, corrected.get(place))}
        outcomes[place] = replace(outcomes[place], differences={**outcomes[place].differences, **known})


@dataclass(frozen=True)
class Cell:
    """One model's scores on one task: ours, and the published figure where both mean the same."""

    ours: MeanSD | None
    published: Published | None

    @property
    def verdict(self) -> str:
        """`WITHIN`, `ABOVE` or `BELOW`; empty where either figure is missing."""
        return "" if self.ours is None or self.published is None else self.published.verdict(self.ours.mean)


@dataclass(frozen=True)
class Row:
    """A model under a paradigm, such as `BERT (STL)`: what dev chose (`open` until then), a cell per task."""

    model: str
    chosen: str
    cells: Mapping[str, Cell]
    cost: Cost | None


@dataclass(frozen=True)
class TableView:
    """The whole table. `reported` are the rows that the paper quotes from the literature."""

    title: str
    tasks: tuple[str, ...]
    reported: tuple[Reported, ...]
    rows: tuple[Row, ...]

    @property
    def summary(self) -> str:
        """How many figures agree with the published ones, in a sentence."""
        counts = Counter(cell.verdict for row in self.rows for cell in row.cells.values())
        compared = counts[WITHIN] + counts[ABOVE] + counts[BELOW]
        if not compared:
            return "No figure of ours stands beside a published one yet."
        return (
            f"Figures beside a published one: {compared}. Within its standard deviation: {counts[WITHIN]}, "
            f"above: {counts[ABOVE]}, below: {counts[BELOW]}."
        )


def table_view(study: Study, part: str, results: Sequence[Result]) -> TableView | None:
    """The table that this part repeats, from the results that belong to it; None where there is none."""
    paper = study.papers.get(part)
    of_part = [result for result in results if result.setting.part == part]
    if paper is None or not of_part:
        return None
    tasks = of_part[0].setting.targets
    rows = [
        Row(
            f"{paper.models[result.setting.name]} ({outcome.family.title})",
            outcome.chosen if outcome.arm is not None else "open",
            {task: Cell(outcome.scores.get(task), outcome.published.get(task)) for task in tasks},
            outcome.cost,
        )
        for result in of_part
        for outcome in result.outcomes
    ]
    return TableView(paper.title, tasks, paper.reported, tuple(rows))
