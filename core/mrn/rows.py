"""The rows of the three matrices: their names, their tasks, and what the alignment makes impossible, from a
run's stored facts. Needs no torch.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.mrn.groups import task_groups

__all__ = ["Block", "impossible_blocks", "row_names", "stretches"]


@dataclass(frozen=True)
class Block:
    """A rectangle of cells that the alignment forces to zero: half-open ranges of rows and columns."""

    top: int
    bottom: int
    left: int
    right: int


def row_names(
    facts: Mapping[str, Any], tasks: Sequence[str], mode: str, size: int
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The name of each row and the tasks that own it; numbers where the facts do not tell."""
    if mode == "task":
        names = tuple(fact["name"] for fact in facts.get("tasks", ())) or tuple(tasks)
        owners = tuple((name,) for name in names)
    else:
        names = tuple(facts.get("label_names", ())) if mode == "label" else ()
        owners = tuple(tuple(owner) for owner in facts.get("label_owners", ()))
    if len(names) == size:
        return names, owners
    return tuple(f"{mode} {index}" for index in range(size)), ((),) * size


def impossible_blocks(
    facts: Mapping[str, Any], mode: str, owners: Sequence[tuple[str, ...]]
) -> tuple[Block, ...]:
    """Where the alignment lets no relation arise: between groups of tasks, and between their labels."""
    groups = task_groups(facts)
    if mode == "feature" or len(groups) == 1:
        return ()
    number = {task: index for index, tasks in enumerate(groups) for task in tasks}
    runs = stretches(owners)
    group = {top: {number[task] for task in owners[top]} for top, _ in runs}
    return tuple(
        Block(top, bottom, left, right)
        for top, bottom in runs
        for left, right in runs
        if top != left and group[top].isdisjoint(group[left])
    )


def stretches(owners: Sequence[tuple[str, ...]]) -> list[tuple[int, int]]:
    """Half-open ranges of neighbouring rows with the same owners."""
    edges = [0, *(i for i in range(1, len(owners)) if owners[i] != owners[i - 1]), len(owners)]
    return list(itertools.pairwise(edges))
