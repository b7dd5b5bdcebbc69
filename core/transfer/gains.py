"""What a task gains from another: MTL of the two less STL of the one, measured over seeds."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.config import RunConfig
from core.evaluation.statistics import MeanSD, PairedDifference, paired_difference, summary

Pair = tuple[str, str]
"""The main task and the auxiliary task."""

GAINS, LOSES, SAME, UNDECIDED = "gains", "loses", "the same", "undecided"
"""The verdicts on a gain."""

# Fields in which the runs of a group may differ: the tasks of a run and how it learns them, what it measures.
_FREE = ("tasks", "paradigm", "seed", "affinity_every")


@dataclass(frozen=True)
class Gain:
    """What training beside an auxiliary task changes in the main task's test score.

    `paired` is MTL of the two less STL of the main task, over the seeds that both have, in [-1, 1]; `alone`
    the mean score of STL over these seeds.
    """

    main: str
    aux: str
    paired: PairedDifference
    alone: float

    @property
    def relative(self) -> float:
        """The gain in percent of STL's score, as Bingel and Søgaard (2017) have it; NaN where that is 0."""
        return 100 * self.paired.mean / self.alone if self.alone else math.nan

    def in_points(self) -> dict[str, float | int | None]:
        """The gain and its interval in points, over how many seeds."""
        low, high = (None if end is None else 100 * end for end in (self.paired.low, self.paired.high))
        return {"gain": 100 * self.paired.mean, "low": low, "high": high, "seeds": self.paired.n}

    @property
    def is_decided(self) -> bool:
        """Whether the 95% interval leaves out zero. Not without a spread: one seed, or equal differences."""
        low, high = self.paired.low, self.paired.high
        return bool(self.paired.sd) and low is not None and high is not None and (low > 0 or high < 0)

    @property
    def verdict(self) -> str:
        """GAINS or LOSES where decided; SAME where MTL has the score of STL on every seed; else UNDECIDED."""
        if self.is_decided:
            return GAINS if self.paired.mean > 0 else LOSES
        return SAME if not self.paired.sd and self.paired.mean == 0 else UNDECIDED


@dataclass(frozen=True)
class Gains:
    """The tasks, their scores alone (STL), and the gain of each ordered pair that is known."""

    tasks: tuple[str, ...]
    alone: Mapping[str, MeanSD]
    pairs: Mapping[Pair, Gain]

    def matrix(self, *, relative: bool = False) -> NDArray[np.float64]:
        """(T, T) the gains, main tasks by row: in points, or in percent of STL. NaN where none is known."""
        matrix = np.full((len(self.tasks),) * 2, np.nan)
        for row, main in enumerate(self.tasks):
            for column, aux in enumerate(self.tasks):
                if (gain := self.pairs.get((main, aux))) is not None:
                    matrix[row, column] = gain.relative if relative else 100 * gain.paired.mean
        return matrix


def group_key(run: RunConfig) -> str | None:
    """The same text for STL and MTL runs that are alike in all but tasks and seed; None for other runs.

    Gains are measured of those of one task and of two.
    """
    if run.paradigm == "mrn" or run.task_order is not None or run.task_weights is not None:
        return None
    # As stored: a field that STL lacks is left out of MTL too, where it is at its old value.
    values = {name: value for name, value in json.loads(run.to_json()).items() if name not in _FREE}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def measured_gains(
    scored: Iterable[tuple[RunConfig, Mapping[str, float]]], order: Sequence[str] = ()
) -> Gains:
    """The gains among runs of one group with their test scores by task, in [0, 1].

    Runs of more than two tasks say nothing of a pair. Tasks come in `order`, those that it does not name
    after these.
    """
    alone: dict[str, dict[int, float]] = {}
    beside: dict[Pair, dict[int, float]] = {}
    names = dict.fromkeys(order)
    for run, scores in scored:
        if len(run.tasks) > 2:
            continue
        names |= dict.fromkeys(run.tasks)
        for task, score in scores.items():
            if run.paradigm == "stl":
                alone.setdefault(task, {})[run.seed] = score
            else:
                other = next(name for name in run.tasks if name != task)
                beside.setdefault((task, other), {})[run.seed] = score
    gains = {}
    for (main, aux), by_seed in beside.items():
        singles = alone.get(main, {})
        paired = paired_difference(by_seed, singles)
        if paired is not None:
            base = summary(singles[seed] for seed in by_seed if seed in singles)
            gains[main, aux] = Gain(main, aux, paired, base.mean)
    known = {task for pair in gains for task in pair} | alone.keys()
    return Gains(
        tuple(task for task in names if task in known),
        {task: summary(alone[task].values()) for task in names if task in alone},
        gains,
    )
