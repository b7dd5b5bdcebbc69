"""Dev chooses: candidates are compared by their mean dev score on the same tasks and the same seeds."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

DevScores = Mapping[Any, Mapping[int, float]]
"""The dev scores of a candidate, in [0, 1], by task and seed. A task without a score has no entry."""
_Key = TypeVar("_Key")


def dev_mean(scores: DevScores, tasks: Iterable[Any], seeds: Collection[int]) -> float | None:
    """The mean over these tasks and seeds; None where a score is missing, or nothing is asked for."""
    values = []
    for task in tasks:
        by_seed = scores.get(task, {})
        if not by_seed.keys() >= set(seeds):
            return None
        values += [by_seed[seed] for seed in seeds]
    return math.fsum(values) / len(values) if values else None


def dev_means(candidates: Mapping[_Key, DevScores]) -> dict[_Key, float]:
    """The mean dev score of each candidate, over the tasks and seeds that all of them have.

    A candidate without any dev score is none. Empty where the others have no task, or no seed of these tasks,
    in common: means over different seeds say which seeds were easy, and not which candidate is better.
    """
    scored = {key: scores for key, scores in candidates.items() if any(scores.values())}
    if not scored:
        return {}
    first = next(iter(scored.values()))
    tasks = [task for task in first if all(scores.get(task) for scores in scored.values())]
    if not tasks:
        return {}
    seeds = sorted(set.intersection(*(set(scores[task]) for scores in scored.values() for task in tasks)))
    means = {key: dev_mean(scores, tasks, seeds) for key, scores in scored.items()}
    return {key: mean for key, mean in means.items() if mean is not None}


def chosen_on_dev(candidates: Mapping[_Key, DevScores]) -> _Key | None:
    """The candidate with the highest of `dev_means`, the first of equals; None where there is no mean."""
    means = dev_means(candidates)
    return max(means, key=means.__getitem__, default=None)


def expected_best(scores: Iterable[float]) -> list[float]:
    """The expected best of 1, 2, … n candidates tried, where these are the dev scores of n candidates.

    Those tried are drawn at random, with replacement, from the n (Dodge et al., Show Your Work: Improved
    Reporting of Experimental Results, EMNLP 2019).
    """
    ordered = sorted(scores)
    n = len(ordered)
    # The best of k is at most the i-th lowest score with probability (i / n)^k.
    return [
        math.fsum(
            score * ((place / n) ** tried - ((place - 1) / n) ** tried)
            for place, score in enumerate(ordered, 1)
        )
        for tried in range(1, n + 1)
    ]
