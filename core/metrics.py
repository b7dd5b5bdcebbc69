"""The metrics of a training: the table of all, the events that carry them, their keys in the store. No torch.

A metric is one entry of METRICS. What logs it, draws it, exports it or prints it asks the entry. A metric of
another version, which has no entry, keeps its stored name and is shown under Others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, SupportsFloat

from core.mrn.relations import CovarianceStatistics, Relations, covariance_statistics
from core.registry import MODES

TOTAL = ""
"""The task name of metrics that belong to no single task (the total loss, the penalty)."""

Split = Literal["train", "dev"]


@dataclass(frozen=True, order=True)
class MetricKey:
    """A curve in the store: its task (TOTAL for the whole), its split (`train`, `dev`), its metric's name."""

    task: str
    split: str
    name: str


@dataclass(frozen=True)
class StepMetrics:
    """Training metrics after one step: (task, name) → value; task is TOTAL for the whole.

    At every step LOSS (per task and total), PENALTY (λ-weighted, in the total) and LEARNING_RATE; at every
    snapshot `relation_metrics`. Values may be NaN or infinite.
    """

    split: ClassVar[Split] = "train"
    step: int
    epoch: float
    seconds: float
    values: Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class EpochMetrics:
    """Dev metrics after one epoch: (task, name) → value, in [0, 1] for scores.

    DEV_SCORE (the task's headline) and DEV_LOSS; with task TOTAL the means over tasks. An undefined score is
    left out, and so is the mean of an epoch in which a score is undefined that dev sentences allow.
    """

    split: ClassVar[Split] = "dev"
    step: int
    epoch: int
    seconds: float
    values: Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class Metric:
    """A kind of curve.

    `split` is also its axis: `train` has a point after a step, `dev` after an epoch. `name` is the stored
    one, `title` that of its chart, `total` what the curve of the whole is. `percent`: a score up to 1, shown
    times a hundred. `best` is max, min, or empty where neither is good. `shown` is its place among the
    choices of Curves: alone, among the numbers of relations, or among others.
    """

    split: str
    name: str
    title: str
    total: str
    unit: str = ""
    percent: bool = False
    best: Literal["", "max", "min"] = ""
    shown: Literal["alone", "relations", "others"] = "alone"

    @property
    def slug(self) -> str:
        """Its name in links: `loss`, `dev-loss`."""
        return self.name if self.split == StepMetrics.split else f"{self.split}-{self.name}"

    def key(self, task: str = TOTAL) -> MetricKey:
        """The key of its curve of a task, or of the whole."""
        return MetricKey(task, self.split, self.name)

    def keys_among(self, keys: Iterable[MetricKey]) -> list[MetricKey]:
        """Which of these stored keys are its curves: the total's and each task's."""
        return sorted(key for key in keys if (key.split, key.name) == (self.split, self.name))

    def shown_title(self, task: str) -> str:
        """The curve of that task, or of the whole, with its unit."""
        unit = "× 100" if self.percent else self.unit  # of a correlation too, which is no percentage
        name = self.title if task != TOTAL or self.total == self.title else f"{self.title}, {self.total}"
        return f"{name}, {unit}" if unit else name

    def text(self, value: float, sd: float | None = None) -> str:
        """A value of the curve, `93.10` or `0.2345`; with a standard deviation `93.10 ± 0.20`."""
        digits, sd_digits = ("z.2f", ".2f") if self.percent else ("#.4g", ".2g")
        return f"{value:{digits}}".replace("-", "−") + ("" if sd is None else f" ± {sd:{sd_digits}}")


_NATS = "nats per label"

DEV_SCORE = Metric("dev", "score", "Dev score", "mean over tasks", percent=True, best="max")
LOSS = Metric("train", "loss", "Training loss", "total", _NATS, best="min")
DEV_LOSS = Metric("dev", "loss", "Dev loss", "total", _NATS, best="min")
PENALTY = Metric("train", "penalty", "MRN penalty", "weighted by λ")
OBJECTIVE = Metric("train", "objective", "Objective", "J, minimised over heads and covariances", best="min")
LEARNING_RATE = Metric("train", "lr", "Learning rate", "Learning rate")

_STATISTICS = {
    "effective_rank": ("Effective rank", "number of directions that share the variance"),
    "trace": ("Trace", "sum of the variances"),
    "condition": ("Condition", "ratio of the largest to the smallest eigenvalue"),
    "strongest": ("Strongest correlation", "largest absolute correlation of a pair"),
}
STATISTIC_MEANINGS: Mapping[str, str] = dict(_STATISTICS.values())
"""What a statistic of a covariance is, by its title."""
STATISTICS: tuple[str, ...] = tuple(field.name for field in dataclasses.fields(CovarianceStatistics))
"""The statistics of a covariance, each a metric for each mode."""


def statistic(mode: str, name: str) -> Metric:
    """The metric of a statistic of the covariance of `mode`, a value at each snapshot."""
    title, meaning = _STATISTICS[name]
    return Metric("train", f"{mode}_{name}", f"{title} of {mode}s", meaning, shown="relations")


METRICS: Mapping[str, Metric] = {
    metric.slug: metric
    for metric in (
        *(DEV_SCORE, LOSS, DEV_LOSS, PENALTY, OBJECTIVE, LEARNING_RATE),
        *(statistic(mode, name) for mode in MODES for name in STATISTICS),
    )
}
"""By slug, in the order of the choices of Curves."""


def metrics_of(keys: Iterable[MetricKey]) -> dict[str, Metric]:
    """The metrics of these stored curves by slug: in the order of METRICS, then those without an entry."""
    stored = {(key.split, key.name) for key in keys}
    declared = {slug: metric for slug, metric in METRICS.items() if (metric.split, metric.name) in stored}
    unnamed = sorted(stored - {(metric.split, metric.name) for metric in declared.values()})
    plain = [name for _, name in unnamed]
    return declared | {
        f"{split}-{name}": Metric(
            split, name, name if plain.count(name) == 1 else f"{name} on {split}", "total", shown="others"
        )
        for split, name in unnamed
    }


def relation_metrics(
    step: int, epoch: float, seconds: float, relations: Relations, objective: SupportsFloat | None = None
) -> StepMetrics:
    """The statistics of the three covariances at a step, and OBJECTIVE (J) where the prior has one."""
    measured = {mode: covariance_statistics(relations, mode) for mode in MODES}
    named = {
        statistic(mode, name).name: getattr(measured[mode], name) for mode in MODES for name in STATISTICS
    }
    named[OBJECTIVE.name] = None if objective is None else float(objective)
    values = {(TOTAL, name): value for name, value in named.items() if value is not None}
    return StepMetrics(step, epoch, seconds, values)


def statistics_at(logged: Mapping[str, float], mode: str, relations: Relations) -> CovarianceStatistics:
    """The statistics of `mode` as they were logged at a step (name → value), exact.

    Where a run did not log them, the statistics of the `relations` stored at it.
    """
    if statistic(mode, "trace").name not in logged:
        return covariance_statistics(relations, mode)
    values: dict[str, Any] = {name: logged.get(statistic(mode, name).name) for name in STATISTICS}
    return CovarianceStatistics(**values)
