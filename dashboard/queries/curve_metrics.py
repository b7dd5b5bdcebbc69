"""Which curves there are: what is known of each kind, and what the chosen runs have stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.mrn.relations import MODES
from core.store.records import MetricKey
from core.training.events import TOTAL

__all__ = ["AXES", "METRICS", "RELATION_METRICS", "Metric", "choices", "metric_keys", "others", "tasks_of"]

AXES: Mapping[str, str] = {"step": "Step", "epoch": "Epoch", "minutes": "Minutes"}


@dataclass(frozen=True)
class Metric:
    """A kind of curve: where it is stored, what to call it and its total, its unit, and which end is good.

    `percent`: a share in [0, 1], shown in percent. `best` is max, min, or empty where neither is good.
    """

    split: str
    name: str
    title: str
    total: str
    unit: str = ""
    percent: bool = False
    best: str = ""

    def shown_title(self, task: str) -> str:
        """The curve of that task, or of the whole, with its unit."""
        unit = "%" if self.percent else self.unit
        name = self.title if task != TOTAL or self.total == self.title else f"{self.title}, {self.total}"
        return f"{name}, {unit}" if unit else name


_NATS = "nats per word"

METRICS: Mapping[str, Metric] = {
    "dev-score": Metric("dev", "score", "Dev score", "mean over tasks", percent=True, best="max"),
    "loss": Metric("train", "loss", "Training loss", "total", _NATS, best="min"),
    "dev-loss": Metric("dev", "loss", "Dev loss", "total", _NATS, best="min"),
    "penalty": Metric("train", "penalty", "MRN penalty", "weighted by λ"),
    "objective": Metric(
        "train", "objective", "Objective", "J, what heads and covariances lower together", best="min"
    ),
    "lr": Metric("train", "lr", "Learning rate", "Learning rate"),
}

_NUMBERS = {
    "effective_rank": ("Effective rank", "how many directions share the variance"),
    "trace": ("Trace", "all variance together"),
    "condition": ("Condition", "largest eigenvalue over the smallest"),
    "strongest": ("Strongest correlation", "the pair whose correlation is largest in size"),
}
RELATION_METRICS: Mapping[str, Metric] = {
    f"{mode}_{name}": Metric("train", f"{mode}_{name}", f"{title} of {mode}s", meaning)
    for mode in MODES
    for name, (title, meaning) in _NUMBERS.items()
}
"""The covariances in numbers, a value at each snapshot."""

_KNOWN = {(one.split, one.name) for one in (*METRICS.values(), *RELATION_METRICS.values())}


def choices(keys: Iterable[MetricKey], among: Mapping[str, Metric] = METRICS) -> list[str]:
    """Which of the metrics these runs have."""
    stored = {(key.split, key.name) for key in keys}
    return [name for name, metric in among.items() if (metric.split, metric.name) in stored]


def others(keys: Iterable[MetricKey]) -> dict[str, Metric]:
    """The stored kinds of curves that nothing is known of, by their plain names."""
    found = sorted({(key.split, key.name) for key in keys} - _KNOWN)
    plain = [name for _, name in found]
    return {
        f"{split}-{name}": Metric(
            split, name, name if plain.count(name) == 1 else f"{name} on {split}", "total"
        )
        for split, name in found
    }


def metric_keys(metric: Metric, keys: Iterable[MetricKey]) -> list[MetricKey]:
    """The stored curves of one metric: the total and each task's."""
    return sorted(key for key in keys if (key.split, key.name) == (metric.split, metric.name))


def tasks_of(metric: Metric, keys: Iterable[MetricKey], order: Iterable[str]) -> list[str]:
    """The tasks that have this curve, TOTAL first where the whole has it, then in their order."""
    stored = {key.task for key in metric_keys(metric, keys)}
    return [task for task in dict.fromkeys((TOTAL, *order, *sorted(stored))) if task in stored]
