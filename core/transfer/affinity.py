"""What one run measures of its pairs of tasks: gradient cosines, lookahead affinities, embeddings' cosines.

A run has them as training metrics: the affinity of an ordered pair (Fifty et al., 2021) as a curve of the
main task, a cosine as a curve of the task whose name comes first. Cosines and affinities are there with
`affinity_every`, those of embeddings with `task_embedding`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    """Where the cosine of two tasks' gradients is, in whatever order they are named."""
    first, second = sorted((first, second))
    return first, f"cosine with {second}"


def embedding_curve(first: str, second: str) -> Curve:
    """Where the cosine of two tasks' embeddings is, in whatever order they are named."""
    first, second = sorted((first, second))
    return first, f"embedding cosine with {second}"


def affinity_curves(tasks: Sequence[str]) -> tuple[Curve, ...]:
    """All that a run of these tasks with `affinity_every` may have measured."""
    return (
        *(affinity_curve(*pair) for pair in permutations(tasks, 2)),
        *(cosine_curve(*pair) for pair in combinations(tasks, 2)),
    )


def embedding_curves(tasks: Sequence[str]) -> tuple[Curve, ...]:
    """All that a run of these tasks with `task_embedding` has."""
    return tuple(embedding_curve(*pair) for pair in combinations(tasks, 2))


@dataclass(frozen=True, eq=False)
class Affinities:
    """Means over the measurements of a run, NaN for pairs that it never measured.

    cosine (T, T)    of the gradients of two tasks' losses on the shared weights; 1 on the diagonal
    affinity (T, T)  Z(auxiliary → main): main tasks by row, auxiliary ones by column; NaN on the diagonal
    """

    tasks: tuple[str, ...]
    cosine: NDArray[np.float64]
    affinity: NDArray[np.float64]


def affinities(tasks: Sequence[str], curves: Mapping[Curve, ArrayLike]) -> Affinities:
    """The matrices of these tasks, in their order, from the values of their `affinity_curves` in a run."""
    means = {}
    for curve, values in curves.items():
        known = np.asarray(values, dtype=np.float64)
        if np.isfinite(known).any():
            means[curve] = float(known[np.isfinite(known)].mean())
    cosine = _matrix(tasks, cosine_curve, means, 1.0)
    return Affinities(tuple(tasks), cosine, _matrix(tasks, affinity_curve, means, np.nan))


def cosine_matrix(tasks: Sequence[str], values: Mapping[Curve, float]) -> NDArray[np.float64]:
    """The cosines (T, T) of these tasks' embeddings; 1 on the diagonal, NaN where a pair has none."""
    return _matrix(tasks, embedding_curve, values, 1.0)


def _matrix(
    tasks: Sequence[str], curve: Callable[[str, str], Curve], values: Mapping[Curve, float], diagonal: float
) -> NDArray[np.float64]:
    return np.array(
        [
            [diagonal if main == aux else values.get(curve(main, aux), np.nan) for aux in tasks]
            for main in tasks
        ]
    )
