"""The relations that MRN learned at one step: three covariances, small enough to store. Needs no torch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.registry import MODES
from core.tasks.kinds import TaskFacts

Array = NDArray[np.floating]


def correlation(covariance: Array) -> Array:
    """R = diag(Ω)^-1/2 Ω diag(Ω)^-1/2, (d, d) → (d, d).

    Dissertation, equation (27), with the root that its printed form lacks and its code takes. A zero
    diagonal entry gives a zero row and column, never NaN.
    """
    scale = np.sqrt(np.clip(np.diagonal(covariance), 0.0, None))
    inverse = _inverse(scale)
    return np.asarray(np.clip(covariance * inverse[:, None] * inverse[None, :], -1.0, 1.0))


def _inverse(scale: Array) -> Array:
    """1 / s, and 0 where s is 0."""
    return np.divide(1.0, scale, out=np.zeros_like(scale), where=scale != 0)


@dataclass(frozen=True)
class Relations:
    """Covariances at one step of training.

    task (T, T) and label (C, C) are dense; the feature covariance is low rank, a·I + F Fᵀ with
    `feature_diagonal` a ≥ 0 and `feature_factor` F of shape (D, r).
    """

    task: Array
    label: Array
    feature_factor: Array
    feature_diagonal: float

    def covariance(self, mode: str) -> Array:
        """The dense covariance of `task`, `label` or `feature`."""
        if mode == "task":
            return self.task
        if mode == "label":
            return self.label
        if mode == "feature":
            factor = np.asarray(self.feature_factor, dtype=np.float32)
            dense = factor @ factor.T
            dense[np.diag_indices_from(dense)] += np.float32(self.feature_diagonal)
            return np.asarray(dense)
        raise ValueError(f"mode must be one of {', '.join(MODES)}, not {mode!r}")

    def correlation(self, mode: str) -> Array:
        """The correlation matrix of `task`, `label` or `feature`, within [−1, 1], in float32."""
        if mode != "feature":
            return correlation(np.asarray(self.covariance(mode), dtype=np.float64)).astype(np.float32)
        scale, rows = self.unit_rows()
        rows = rows.astype(np.float32)
        dense = rows @ rows.T
        np.clip(dense, -1.0, 1.0, out=dense)
        # On the diagonal a counts too, and its correlation is 1 by definition.
        np.fill_diagonal(dense, np.where(scale > 0, 1.0, scale))
        return np.asarray(dense)

    def unit_rows(self) -> tuple[Array, Array]:
        """s (D,) and G (D, r) with F = diag(s) G and s_i = √Ω_ii, in float64; off the diagonal R = G Gᵀ.

        A feature without variance has a zero row. Computed relative to the largest number, so that squares
        neither vanish nor overflow.
        """
        factor = np.asarray(self.feature_factor, dtype=np.float64)
        spread = float(np.sqrt(max(self.feature_diagonal, 0.0)))
        largest = max(float(np.max(np.abs(factor), initial=0.0)), spread)
        if not (np.isfinite(largest) and largest > 0):
            largest = 1.0
        relative = factor / largest
        scale = np.sqrt(np.einsum("dr,dr->d", relative, relative) + (spread / largest) ** 2)
        return scale * largest, relative * _inverse(scale)[:, None]


@dataclass(frozen=True, kw_only=True)
class TaskRelations:
    """What the alignment of a run makes of its tasks: which labels share rows, which tasks can be related.

    `label_names` are the C rows of the general label space, each `task:label`, or the bare label where tasks
    share rows; `label_owners` the tasks of each row. `related` are the tasks that the prior relates, where it
    leaves any out; empty elsewhere. `meet` (T, T) says which tasks share a row; `impossible`
    names the modes whose correlations between tasks the alignment forces to zero. `cooccurrence` (C, C) has
    the gold label correlations on the training words; empty where tasks share no words. `aligned` (C, C) are
    the label correlations that the alignment alone gives; empty where it gives none, and in runs of versions
    before.
    """

    tasks: tuple[TaskFacts, ...] = ()
    alignment: str | None = None
    alignment_reason: str | None = None
    label_names: tuple[str, ...] = ()
    label_owners: tuple[tuple[str, ...], ...] = ()
    related: tuple[str, ...] = ()
    meet: tuple[tuple[bool, ...], ...] = ()
    impossible: tuple[str, ...] = ()
    cooccurrence: tuple[tuple[float, ...], ...] = ()
    aligned: tuple[tuple[float, ...], ...] = ()


_UNKNOWN = TaskRelations()


def related_tasks(facts: TaskRelations | None) -> tuple[str, ...]:
    """The tasks that a run's prior relates, in the order of the task covariance; none without facts."""
    facts = facts or _UNKNOWN
    return facts.related or tuple(task.name for task in facts.tasks)


