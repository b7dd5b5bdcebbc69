"""Do relations say where the gain is? Each label's strongest correlation beside its gain in F1 over MTL."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.evaluation.statistics import summary
from core.mrn.relations import Relations, TaskRelations, row_names
from core.results.samples import one_per_seed, readable
from core.store import Run, RunState, RunWithFacts, Store
from core.tasks.scores import report_rows

LabelKey = tuple[str, str]
"""A task, and a label or type of spans of its report."""


@dataclass(frozen=True)
class LabelGain:
    """A label over seeds: its most frequent partner, its strongest correlation, its gain in F1 in [−1, 1]."""

    task: str
    label: str
    partner: str
    correlation: float
    gain: float


@dataclass(frozen=True)
class RankOverSeeds:
    """Spearman's ρ of each seed: the mean, and the 95% interval by Fisher's z, None with one seed."""

    mean: float
    interval: tuple[float, float] | None
    seeds: int


@dataclass(frozen=True)
class RelationGains:
    """The labels, the most related first, and the rank correlation of relation and gain over seeds.

    `rank` is None where no seed has three labels of unequal correlations.
    """

    labels: tuple[LabelGain, ...]
    rank: RankOverSeeds | None

    @property
    def sentence(self) -> str:
        """Whether relations say where the gain is."""
        if self.rank is None:
            return "Too few labels have a relation and a score: no rank correlation."
        text = f"Rank correlation of relation and gain: {self.rank.mean:z.2f}"
        if self.rank.interval is None:
            return f"{text.replace('-', '−')}, one seed: nothing is decided."
        low, high = self.rank.interval
        answer = "more related labels gain more" if low > 0 else "more related labels gain less"
        answer = "not decided" if low <= 0 <= high else answer
        return f"{text} [{low:z.2f}, {high:z.2f}] over {self.rank.seeds} seeds: {answer}.".replace("-", "−")


def rank_over_seeds(by_seed: Iterable[tuple[Sequence[float], Sequence[float]]]) -> RankOverSeeds | None:
    """Spearman's ρ of each seed's pairs of values, over the seeds that have one."""
    from core.transfer.predictors import rank_correlation  # which loads pandas and more

    ranks = [rank for pair in by_seed if math.isfinite(rank := rank_correlation(*pair))]
    if not ranks:
        return None
    of_z = summary(np.arctanh(np.clip(ranks, -1 + 1e-6, 1 - 1e-6)).tolist())
    bounds = None if of_z.low is None or of_z.high is None else (math.tanh(of_z.low), math.tanh(of_z.high))
    return RankOverSeeds(summary(ranks).mean, bounds, len(ranks))


def strongest_relations(
    facts: TaskRelations | None, tasks: Sequence[str], learned: Relations
) -> dict[LabelKey, tuple[str, float]]:
    """The strongest correlation of each label with a row of another task, and that row's name.

    Spans of a type have the row of their B-, or I-, label. Labels whose row tasks share have none.
    """
    matrix = learned.correlation("label")
    names, owners = row_names(facts, tasks, "label", len(matrix))
    owned = np.array([[task in of_row for task in tasks] for of_row in owners], dtype=bool)
    apart = ~(owned.astype(int) @ owned.T.astype(int) > 0)
    strongest: dict[LabelKey, tuple[str, float]] = {}
    for place, (name, of_row) in enumerate(zip(names, owners, strict=True)):
        if len(of_row) != 1 or not apart[place].any():
            continue
        label = name.removeprefix(f"{of_row[0]}:")
        best = int(np.argmax(np.where(apart[place], np.abs(matrix[place]), -1)))
        strongest_row = names[best], float(matrix[place, best])
        strongest[of_row[0], label] = strongest_row
        if label[:2] in ("B-", "I-"):
            strongest.setdefault((of_row[0], label[2:]), strongest_row)
    return strongest


def mtl_of(store: Store, runs: Sequence[Run]) -> dict[int, Run]:
    """The finished MTL runs with the same settings and seeds, by seed."""
    configuration = runs[0].config.with_(paradigm="mtl").configuration_id
    stored = readable(store.runs_of([configuration], {RunState.SUCCEEDED}))[0]
    seeds = {run.config.seed for run in runs}
    counted = one_per_seed(stored, store.conditions(stored))
    return {run.config.seed: run for run in counted if run.config.seed in seeds}


def relation_gains(store: Store, runs: Sequence[RunWithFacts]) -> RelationGains | None:
    """Relation and gain on test of the labels of MRN runs of one configuration, at their last step.

    None where no MTL run with the same settings and a seed in common has scores: `mtl_of`.
    """
    baselines = mtl_of(store, runs)
    paired = [run for run in runs if run.config.seed in baselines and store.snapshots(run.id)]
    ids = [run.id for run in paired] + [baselines[run.config.seed].id for run in paired]
    f1: dict[int, dict[LabelKey, float]] = {}
    for score in store.scores(ids, "test") if ids else ():
        rows = report_rows(score.report)
        f1.setdefault(score.run_id, {}).update(
            {(score.task, label): row["f1"] for label, row in rows.items()}
        )
    by_seed: dict[int, dict[LabelKey, tuple[str, float, float]]] = {}
    for run in paired:
        scores, base = f1.get(run.id, {}), f1.get(baselines[run.config.seed].id, {})
        related = strongest_relations(run.facts, run.config.tasks, store.relations(run.id)[1])
        by_seed[run.config.seed] = {
            key: (*related[key], scores[key] - base[key])
            for key in scores
            if key in base and key in related and math.isfinite(scores[key] - base[key])
        }
    if not any(by_seed.values()):
        return None
    return RelationGains(
        _labels(by_seed),
        rank_over_seeds(
            ([abs(of[1]) for of in labels.values()], [of[2] for of in labels.values()])
            for labels in by_seed.values()
        ),
    )


def _labels(by_seed: Mapping[int, Mapping[LabelKey, tuple[str, float, float]]]) -> tuple[LabelGain, ...]:
    gains = []
    for task, label in dict.fromkeys(key for labels in by_seed.values() for key in labels):
        seeds = [labels[task, label] for labels in by_seed.values() if (task, label) in labels]
        partners = [partner for partner, _, _ in seeds]
        correlation = summary(related for _, related, _ in seeds).mean
        gain = summary(gained for _, _, gained in seeds).mean
        gains.append(LabelGain(task, label, max(partners, key=partners.count), correlation, gain))
    return tuple(sorted(gains, key=lambda of: -abs(of.correlation)))
