"""Names and matrices of the cosines that a run measures for each pair of tasks: of gradients, of embeddings.

A cosine is a training metric of the task whose name comes first. Those of gradients are measured with
`affinity_every`, those of embeddings with `task_embedding`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Curve = tuple[str, str]
"""The task and the name of a training metric."""

NamesCurve = Callable[[str, str], Curve]


def gradient_curve(first: str, second: str) -> Curve:
    """The name of the curve of the cosine of two tasks' gradients, in either order."""
    first, second = sorted((first, second))
    return first, f"cosine with {second}"


def embedding_curve(first: str, second: str) -> Curve:
    """The name of the curve of the cosine of two tasks' embeddings, in either order."""
    first, second = sorted((first, second))
    return first, f"embedding cosine with {second}"


def curves_of(curve: NamesCurve, tasks: Sequence[str]) -> tuple[Curve, ...]:
    """The curve of each pair of these tasks."""
    return tuple(curve(*pair) for pair in combinations(tasks, 2))


def cosine_matrix(
    curve: NamesCurve, tasks: Sequence[str], values: Mapping[Curve, float]
) -> NDArray[np.float64]:
    """The cosines (T, T) of these tasks; 1 on the diagonal, NaN where a pair has none."""
    return np.array(
        [[1.0 if main == aux else values.get(curve(main, aux), np.nan) for aux in tasks] for main in tasks]
    )
