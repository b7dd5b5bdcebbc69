"""Gradient cosine and lookahead affinity of tasks, as a joint run measured them (Fifty et al., 2021).

A run with `affinity_every` has them as training metrics: the affinity of an ordered pair as a curve of the
main task, the cosine of a pair as a curve of the task whose name comes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Curve = tuple[str, str]
"""The task and the name of a training metric."""


def affinity_curve(main: str, auxiliary: str) -> Curve:
    """Where Z(auxiliary → main) of each measurement is."""
    return main, f"affinity from {auxiliary}"


def cosine_curve(first: str, second: str) -> Curve:
    """Where the cosine of two tasks' gradients at each measurement is, in whatever order they are named."""
    first, second = sorted((first, second))
    return first, f"cosine with {second}"


def affinity_curves(tasks: Sequence[str]) -> tuple[Curve, ...]:
    """All that a run of these tasks may have measured."""
    return (
        *(affinity_curve(*pair) for pair in permutations(tasks, 2)),
        *(cosine_curve(*pair) for pair in combinations(tasks, 2)),
    )


@dataclass(frozen=True, eq=False)
class Affinities:
    """Means over the measurements of a run, NaN for pairs that it never measured.

    cosine (T, T)        of the gradients of two tasks' losses on the shared weights; 1 on the diagonal
    affinity (T, T)      Z(auxiliary → main): main tasks by row, auxiliary ones by column; NaN on the diagonal
    measurements (T, T)  how many of Z each mean is taken of
    """

    tasks: tuple[str, ...]
    cosine: NDArray[np.float64]
    affinity: NDArray[np.float64]
    measurements: NDArray[np.int64]


def affinities(tasks: Sequence[str], curves: Mapping[Curve, ArrayLike]) -> Affinities:
    """The matrices of these tasks, in their order, from the values of their `affinity_curves` in a run."""
    count = len(tasks)
    known = {curve: np.asarray(values, dtype=np.float64) for curve, values in curves.items()}
    finite = {curve: values[np.isfinite(values)] for curve, values in known.items()}
    cosine, affinity = np.eye(count), np.full((count, count), np.nan)
    measurements = np.zeros((count, count), np.int64)
    for (row, main), (column, auxiliary) in permutations(enumerate(tasks), 2):
        cosine[row, column] = _mean(finite.get(cosine_curve(main, auxiliary)))
        values = finite.get(affinity_curve(main, auxiliary))
        affinity[row, column] = _mean(values)
        measurements[row, column] = 0 if values is None else len(values)
    return Affinities(tuple(tasks), cosine, affinity, measurements)


def _mean(values: NDArray[np.float64] | None) -> float:
    return float("nan") if values is None or not len(values) else float(values.mean())
