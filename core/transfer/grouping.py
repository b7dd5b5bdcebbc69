"""Which tasks to train together when there may be only k models: the partition of the largest gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import MRNLabError
from core.wording import plural

MOST_TASKS = 12
"""The search is over all subsets of the tasks: 3^T steps. 12 tasks take half a second."""

# Of sums that differ by less, the one with fewer models is taken.
_EQUAL = 1e-9


@dataclass(frozen=True)
class Grouping:
    """Tasks by model, and each task's gain: the mean of its gains from the others in its group."""

    groups: tuple[tuple[str, ...], ...]
    gains: Mapping[str, float]

    @property
    def total(self) -> float:
        """The sum over tasks, which the partition maximises."""
        return sum(self.gains.values())


def best_grouping(tasks: Sequence[str], gains: Mapping[tuple[str, str], float], most_models: int) -> Grouping:
    """The partition of the tasks into at most that many groups with the largest sum of gains; exact.

    `gains[main, aux]` is what `main` gains by `aux`, measured or predicted. A task's gain in a group is the
    mean of its gains from each of the others: an estimate, for no run of more than two tasks stands behind
    it. A group with a pair of unknown gain (missing or NaN) is not considered. Of equal sums, that of fewer
    models. Raises MRNLabError for no model, for more tasks than MOST_TASKS, and where no partition is left.
    """
    n = len(tasks)
    if n > MOST_TASKS:
        raise MRNLabError(
            f"The best partition is searched for up to {MOST_TASKS} tasks, and these are {n}; leave some out."
        )
    if most_models < 1 or not tasks:
        raise MRNLabError("A partition needs a task and a model.")
    matrix = np.array([[gains.get((main, aux), np.nan) for aux in tasks] for main in tasks], dtype=np.float64)
    np.fill_diagonal(matrix, 0)
    members = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1  # (2^T, T): set s has task t
    matrix = np.where(np.isfinite(matrix), matrix, -np.inf)
    value = np.zeros(1 << n)  # of each set as a group
    for group, chosen in enumerate(members):
        inside = np.flatnonzero(chosen)
        if len(inside) > 1:
            value[group] = matrix[np.ix_(inside, inside)].sum() / (len(inside) - 1)

    # best[k, s]: the largest sum for set s in at most k groups. Every group of its first task is tried; the
    # rest is a smaller set in at most k - 1 groups.
    best = np.full((min(most_models, n) + 1, 1 << n), -np.inf)
    best[:, 0] = 0
    choice = np.zeros(best.shape, dtype=np.int64)
    for whole in range(1, 1 << n):
        first, *others = (1 << place for place in range(n) if whole >> place & 1)
        groups = np.array([first])
        for other in others:
            groups = np.concatenate([groups, groups | other])
        sums = value[groups] + best[:-1, whole ^ groups]
        choice[1:, whole] = groups[sums.argmax(axis=1)]
        best[1:, whole] = sums.max(axis=1)
    whole = (1 << n) - 1
    if np.isneginf(best[-1, whole]):
        raise MRNLabError(
            f"With {plural(most_models, 'model')}, every partition has a group with a pair of unknown gain."
        )
    models = int(np.argmax(best[:, whole] >= best[-1, whole] - _EQUAL))
    made = []
    while whole:
        group = int(choice[models, whole])
        made.append(tuple(task for place, task in enumerate(tasks) if group >> place & 1))
        whole, models = whole ^ group, models - 1
    return Grouping(
        tuple(made),
        {
            task: sum(gains[task, other] for other in together if other != task) / max(len(together) - 1, 1)
            for together in made
            for task in together
        },
    )
