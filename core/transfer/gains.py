"""The gain of a task from another: MTL of the two less STL of the one, measured over seeds."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.config import RunConfig
from core.evaluation.comparison import HIGHER, LOWER, UNDECIDED, Comparison, compare_paired
from core.evaluation.statistics import MeanSD, summary

Pair = tuple[str, str]
"""The main task and the auxiliary task."""

GAINS, LOSES = "gains", "loses"
"""The words for HIGHER and LOWER of a gain."""

# Fields in which the runs of a group may differ: the tasks of a run and how it learns them, what it measures.
_FREE = ("tasks", "paradigm", "seed", "affinity_every")


@dataclass(frozen=True, kw_only=True)
class Gain(Comparison):
    """The change in the main task's test score from training beside an auxiliary task.

    It compares MTL of the two with STL of the main task, seed by seed (`by_seed`); `alone` is the mean score
    of STL over these seeds. The family are the gains of the main task from all its auxiliary tasks.
    """

    main: str
    aux: str
    alone: float
    by_seed: Mapping[int, float]

    @property
    def learned_nothing(self) -> bool:
        """Whether the main task's head scores 0 with every seed, alone and beside the auxiliary task."""
        return self.is_equal and self.alone == 0

    @property
    def verdict(self) -> str:
        """The verdict as of any difference, but two scores of 0 are a floor and show no equivalence."""
        return UNDECIDED if self.learned_nothing else super().verdict

    @property
    def remark(self) -> str:
        """Why it is undecided, where more is to be said than that p is too large."""
        return "the head learned nothing: 0 with each seed" if self.learned_nothing else super().remark

    @property
    def relative(self) -> float:
        """The gain in percent of STL's score, as Bingel and Søgaard (2017) have it; NaN unless it is above 0.

        A correlation may be negative: percent of it would turn a gain into a loss.
        """
        return 100 * self.mean / self.alone if self.alone > 0 else math.nan

    def amount(self, *, relative: bool) -> float:
        """The gain in points, or in percent of STL's score."""
        return self.relative if relative else 100 * self.mean

    def as_numbers(self) -> dict[str, float | int | None]:
        """The gain and its interval in points, over how many seeds."""
        assert self.paired is not None  # a gain has a seed in common
        low, high = (None if end is None else 100 * end for end in (self.paired.low, self.paired.high))
        return {"gain": 100 * self.mean, "low": low, "high": high, "seeds": self.seeds}

    @property
    def word(self) -> str:
        """The verdict as a verb: GAINS and LOSES for HIGHER and LOWER."""
        return {HIGHER: GAINS, LOWER: LOSES}.get(self.verdict, self.verdict)


@dataclass(frozen=True)
class Gains:
    """The tasks, their scores alone (STL), and the gain of each ordered pair that is known."""

    tasks: tuple[str, ...]
    alone: Mapping[str, MeanSD]
    pairs: Mapping[Pair, Gain]

    @property
    def learned_nothing(self) -> list[str]:
        """The main tasks that score 0 with every seed, alone and beside another."""
        return list(dict.fromkeys(gain.main for gain in self.pairs.values() if gain.learned_nothing))

    @property
    def over_all(self) -> dict[Pair, Comparison]:
        """The gains as one family, for sentences on the whole matrix: p corrected for all pairs."""
        learned = {pair: gain for pair, gain in self.pairs.items() if not gain.learned_nothing}
        return compare_paired(
            {pair: (gain.by_seed, dict.fromkeys(gain.by_seed, 0.0)) for pair, gain in learned.items()}
        )

    def matrix(self, *, relative: bool = False) -> NDArray[np.float64]:
        """(T, T) the gains, main tasks by row: in points, or in percent of STL. NaN where none is known."""
        amounts = {pair: gain.amount(relative=relative) for pair, gain in self.pairs.items()}
        return np.array([[amounts.get((main, aux), np.nan) for aux in self.tasks] for main in self.tasks])


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
    return gains_of(alone, beside, list(names))


def gains_of(
    alone: Mapping[str, Mapping[int, float]], beside: Mapping[Pair, Mapping[int, float]], order: Sequence[str]
) -> Gains:
    """The gains from the scores by seed of each task alone and of each main task beside an auxiliary one.

    Tasks come in this order, which names them all.
    """
    gains = {}
    for main, singles in alone.items():
        family = {pair: (scores, singles) for pair, scores in beside.items() if pair[0] == main}
        for (_, aux), compared in compare_paired(family).items():
            seeds = sorted(beside[main, aux].keys() & singles.keys())
            gains[main, aux] = Gain(
                **vars(compared),
                main=main,
                aux=aux,
                alone=summary(singles[seed] for seed in seeds).mean,
                by_seed={seed: beside[main, aux][seed] - singles[seed] for seed in seeds},
            )
    gains = {pair: gains[pair] for pair in beside if pair in gains}
    named = {task for pair in gains for task in pair} | alone.keys()
    return Gains(
        tuple(task for task in order if task in named),
        {task: summary(alone[task].values()) for task in order if task in alone},
        gains,
    )
