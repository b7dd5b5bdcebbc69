"""How alike the task embeddings of a run are, over its training: the cosines of its tasks' vectors.

A run with `task_embedding` has them as training metrics: a pair's as a curve of the task whose name comes
first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.transfer.affinity import Curve


def embedding_curve(first: str, second: str) -> Curve:
    """Where the cosine of two tasks' embeddings is, in whatever order they are named."""
    first, second = sorted((first, second))
    return first, f"embedding cosine with {second}"


def embedding_curves(tasks: Sequence[str]) -> tuple[Curve, ...]:
    """All that a run of these tasks has."""
    return tuple(embedding_curve(*pair) for pair in combinations(tasks, 2))


def cosine_matrix(tasks: Sequence[str], values: Mapping[Curve, float]) -> NDArray[np.float64]:
    """The cosines (T, T) of these tasks, in their order; 1 on the diagonal, NaN where a pair has none."""
    matrix = np.eye(len(tasks))
    for (row, first), (column, second) in combinations(enumerate(tasks), 2):
        matrix[row, column] = matrix[column, row] = values.get(embedding_curve(first, second), np.nan)
    return matrix