def task_groups(facts: TaskRelations | None) -> tuple[tuple[str, ...], ...]:
    """The related tasks of a run in groups, in their order.

    Relations are learned within a group only.

    Two tasks share rows (`meet`) where both have weights in a general row. Between tasks that share none,
    directly or through others, Ω_task and the blocks of Ω_label stay exactly zero: their scatters are zero
    there while the covariances are, and these begin as the identity.
    """
    facts = facts or _UNKNOWN
    names = related_tasks(facts)
    if not facts.meet:  # a run of a version that told only whether all tasks are apart
        return tuple((name,) for name in names) if "task" in facts.impossible else (names,)
    reach = np.asarray(facts.meet, dtype=bool)
    for _ in names:
        reach = reach @ reach
    first = reach.argmax(axis=1)  # the first task of each task's group
    return tuple(
        tuple(name for name, task in zip(names, first, strict=True) if task == group)
        for group in dict.fromkeys(first.tolist())
    )


@dataclass(frozen=True)
class Block:
    """A rectangle of cells that the alignment forces to zero: half-open ranges of rows and columns."""

    top: int
    bottom: int
    left: int
    right: int


def row_names(
    facts: TaskRelations | None, tasks: Sequence[str], mode: str, size: int
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The name of each row and the tasks that own it; numbers if the facts have no names."""
    facts = facts or _UNKNOWN
    owners: tuple[tuple[str, ...], ...]
    if mode == "task":
        names = related_tasks(facts) or tuple(tasks)
        owners = tuple((name,) for name in names)
    else:
        names, owners = facts.label_names if mode == "label" else (), facts.label_owners
    if len(names) == size:
        return names, owners
    return tuple(f"{mode} {index}" for index in range(size)), ((),) * size


def impossible_blocks(
    facts: TaskRelations | None, mode: str, owners: Sequence[tuple[str, ...]]
) -> tuple[Block, ...]:
    """The blocks in which the alignment allows no relation: groups of tasks, and of labels."""
    groups = task_groups(facts)
    if mode == "feature" or len(groups) == 1:
        return ()
    number = {task: index for index, tasks in enumerate(groups) for task in tasks}
    runs = stretches(owners)
    # The rows may be of another run too, whose tasks this one does not all have.
    group = {top: {number[task] for task in owners[top] if task in number} for top, _ in runs}
    return tuple(
        Block(top, bottom, left, right)
        for top, bottom in runs
        for left, right in runs
        if group[top] and group[left] and group[top].isdisjoint(group[left])
    )


def stretches(owners: Sequence[tuple[str, ...]]) -> list[tuple[int, int]]:
    """Half-open ranges of neighbouring rows with the same owners."""
    edges = [0, *(i for i in range(1, len(owners)) if owners[i] != owners[i - 1]), len(owners)]
    return list(itertools.pairwise(edges))


@dataclass(frozen=True)
class CovarianceStatistics:
    """Statistics of one covariance (d, d); all NaN where the matrix is not finite.

    `effective_rank`, from 1 (all variance in one direction) to d (the same in each), 0 without variance: the
    exponential of the entropy of the normalised eigenvalues (Roy and Vetterli 2007, "The effective rank: a
    measure of effective dimensionality"). `condition`: largest eigenvalue over smallest, ∞ where singular.
    `strongest`: the off-diagonal correlation that is largest in size, with its sign; None without a pair.
    """

    effective_rank: float
    trace: float
    condition: float
    strongest: float | None


def covariance_statistics(relations: Relations, mode: str) -> CovarianceStatistics:
    """The numbers of `task`, `label` or `feature`. No D × D matrix is decomposed."""
    if not is_finite(relations, mode):
        return CovarianceStatistics(math.nan, math.nan, math.nan, math.nan)
    spectrum = eigenvalues(relations, mode)
    largest, smallest, trace = float(spectrum[-1]), float(spectrum[0]), float(spectrum.sum())
    return CovarianceStatistics(
        effective_rank=effective_rank(spectrum),
        trace=trace,
        condition=largest / smallest if smallest > 0 else math.inf,
        strongest=_strongest(relations.correlation(mode)),
    )


def is_finite(relations: Relations, mode: str) -> bool:
    """Whether a covariance holds numbers alone."""
    if mode != "feature":
        return bool(np.isfinite(relations.covariance(mode)).all())
    return bool(np.isfinite(relations.feature_factor).all()) and math.isfinite(relations.feature_diagonal)


def eigenvalues(relations: Relations, mode: str) -> Array:
    """The eigenvalues (d,) of a finite covariance, rising, none negative.

    Those of a·I + F Fᵀ are a + λ for the eigenvalues λ of the smaller of FᵀF and F Fᵀ, and a for the rest.
    """
    if mode != "feature":
        return _semidefinite(np.asarray(relations.covariance(mode)))
    factor = np.asarray(relations.feature_factor)
    narrow = factor if factor.shape[1] <= factor.shape[0] else factor.T
    exact = narrow.astype(np.float64)
    along = _semidefinite(exact.T @ exact)
    rest = np.zeros(len(factor) - len(along))
    return np.concatenate([rest, along]) + relations.feature_diagonal


def _semidefinite(matrix: Array) -> Array:
    """Eigenvalues of a positive semi-definite matrix, zero below the bound of `numpy.linalg.matrix_rank`."""
    values = np.linalg.eigvalsh(matrix.astype(np.float64))
    precision = np.finfo(matrix.dtype).eps if np.issubdtype(matrix.dtype, np.floating) else 0.0
    noise = len(matrix) * precision * float(np.max(np.abs(values), initial=0.0))
    return np.where(values > noise, values, 0.0)


def effective_rank(spectrum: Array) -> float:
    """The exponential of the entropy of these eigenvalues (d,), normalised; 0 without variance."""
    trace = float(spectrum.sum())
    if trace <= 0:
        return 0.0
    shares = spectrum[spectrum > 0] / trace
    return math.exp(-float(np.sum(shares * np.log(shares))))


def _strongest(correlations: Array) -> float | None:
    if len(correlations) < 2:
        return None
    np.fill_diagonal(correlations, 0.0)
    highest, lowest = float(correlations.max()), float(correlations.min())
    return highest if highest >= -lowest else lowest


def strongest_pairs(
    correlations: Array, top: int, impossible: Iterable[Block] = ()
) -> list[tuple[int, int, float]]:
    """The `top` pairs (i, j, correlation), i < j, with the correlations largest in size, the strongest first.

    Pairs that the alignment makes impossible, and those without any correlation, are left out.
    """
    sizes = np.triu(np.abs(correlations), k=1)
    for block in impossible:
        sizes[block.top : block.bottom, block.left : block.right] = 0
    flat = np.fmax(sizes, 0).ravel()  # without NaN
    best = np.sort(np.argpartition(-flat, top)[:top]) if flat.size > top else np.arange(flat.size)
    best = best[np.argsort(-flat[best], kind="stable")]
    rows, columns = np.unravel_index(best[flat[best] > 0], sizes.shape)
    return [(i, j, float(correlations[i, j])) for i, j in zip(rows.tolist(), columns.tolist(), strict=True)]
